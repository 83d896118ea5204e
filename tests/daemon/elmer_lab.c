#include "config.h"

#include "tests/daemon/elmer_lab.h"
#include "tests/unit/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"

struct backlog {
    struct backlog *next;
    bool relayed;
    uint64_t client;
    struct wire_message message;
};

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* ---- the process ---- */

void lab_configure(const struct lab *lab)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/elmer.conf", lab->dir);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out,
            "[elmer]\nstore = %s/elmer.db\nsocket = %s/elmer.sock\nhost_socket = %s/host.sock\njobs_dir = "
            "/tmp/jobs\nseed = 1\n",
            lab->dir, lab->dir, lab->dir);
    fputs(lab->config, out);
    fclose(out);
}

void lab_create(struct lab *lab, const char *config)
{
    *lab = (struct lab){0};
    snprintf(lab->dir, sizeof(lab->dir), "/tmp/elmer-test-XXXXXX");
    assert_non_null(scratch_dir(lab->dir));
    snprintf(lab->config, sizeof(lab->config), "%s", config);
    lab->minor = WIRE_MINOR;
    lab_configure(lab);
}

static void free_at_once(void)
{
    char options[512];
    const char *old = getenv("ASAN_OPTIONS");
    snprintf(options, sizeof(options), "%s:quarantine_size_mb=1", old ? old : "");
    setenv("ASAN_OPTIONS", options, 1);
}

static void spawn(struct lab *lab, int out)
{
    const char *program = getenv("ELMER_PROGRAM");
    char path[100];
    snprintf(path, sizeof(path), "%s/elmer.conf", lab->dir);
    lab->pid = fork();
    assert_true(lab->pid >= 0);
    if (lab->pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (out >= 0) {
        dup2(out, 1);
        dup2(out, 2);
    }
    if (lab->memory_counts)
        free_at_once();
    execl(program ? program : "elmer/elmer", "elmer", "-c", path, (char *)NULL);
    _exit(127);
}

int lab_connect(const struct lab *lab, const char *socket_name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", lab->dir, socket_name);
    if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
        return fd;
    close(fd);
    return -1;
}

void lab_spawn(struct lab *lab)
{
    spawn(lab, -1);
}

void lab_start(struct lab *lab)
{
    spawn(lab, -1);
    for (int64_t deadline = mono_now_ms() + LAB_WAIT_MS; mono_now_ms() < deadline; nap()) {
        int fd = lab_connect(lab, "elmer.sock"); /* the last one that it opens */
        if (fd >= 0) {
            close(fd);
            return;
        }
        assert_int_equal(waitpid(lab->pid, NULL, WNOHANG), 0);
    }
    fail_msg("elmer has not opened its sockets");
}

static int await_end(struct lab *lab)
{
    int status;
    for (int64_t deadline = mono_now_ms() + LAB_WAIT_MS; mono_now_ms() < deadline; nap())
        if (waitpid(lab->pid, &status, WNOHANG) == lab->pid) {
            lab->pid = 0;
            return status;
        }
    kill(lab->pid, SIGKILL);
    waitpid(lab->pid, &status, 0);
    lab->pid = 0;
    fail_msg("elmer does not end");
    return -1;
}

int lab_run(struct lab *lab, char *out, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    spawn(lab, ends[1]);
    close(ends[1]);
    status = await_end(lab);
    ssize_t got = read(ends[0], out, size - 1);
    out[got > 0 ? got : 0] = 0;
    close(ends[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void lab_stop(struct lab *lab, int signal)
{
    if (!lab->pid)
        return;
    assert_int_equal(waitpid(lab->pid, NULL, WNOHANG), 0); /* it lives */
    kill(lab->pid, signal);
    int status = await_end(lab);
    if (signal == SIGKILL)
        assert_true(WIFSIGNALED(status));
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void lab_destroy(struct lab *lab)
{
    lab_stop(lab, SIGTERM);
    DIR *dir = opendir(lab->dir);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (*entry->d_name != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    assert_int_equal(rmdir(lab->dir), 0);
}

/* ---- links ---- */

static void send_raw(struct fake *fake, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    if (channel_send_all(&fake->channel, message, mono_now_ms() + LAB_WAIT_MS, &err))
        fail_msg("cannot send %s: %s", wire_type_name(message->type), err.text);
}

void fake_send(struct fake *fake, struct wire_message *message)
{
    message->id = ++fake->ids;
    send_raw(fake, message);
}

void fake_open(struct fake *fake, const struct lab *lab, const char *socket_name)
{
    struct wire_message hello = {.type = WIRE_hello,
                                 .u.hello = {.program = "test", .major = WIRE_MAJOR, .minor = lab->minor}},
                        answer;
    int fd = lab_connect(lab, socket_name);
    *fake = (struct fake){0};
    assert_true(fd >= 0);
    assert_int_equal(channel_init(&fake->channel, fd, WIRE_FROM_ELMER, 4 << 20), 0);
    fake->channel.minor = lab->minor;
    send_raw(fake, &hello);
    fake_expect(fake, WIRE_hello, &answer);
    assert_string_equal(answer.u.hello.program, "elmer");
    wire_message_fini(&answer);
}

void fake_close(struct fake *fake)
{
    while (fake->backlog) {
        struct backlog *next = fake->backlog->next;
        wire_message_fini(&fake->backlog->message);
        free(fake->backlog);
        fake->backlog = next;
    }
    channel_fini(&fake->channel);
}

static void keep(struct fake *fake, bool relayed, uint64_t client, const struct wire_message *message)
{
    struct backlog **last = &fake->backlog, *entry = calloc(1, sizeof(*entry));
    assert_non_null(entry);
    *entry = (struct backlog){.relayed = relayed, .client = client, .message = *message};
    while (*last)
        last = &(*last)->next;
    *last = entry;
}

static bool take(struct fake *fake, bool relayed, uint64_t client, enum wire_type type, struct wire_message *message)
{
    for (struct backlog **at = &fake->backlog; *at; at = &(*at)->next) {
        struct backlog *entry = *at;
        if (entry->relayed != relayed || entry->client != client || entry->message.type != type)
            continue;
        *message = entry->message;
        *at = entry->next;
        free(entry);
        return true;
    }
    return false;
}

/* 1: a message was put aside, 0: none until deadline, negative: the link is gone. */
static int receive(struct fake *fake, int64_t deadline_ms)
{
    struct err err = ERR_INIT;
    struct wire_message message, inner;
    int result = channel_receive(&fake->channel, &message, deadline_ms, &err);
    if (result != 1)
        return result;
    if (message.type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message.id};
        send_raw(fake, &pong);
        wire_message_fini(&message);
        fake->pings++;
    } else if (message.type == WIRE_relayed) {
        const struct wire_relayed *relayed = &message.u.relayed;
        if (wire_decode(relayed->frame, strlen(relayed->frame), fake->channel.minor, &inner, &err))
            fail_msg("relayed: %s", err.text);
        keep(fake, true, relayed->client, &inner);
        wire_message_fini(&message);
    } else {
        keep(fake, false, 0, &message);
    }
    return 1;
}

static void expect_kind(struct fake *fake, bool relayed, uint64_t client, enum wire_type type,
                        struct wire_message *message)
{
    int64_t deadline = mono_now_ms() + LAB_WAIT_MS;
    while (!take(fake, relayed, client, type, message)) {
        if (receive(fake, deadline) == 1)
            continue;
        for (struct backlog *entry = fake->backlog; entry; entry = entry->next)
            print_message("instead: %s %s\n", wire_type_name(entry->message.type),
                          entry->message.type == WIRE_error ? entry->message.u.error.text : "");
        fail_msg("%s has not come", wire_type_name(type));
    }
}

void fake_expect(struct fake *fake, enum wire_type type, struct wire_message *message)
{
    expect_kind(fake, false, 0, type, message);
}

void fake_await_ping(struct fake *fake)
{
    unsigned before = fake->pings;
    int64_t deadline = mono_now_ms() + LAB_WAIT_MS;
    while (fake->pings == before)
        assert_int_equal(receive(fake, deadline), 1);
}

void fake_expect_none(struct fake *fake, enum wire_type type, int ms)
{
    struct wire_message message;
    int64_t deadline = mono_now_ms() + ms;
    while (mono_now_ms() < deadline && receive(fake, deadline) == 1)
        ;
    if (take(fake, false, 0, type, &message))
        fail_msg("%s has come", wire_type_name(type));
}

bool fake_closed(struct fake *fake)
{
    int64_t deadline = mono_now_ms() + LAB_WAIT_MS;
    int result;
    while ((result = receive(fake, deadline)) == 1)
        ;
    return result < 0;
}

/* ---- hosts ---- */

void host_open(struct fake *host, const struct lab *lab, const char *name, unsigned ncpus,
               const struct host_options *options)
{
    static const struct host_options plain = {0};
    uint64_t cpus[64];
    struct wire_message hello = {.type = WIRE_host_hello}, welcome;
    struct wire_host_hello *h = &hello.u.host_hello;
    options = options ? options : &plain;
    for (unsigned i = 0; i < ncpus; i++)
        cpus[i] = i;
    fake_open(host, lab, "host.sock");
    h->host = name;
    h->boot = options->boot ? options->boot : "boot";
    h->cpus = (struct wire_uints){cpus, ncpus};
    h->generation = options->generation;
    h->holdings.items = options->holdings;
    h->holdings.count = options->nholdings;
    h->mode = "rt";
    h->pvm = !options->no_pvm;
    h->lacks = (struct wire_strs){options->lacks, options->nlacks};
    fake_send(host, &hello);
    fake_expect(host, WIRE_host_welcome, &welcome);
    assert_int_equal(welcome.id, hello.id);
    wire_message_fini(&welcome);
}

void host_relay(struct fake *host, uint64_t client, uint32_t uid, const char *user, struct wire_message *message)
{
    struct err err = ERR_INIT;
    struct wire_message relay = {.type = WIRE_relay, .u.relay = {.client = client, .uid = uid, .user = user}};
    char *json;
    size_t size;
    message->id = ++host->ids;
    if (wire_encode(message, host->channel.minor, &json, &size, &err))
        fail_msg("relay: %s", err.text);
    relay.u.relay.frame = json;
    send_raw(host, &relay);
    free(json);
}

void host_expect_relayed(struct fake *host, uint64_t client, enum wire_type type, struct wire_message *message)
{
    expect_kind(host, true, client, type, message);
}

void host_expect_answer(struct fake *host, uint64_t client, enum wire_type type, struct wire_message *message)
{
    int64_t deadline = mono_now_ms() + LAB_WAIT_MS;
    while (!take(host, true, client, type, message) && !take(host, true, client, WIRE_error, message))
        if (receive(host, deadline) != 1)
            fail_msg("neither %s nor an error has come", wire_type_name(type));
}

void host_event(struct fake *host, enum wire_type type, uint64_t job, uint32_t attempt)
{
    struct wire_message message = {.type = type};
    if (type == WIRE_opened)
        message.u.opened = (struct wire_opened){.job = job, .attempt = attempt};
    else if (type == WIRE_pvm_ready)
        message.u.pvm_ready = (struct wire_pvm_ready){.job = job, .attempt = attempt};
    else
        fail_msg("not for %s", wire_type_name(type));
    send_raw(host, &message);
}

void host_started(struct fake *host, uint64_t job, uint32_t attempt, uint64_t process)
{
    struct wire_message message = {.type = WIRE_started,
                                   .u.started = {.job = job, .attempt = attempt, .process = process, .pid = 4711}};
    send_raw(host, &message);
}

void host_line(struct fake *host, uint64_t job, uint32_t attempt, uint64_t process, const char *line)
{
    struct wire_message message = {.type = WIRE_line,
                                   .u.line = {.job = job, .attempt = attempt, .process = process, .line = line}};
    send_raw(host, &message);
}

void host_exited(struct fake *host, uint64_t job, uint32_t attempt, uint64_t process, const char *role, int status,
                 int signal)
{
    assert_true(strcmp(role, "command") == 0 || strcmp(role, "pvmd") == 0 ||
                strcmp(role, "agent") == 0); /* rsd knows no other */
    struct wire_message message = {
        .type = WIRE_exited,
        .u.exited = {
            .job = job, .attempt = attempt, .process = process, .role = role, .exit_status = status, .signal = signal}};
    send_raw(host, &message);
}

void host_empty(struct fake *host, uint64_t job, uint32_t attempt, double cpu_seconds)
{
    struct wire_message message = {
        .type = WIRE_empty,
        .u.empty = {.job = job, .attempt = attempt, .cpu_seconds = cpu_seconds, .memory_peak_bytes = -1}};
    send_raw(host, &message);
}

void host_ordered(struct fake *host, uint64_t generation)
{
    struct wire_message message = {.type = WIRE_ordered, .u.ordered = {.generation = generation}};
    send_raw(host, &message);
}

/* ---- jobs ---- */

struct wire_message lab_submission(const char *token, uint64_t nprocs)
{
    static const char *command[] = {"/bin/prog", "arg"}, *environment[] = {"PATH=/usr/bin:/bin", "ELMER_RANK=forged"};
    struct wire_message message = {.type = WIRE_submit};
    struct wire_submit *submit = &message.u.submit;
    submit->token = token;
    submit->nprocs = nprocs;
    submit->command = (struct wire_strs){command, 2};
    submit->environment = (struct wire_strs){environment, 2};
    submit->dir = "/home/alice";
    submit->umask = 022;
    submit->submit_host = "elsewhere";
    return message;
}

uint64_t lab_submit(struct fake *host, struct wire_message *submission, char *state, size_t size)
{
    struct wire_message answer;
    host_relay(host, 7, 2001, "alice", submission);
    host_expect_relayed(host, 7, WIRE_submitted, &answer);
    assert_int_equal(answer.id, submission->id);
    uint64_t id = answer.u.submitted.job;
    if (state)
        snprintf(state, size, "%s", answer.u.submitted.state);
    wire_message_fini(&answer);
    return id;
}

void lab_query(struct fake *host, uint64_t job, struct wire_message *message)
{
    struct wire_message query = {.type = WIRE_query, .u.query.jobs = {&job, 1}};
    host_relay(host, 8, 2001, "alice", &query);
    host_expect_relayed(host, 8, WIRE_jobs, message);
    assert_int_equal(message->id, query.id);
    assert_int_equal(message->u.jobs.jobs.count, 1);
    assert_false(message->u.jobs.more);
}

void lab_query_until(struct fake *host, uint64_t job, const char *state, struct wire_message *message)
{
    for (int64_t deadline = mono_now_ms() + LAB_WAIT_MS; mono_now_ms() < deadline; nap()) {
        lab_query(host, job, message);
        if (strcmp(message->u.jobs.jobs.items[0].state, state) == 0)
            return;
        wire_message_fini(message);
    }
    fail_msg("job %llu does not become %s", (unsigned long long)job, state);
}

void lab_ask_as_root(const struct lab *lab, struct wire_message *request, enum wire_type type,
                     struct wire_message *answer)
{
    struct fake client;
    if (geteuid() != 0) {
        print_message("skipped: only root is an administrator by the socket\n");
        skip();
    }
    fake_open(&client, lab, "elmer.sock");
    fake_send(&client, request);
    fake_expect(&client, type, answer);
    fake_close(&client);
}
