/* fakehosts - many workstations that are none, in one process: they link to a real elmer over real TLS, each with a
 * certificate of its own, report, and answer every order at once. For measuring how elmer grows.
 *
 * fakehosts make DIR HOSTS                a CA, DIR/pki for elmer, DIR/hosts/hN for each; prints "SERIAL NAME BEGIN_MS
 * END_MS" for each fakehosts run DIR HOSTS ADDRESS         link them all, in random order, not all at once; prints
 * "linked" when elmer has welcomed them all and "lost" for each link that ends; goes on until SIGTERM
 *
 * Each has one processor. A job runs on them until it is ended.
 */
#define _GNU_SOURCE
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <uv.h>

#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/pki/x509.h"

enum { IN_FLIGHT = 16, HOSTS_MAX = 20000, TEXT_MAX = 4096, TICK_MS = 50, ANSWER_MS = 60000 };

struct fake {
    char name[32];
    struct link *link;
    bool welcomed;
    uint64_t report_ms, next_report_ms;
    uint64_t heard, heard_ms; /* the last ping (0: welcome), and when */
};

static struct {
    uv_loop_t loop;
    uv_timer_t tick;
    uv_signal_t end;
    const char *dir, *address;
    struct fake *fakes;
    size_t count, next, in_flight, welcomed;
    size_t *order;
} all;

static _Noreturn void die(const char *what, const struct err *err)
{
    fprintf(stderr, "fakehosts: %s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

/* ---- make ---- */

struct authority {
    char *key, *certificate;
    int64_t now_s;
};

static void put(const char *dir, const char *name, const char *text)
{
    char path[TEXT_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    if (!file || chmod(path, 0600) != 0 || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* One directory with key, certificate and CA, as tls.h wants it. */
static void furnish(const struct authority *ca, const char *dir, const char *const *names, size_t count, bool server)
{
    struct err err = ERR_INIT;
    struct pki_certificate facts;
    char *key, *request, *certificate;
    struct pki_terms terms = {.server = server,
                              .names = names,
                              .count = count,
                              .begin_s = ca->now_s - PKI_BACKDATE_S,
                              .end_s = ca->now_s + 365 * 86400};
    if (pki_key_create(&key, &err) || pki_request_create(key, names[0], &request, &err) ||
        pki_issue(ca->key, ca->certificate, request, &terms, &certificate, &err) ||
        pki_inspect(certificate, &facts, &err))
        die(names[0], &err);
    if (mkdir(dir, 0700) != 0) {
        perror(dir);
        exit(1);
    }
    put(dir, "host.key", key);
    put(dir, "host.crt", certificate);
    put(dir, "ca.crt", ca->certificate);
    if (!server)
        printf("%s %s %lld %lld\n", facts.serial, facts.name, (long long)facts.begin_s * 1000,
               (long long)facts.end_s * 1000);
    pki_key_free(key);
    free(request);
    free(certificate);
}

static int make(const char *dir, size_t count)
{
    char path[TEXT_MAX], name[32];
    struct err err = ERR_INIT;
    struct authority ca = {.now_s = time(NULL)};
    const char *elmer[] = {"queue", "127.0.0.1"}, *host[] = {name};
    if (pki_ca_create("fakehosts", ca.now_s - PKI_BACKDATE_S, ca.now_s + 3650L * 86400, &ca.key, &ca.certificate, &err))
        die("the CA", &err);
    snprintf(path, sizeof(path), "%s/pki", dir);
    furnish(&ca, path, elmer, 2, true);
    snprintf(path, sizeof(path), "%s/hosts", dir);
    if (mkdir(path, 0700) != 0)
        die(path, NULL);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "h%zu", i);
        snprintf(path, sizeof(path), "%s/hosts/%s", dir, name);
        furnish(&ca, path, host, 1, false);
    }
    pki_key_free(ca.key);
    free(ca.certificate);
    return 0;
}

/* ---- run: what a host says ---- */

static void say(struct fake *fake, const struct wire_message *message)
{
    link_send(fake->link, message);
}

static void say_hello(struct fake *fake)
{
    uint64_t cpu = 0;
    struct wire_message message = {.type = WIRE_host_hello, .id = 1};
    message.u.host_hello = (struct wire_host_hello){.host = fake->name,
                                                    .boot = fake->name,
                                                    .cpus = {&cpu, 1},
                                                    .mode = "rt",
                                                    .mode_reason = "",
                                                    .address = "",
                                                    .pvm = true};
    say(fake, &message);
}

static void say_report(struct fake *fake)
{
    double busy = 0.01, jobs = 0;
    struct wire_message message = {.type = WIRE_report};
    message.u.report = (struct wire_report){.interval_ms = fake->report_ms, .busy = {&busy, 1}, .jobs = {&jobs, 1}};
    message.u.report.heard = fake->heard;
    message.u.report.since_heard_ms = uv_now(&all.loop) - fake->heard_ms;
    say(fake, &message);
}

static void answer(struct fake *fake, const struct wire_message *m)
{
    struct wire_message out = {.type = WIRE_TYPE_COUNT, .id = m->id};
    switch ((int)m->type) {
    case WIRE_ping:
        out.type = WIRE_pong;
        fake->heard = m->id;
        fake->heard_ms = uv_now(&all.loop);
        break;
    case WIRE_order:
        out.type = WIRE_ordered;
        out.u.ordered.generation = m->u.order.generation;
        break;
    case WIRE_open:
        out.type = WIRE_opened;
        out.u.opened = (struct wire_opened){.job = m->u.open.job, .attempt = m->u.open.attempt};
        break;
    case WIRE_start:
        out.type = WIRE_started;
        out.u.started = (struct wire_started){
            .job = m->u.start.job, .attempt = m->u.start.attempt, .process = m->u.start.process, .pid = 1000};
        break;
    case WIRE_end:
        out.type = WIRE_empty;
        out.u.empty = (struct wire_empty){.job = m->u.end.job, .attempt = m->u.end.attempt, .memory_peak_bytes = -1};
        break;
    default:
        return;
    }
    say(fake, &out);
}

/* ---- run: links ---- */

static void dial_more(void);

static void on_ready(struct link *link, void *data)
{
    struct fake *fake = data;
    fake->link = link;
    say_hello(fake);
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct fake *fake = data;
    (void)link;
    if (message->type != WIRE_host_welcome) {
        answer(fake, message);
        return;
    }
    fake->report_ms = message->u.host_welcome.report_ms;
    fake->heard = 0;
    fake->heard_ms = uv_now(&all.loop);
    fake->next_report_ms = uv_now(&all.loop) + (uint64_t)random() % fake->report_ms;
    if (fake->welcomed)
        return;
    fake->welcomed = true;
    all.in_flight--;
    if (++all.welcomed == all.count) {
        puts("linked");
        fflush(stdout);
    }
    dial_more();
}

/* Told, not mended: a benchmark whose links end is void. */
static void on_close(struct link *link, const char *text, void *data)
{
    struct fake *fake = data;
    (void)link;
    printf("lost %s: %s\n", fake->name, text);
    fflush(stdout);
    exit(1);
}

static void dial(struct fake *fake)
{
    static const struct link_callbacks callbacks = {
        .on_ready = on_ready, .on_message = on_message, .on_close = on_close};
    struct err err = ERR_INIT;
    struct tls_context *tls;
    char path[TEXT_MAX];
    snprintf(path, sizeof(path), "%s/hosts/%s", all.dir, fake->name);
    if (tls_context_client(path, &tls, &err))
        die(fake->name, &err);
    struct link_options options = {
        .program = "fakehosts", .peer = WIRE_FROM_ELMER, .out_max = 1 << 24, .hello_timeout_ms = ANSWER_MS, .tls = tls};
    if (link_connect(&all.loop, all.address, ANSWER_MS, &options, &callbacks, fake, &fake->link, &err))
        die(fake->name, &err);
    tls_context_unref(tls);
}

static void dial_more(void)
{
    while (all.in_flight < IN_FLIGHT && all.next < all.count) {
        all.in_flight++;
        dial(&all.fakes[all.order[all.next++]]);
    }
}

static void on_tick(uv_timer_t *timer)
{
    uint64_t now = uv_now(timer->loop);
    for (size_t i = 0; i < all.count; i++) {
        struct fake *fake = &all.fakes[i];
        if (!fake->welcomed || now < fake->next_report_ms)
            continue;
        fake->next_report_ms += fake->report_ms;
        say_report(fake);
    }
}

static void on_end(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    exit(0);
}

static void shuffle(void)
{
    for (size_t i = 0; i < all.count; i++)
        all.order[i] = i;
    for (size_t i = all.count; i > 1; i--) {
        size_t k = (size_t)random() % i, kept = all.order[i - 1];
        all.order[i - 1] = all.order[k];
        all.order[k] = kept;
    }
}

static int run(const char *dir, size_t count, const char *address)
{
    all.dir = dir;
    all.address = address;
    all.count = count;
    all.fakes = calloc(count, sizeof(*all.fakes));
    all.order = calloc(count, sizeof(*all.order));
    if (!all.fakes || !all.order || uv_loop_init(&all.loop) != 0)
        die("starting", NULL);
    for (size_t i = 0; i < count; i++)
        snprintf(all.fakes[i].name, sizeof(all.fakes[i].name), "h%zu", i);
    signal(SIGPIPE, SIG_IGN);
    shuffle();
    uv_timer_init(&all.loop, &all.tick);
    uv_timer_start(&all.tick, on_tick, TICK_MS, TICK_MS);
    uv_signal_init(&all.loop, &all.end);
    uv_signal_start(&all.end, on_end, SIGTERM);
    dial_more();
    return uv_run(&all.loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    size_t count = argc >= 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (count >= 1 && count <= HOSTS_MAX && argc == 4 && strcmp(argv[1], "make") == 0)
        return make(argv[2], count);
    if (count >= 1 && count <= HOSTS_MAX && argc == 5 && strcmp(argv[1], "run") == 0)
        return run(argv[2], count, argv[4]);
    fputs("usage: fakehosts make DIR HOSTS | run DIR HOSTS ADDRESS\n", stderr);
    return 2;
}
