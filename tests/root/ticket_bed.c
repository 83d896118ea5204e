#include "config.h"

#include "tests/root/ticket_bed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/scratch.h"

char work[100];
static char key_dir[64];
char text[TICKET_TEXT_MAX + 1];
struct ticket_keys keys;
struct ticket_counter counter;

const char *command[3] = {"/bin/sh", "-c", "echo ran >>ran"};
const char *given[2] = {"PATH=/usr/bin:/bin", "LANG=C"};
static const char *at_start[] = {"PATH=/usr/bin:/bin", "LANG=C", "ELMER_RANK=0", "ELMER_JOB_NAME=s"};

/* ---- a cluster of this host and the one where users submit ---- */

/* Which has the key from here on; we sign with a copy, and numbers that it has not. */
void give_to_program(void)
{
    static const char *const names[] = {"", "/used", "/key", "/counter", "/certificate"};
    char path[100];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", key_dir, names[i]);
        if (access(path, F_OK) == 0)
            assert_int_equal(chown(path, RIG_TICKET_UID, RIG_TICKET_UID), 0);
    }
}

static void begin(bool required)
{
    struct err err = ERR_INIT;
    rig = (struct rig){.tickets_required = required};
    snprintf(key_dir, sizeof(key_dir), "/tmp/test_tickets.XXXXXX");
    assert_non_null(scratch_dir(key_dir));
    snprintf(rig.keys, sizeof(rig.keys), "%s", key_dir);
    assert_int_equal(ticket_keys_open(&keys, key_dir, "testhost", &err), 0);
    counter = (struct ticket_counter){0};
    assert_int_equal(ticket_counter_next(&keys, &counter, 1, &(uint64_t){0}, &err), 0);
    give_to_program();
    rig_up(&rig);
    snprintf(work, sizeof(work), "%s/work", rig.dir);
}

int up(void **state)
{
    (void)state;
    begin(true);
    return 0;
}

int up_accepting(void **state)
{
    (void)state;
    begin(false);
    return 0;
}

int down(void **state)
{
    (void)state;
    rig_down(&rig);
    ticket_keys_close(&keys);
    return 0;
}

struct wire_submit submission(void)
{
    return (struct wire_submit){.token = "t",
                                .name = "s",
                                .nprocs = 2,
                                .command = STRS(command),
                                .environment = STRS(given),
                                .dir = work,
                                .output = "out-%j",
                                .errors = "",
                                .umask = 022};
}

/* As the desk does for nobody; what is wanted beside the submission is changed before. */
const char *sign(const struct wire_submit *submit)
{
    struct err err = ERR_INIT;
    if (desk_sign(&keys, &counter, submit, NOBODY, "nobody", text, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

/* ---- what elmer says ---- */

struct wire_message open_of(uint64_t job, uint32_t attempt, const char *ticket)
{
    struct wire_message message = {.type = WIRE_open};
    message.u.open.job = job;
    message.u.open.attempt = attempt;
    message.u.open.uid = NOBODY;
    message.u.open.user = "nobody";
    message.u.open.cpus = (struct wire_uints){&rig.cpu, 1};
    message.u.open.ticket = ticket;
    return message;
}

void expect_refusal(const struct wire_message *open, enum ticket_refusal why)
{
    struct wire_message answer;
    char name[60];
    rig_send(&rig, open);
    rig_expect(&rig, WIRE_open_failed, WAIT_MS, &answer);
    snprintf(name, sizeof(name), "(ticket %s)", ticket_refusal_name(why));
    if (!strstr(answer.u.open_failed.text, name))
        fail_msg("not %s: %s", name, answer.u.open_failed.text);
    wire_message_fini(&answer);
}

void refused(uint64_t job, uint32_t attempt, const char *ticket, enum ticket_refusal why)
{
    struct wire_message message = open_of(job, attempt, ticket);
    expect_refusal(&message, why);
}

void opened(uint64_t job, uint32_t attempt, const char *ticket)
{
    struct wire_message message = open_of(job, attempt, ticket), answer;
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_opened, WAIT_MS, &answer);
    wire_message_fini(&answer);
}

struct wire_message start_of(uint64_t job, uint32_t attempt)
{
    static char output[40];
    struct wire_message message = {.type = WIRE_start};
    snprintf(output, sizeof(output), "out-%" PRIu64, job);
    message.u.start.job = job;
    message.u.start.attempt = attempt;
    message.u.start.role = "command";
    message.u.start.argv = STRS(command);
    message.u.start.environment = STRS(at_start);
    message.u.start.dir = work;
    message.u.start.output = message.u.start.errors = output;
    message.u.start.umask = 022;
    message.u.start.cpus = (struct wire_uints){&rig.cpu, 1};
    return message;
}

void not_started(const struct wire_message *start, enum ticket_refusal why)
{
    struct wire_message answer;
    char name[60], path[120];
    rig_send(&rig, start);
    rig_expect(&rig, WIRE_start_failed, WAIT_MS, &answer);
    snprintf(name, sizeof(name), "(ticket %s)", ticket_refusal_name(why));
    if (!strstr(answer.u.start_failed.text, name))
        fail_msg("not %s: %s", name, answer.u.start_failed.text);
    wire_message_fini(&answer);
    snprintf(path, sizeof(path), "%s/ran", work);
    assert_int_not_equal(access(path, F_OK), 0);
}

void runs_as(uint64_t job, uint32_t attempt, uint32_t process)
{
    struct wire_message start = start_of(job, attempt), answer;
    start.u.start.process = process;
    rig_send(&rig, &start);
    for (bool ours = false; !ours;) { /* others are told again to a new root half's network half */
        rig_expect(&rig, WIRE_exited, WAIT_MS, &answer);
        ours = answer.u.exited.job == job && answer.u.exited.process == process;
        assert_true(!ours || answer.u.exited.exit_status == 0);
        wire_message_fini(&answer);
    }
}

void runs(uint64_t job, uint32_t attempt)
{
    runs_as(job, attempt, 0);
}

void ended(uint64_t job, uint32_t attempt)
{
    struct wire_message end = {.type = WIRE_end, .u.end = {.job = job, .attempt = attempt}}, answer;
    struct wire_message forget = {.type = WIRE_forget, .u.forget = {.job = job, .attempt = attempt}};
    rig_send(&rig, &end);
    rig_expect(&rig, WIRE_empty, WAIT_MS, &answer);
    wire_message_fini(&answer);
    rig_send(&rig, &forget);
}

size_t lines_of(const char *name)
{
    char path[120];
    size_t lines = 0;
    FILE *file;
    snprintf(path, sizeof(path), "%s/%s", work, name);
    file = fopen(path, "r");
    for (int c; file && (c = getc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}
