/* fuzz_spawn.c - elmer-spawn, all of it but what removes directories: requests of an rsd that has been taken over, with
 * any bytes, descriptors and grants of elmer-tickets, calls that fail, and what its children do up to exec. Every
 * path, user, group and capability is checked by what was asked and granted; no descriptor may stay open. All that is
 * dangerous is replaced (spawn_world.c), so it may run as anybody. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define main spawn_main     /* with its variables, which each input finds as they are at the start */
#include "rsd/spawn/main.c" /* NOLINT(bugprone-suspicious-include) */
#undef main

#include "rsd/sup/admit.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/spawn_world.h"

enum { MAX_REQUESTS = 24, TEXT = sizeof(((struct spawn_request *)0)->text) };

static struct input *input;
static struct spawn_request asked; /* the request that is served */
static size_t asked_size;
static int asked_fds, answers;
static struct ticket_grant told[GRANTS + 8], all[MAX_REQUESTS * 8];
static size_t told_count, told_at, all_count;
static bool granting;

/* ---- what may be ---- */

static bool has_grant(void)
{
    for (size_t i = all_count > GRANTS ? all_count - GRANTS : 0; i < all_count; i++) {
        if (all[i].job == asked.job && all[i].attempt == asked.attempt && all[i].uid == asked.uid)
            return true;
    }
    return false;
}

void spawn_world_birth(void)
{
    bool supervisor = asked.verb == SPAWN_SUPERVISOR;
    FUZZ_CHECK(asked_size == sizeof(asked), "a process for %zu bytes", asked_size);
    FUZZ_CHECK(supervisor || asked.verb == SPAWN_ESCAPES || asked.verb == SPAWN_REMOVE, "one for verb %u", asked.verb);
    if (!supervisor)
        return;
    FUZZ_CHECK(asked.job > 0 && asked.uid >= plan.minimum_uid, "as %u", asked.uid);
    for (size_t i = 0; i < SPAWN_OWN_USERS; i++)
        FUZZ_CHECK(asked.uid != plan.own[i], "as %u", asked.uid);
    FUZZ_CHECK(!plan.tickets_required || has_grant(), "%ju.%u of %u is not granted", (uintmax_t)asked.job,
               asked.attempt, asked.uid);
    FUZZ_CHECK(asked_fds == 2 && asked.text[0] && strnlen(asked.text, TEXT) < TEXT, "not all that it needs");
}

/* path: below the directory of groups. */
void spawn_world_group(const char *path, int flags)
{
    char wanted[3][96], name[48];
    const char *leaf = asked.verb == SPAWN_SIGNAL && strcmp(asked.text, "sup") != 0 ? "job" : "sup";
    snprintf(name, sizeof(name), "%ju.%u", (uintmax_t)asked.job, asked.attempt);
    snprintf(wanted[0], sizeof(wanted[0]), "%s/%s", name, leaf);
    snprintf(wanted[1], sizeof(wanted[1]), "%s/job", name);
    snprintf(wanted[2], sizeof(wanted[2]), "%s/%s/cgroup.procs", name, leaf);
    FUZZ_CHECK(asked.verb == SPAWN_SUPERVISOR
                   ? strcmp(path, wanted[0]) == 0 || (spawn_world_child() && strcmp(path, wanted[1]) == 0)
                   : asked.verb == SPAWN_SIGNAL && strcmp(path, wanted[2]) == 0,
               "%s for verb %u", path, asked.verb);
    FUZZ_CHECK((flags & O_NOFOLLOW) && (flags & O_CLOEXEC) && (flags & O_ACCMODE) == O_RDONLY, "%s by %#x", path,
               (unsigned)flags);
}

void spawn_world_file(const char *path, int flags)
{
    static const char *const rt = "/proc/sys/kernel/sched_rt_", *const fair = "/sys/kernel/debug/sched/fair_server/cpu";
    if (spawn_world_child() && (strcmp(path, "/dev/null") == 0 || strcmp(path, "/proc/self/oom_score_adj") == 0))
        return;
    FUZZ_CHECK(asked.verb == SPAWN_NUMBER && !spawn_world_child(), "%s for verb %u", path, asked.verb);
    FUZZ_CHECK((strncmp(path, rt, strlen(rt)) == 0 || strncmp(path, fair, strlen(fair)) == 0) && !strstr(path, ".."),
               "%s as a number", path);
    FUZZ_CHECK((flags & O_NOFOLLOW) && !(flags & (O_CREAT | O_TRUNC)), "%s by %#x", path, (unsigned)flags);
    FUZZ_CHECK((flags & O_ACCMODE) == (asked.set ? O_RDWR : O_RDONLY), "%s by %#x", path, (unsigned)flags);
}

void spawn_world_exec(const char *path, const struct spawn_ids *ids)
{
    const uint32_t setuid_bit = asked.verb == SPAWN_SUPERVISOR ? BIT(CAP_SETUID) : 0;
    FUZZ_CHECK(strcmp(path, asked.verb == SPAWN_SUPERVISOR ? plan.supervisor : plan.escapes) == 0, "%s", path);
    FUZZ_CHECK(ids->uid == plan.supervisor_uid && ids->capabilities == (setuid_bit | BIT(CAP_SYS_NICE)),
               "uid %u with %#x", ids->uid, ids->capabilities);
    FUZZ_CHECK(ids->leaf == (asked.verb == SPAWN_SUPERVISOR), "not in the group of the job, or in one");
    if (asked.verb == SPAWN_ESCAPES)
        FUZZ_CHECK(ids->gid == plan.jobs_gid && ids->groups == 0 && ids->open == 3, "gid %u, %d groups, %d open",
                   ids->gid, ids->groups, ids->open);
    else
        FUZZ_CHECK(ids->gid == asked.uid + 1 && ids->groups == 1 && ids->open == 6 && ids->made == asked.uid &&
                       ids->given == 2,
                   "gid %u, %d groups, %d open", ids->gid, ids->groups, ids->open);
}

/* ---- what its children ask, in place of user.c, admit.c and tmpdir.c ---- */

int user_lookup(struct user *user, const char *name, uid_t uid, struct err *err)
{
    static gid_t group;
    FUZZ_CHECK(spawn_world_child() && uid == asked.uid && strcmp(name, asked.text) == 0, "%s is looked up", name);
    if (spawn_world_fails())
        return err_set(err, -ENOENT, "user %s is \"not\" known\\\n", name);
    group = uid + 1;
    *user = (struct user){uid, group, &group, 1, (char *)name, (char *)"/home", (char *)"/bin/sh"};
    return 0;
}

int admit(const struct user *user, bool rt, struct err *err)
{
    char *text;
    int result = 0;
    (void)rt;
    FUZZ_CHECK(user->uid == asked.uid && !getenv("ELMER_DENY_USERS") == !asked.ask_lists &&
                   !getenv("ELMER_ACCOUNT") == !asked.ask_account,
               "not asked as it should be");
    if (!spawn_world_fails())
        return 0;
    text = input_line(input); /* of PAM */
    result = err_set(err, -EKEYREJECTED, "%s", text);
    free(text);
    return result;
}

static void check_name(int parent_fd, const char *name)
{
    char wanted[48];
    snprintf(wanted, sizeof(wanted), "%ju.%u", (uintmax_t)asked.job, asked.attempt);
    FUZZ_CHECK(strcmp(name, wanted) == 0 && spawn_world_is_tmp(parent_fd), "the directory %s", name);
}

int tmpdir_make(int parent_fd, const char *name, uid_t uid, gid_t gid, struct err *err)
{
    check_name(parent_fd, name);
    FUZZ_CHECK(uid == asked.uid && gid == asked.uid + 1, "a directory of %u", uid);
    if (spawn_world_fails())
        return err_set(err, -EEXIST, "there is one");
    spawn_world_made(uid);
    return 0;
}

int tmpdir_sweep(int parent_fd, const char *name)
{
    check_name(parent_fd, name);
    FUZZ_CHECK(asked.verb == SPAWN_REMOVE, "removed by verb %u", asked.verb);
    return spawn_world_fails() ? -ENOTEMPTY : 0;
}

int tmpdir_remove(int parent_fd, const char *name, unsigned patience)
{
    check_name(parent_fd, name);
    FUZZ_CHECK(asked.verb == SPAWN_REMOVE && spawn_world_child() && patience > 0, "removed by verb %u", asked.verb);
    return spawn_world_fails() ? -EIO : 0;
}

/* ---- the line ---- */

bool spawn_world_grant(void *data, size_t size)
{
    if (told_at == told_count)
        return false;
    FUZZ_CHECK(size == sizeof(told[0]), "a grant of %zu bytes", size);
    all[all_count++] = told[told_at];
    memcpy(data, &told[told_at++], size);
    return true;
}

int spawn_world_grants(void)
{
    return told_at < told_count ? POLLIN : granting ? 0 : POLLHUP;
}

size_t spawn_world_request(void *data, size_t size, int *fds)
{
    FUZZ_CHECK(size == sizeof(asked) && told_at == told_count, "asked before grants are heard");
    memcpy(data, &asked, asked_size);
    *fds = asked_fds;
    return asked_size;
}

void spawn_world_answer(const void *data, size_t size, bool pidfd)
{
    struct spawn_answer answer;
    FUZZ_CHECK(size == sizeof(answer), "an answer of %zu bytes", size);
    memcpy(&answer, data, size);
    FUZZ_CHECK(answer.result <= 0 && (answer.pid > 0 || !pidfd), "result %d, pid %d", answer.result, answer.pid);
    FUZZ_CHECK(answer.pid <= 0 || answer.result == 0, "started, and refused: %d", answer.result);
    answers++;
}

/* ---- what happens ---- */

static void draw_text(char *text)
{
    static const char *const usual[] = {"alice",
                                        "sup",
                                        "job",
                                        "",
                                        "/proc/sys/kernel/sched_rt_runtime_us",
                                        "/sys/kernel/debug/sched/fair_server/cpu0/runtime",
                                        "/proc/sys/kernel/sched_rt_/../../../../etc/shadow"};
    size_t what = input_below(input, 10);
    char *line;
    if (what < 7) {
        snprintf(text, TEXT, "%s", usual[what]);
        return;
    }
    line = input_line(input);
    if (what == 7)
        snprintf(text, TEXT, "%s", line);
    else if (what == 8)
        snprintf(text, TEXT, "/proc/sys/kernel/sched_rt_%.200s", line);
    else /* without an end */
        for (size_t i = 0; i < TEXT; i++)
            text[i] = *line ? line[i % strlen(line)] : 'x';
    free(line);
}

static uint32_t draw_uid(void)
{
    const uint32_t uids[] = {2001,       2002,  2001,  0,    plan.minimum_uid - 1, plan.supervisor_uid, plan.jobs_uid,
                             UINT32_MAX, 65531, 65530, 65529};
    return uids[input_below(input, sizeof(uids) / sizeof(uids[0]))];
}

static void draw_request(void)
{
    uint8_t shape = input_byte(input);
    memset(&asked, 0, sizeof(asked));
    asked_size = sizeof(asked);
    if (shape >= 224) { /* any bytes */
        size_t size = input->left < sizeof(asked) ? input->left : sizeof(asked);
        memcpy(&asked, input->at, size);
        input->at += size;
        input->left -= size;
        asked_size = shape >= 248 ? size : sizeof(asked);
    } else {
        asked.verb = shape < 128 ? SPAWN_SUPERVISOR : (uint32_t)input_below(input, 6);
        asked.job = input_below(input, 4);
        asked.attempt = (uint32_t)input_below(input, 3);
        asked.uid = draw_uid();
        asked.signal = (uint32_t)input_number(input, UINT32_MAX);
        asked.lease_ms = (int64_t)input_number(input, INT64_MAX);
        asked.value = (int64_t)input_number(input, INT64_MAX);
        asked.set = (uint8_t)input_below(input, 3);
        asked.ask_lists = (uint8_t)input_below(input, 3);
        asked.ask_account = (uint8_t)input_below(input, 3);
        draw_text(asked.text);
    }
    asked_fds = (int)(shape % 8 < 7 ? 2 : input_below(input, MAX_FDS + 1));
}

static void draw_grants(void)
{
    told_at = told_count = 0;
    if (!granting)
        return;
    for (size_t count = input_below(input, 4); told_count < count; told_count++)
        told[told_count] = (struct ticket_grant){
            .job = input_below(input, 4), .attempt = (uint32_t)input_below(input, 3), .uid = draw_uid()};
}

static void begin(void)
{
    memset(&plan, 0, sizeof(plan));
    plan.minimum_uid = 1000;
    plan.supervisor_uid = 65533;
    plan.jobs_uid = plan.jobs_gid = 65532;
    memcpy(plan.own, (const uint32_t[]){65533, 65532, 65531, 65530, 65529, 0}, sizeof(plan.own));
    plan.tickets_required = input_below(input, 4) > 0;
    snprintf(plan.supervisor, sizeof(plan.supervisor), "/fuzz/supervisor");
    snprintf(plan.escapes, sizeof(plan.escapes), "/fuzz/escapes");
    snprintf(plan.account, sizeof(plan.account), "/fuzz/account");
    for (size_t i = 0; i < RSD_HELPERS; i++)
        snprintf(plan.helpers[i], sizeof(plan.helpers[i]), "HELPER=/fuzz/helper");
    snprintf(plan.deny_users, sizeof(plan.deny_users), "carol");
    memset(grants, 0, sizeof(grants));
    granted_next = 0;
    from[1].fd = SPAWN_FD_GRANTS;
    all_count = 0;
    granting = true;
}

/* false: it ends. */
static bool serve(void)
{
    bool on;
    if (setjmp(spawn_world_end) != 0)
        return true; /* a child has ended */
    on = serve_one();
    FUZZ_CHECK(!on || spawn_world_open() == 0, "%d descriptors stay open", spawn_world_open());
    FUZZ_CHECK(answers == (asked_size == sizeof(asked) ? 1 : 0) && on == (answers == 1), "%d answers", answers);
    return on;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input whole = {data, size};
    input = &whole;
    begin();
    for (unsigned i = 0; i < MAX_REQUESTS && whole.left > 0; i++) {
        bool on;
        granting = granting && input_byte(input) < 250;
        draw_grants();
        draw_request();
        answers = 0;
        spawn_world_begin(input);
        on = serve();
        spawn_world_done();
        unsetenv("ELMER_DENY_USERS");
        unsetenv("ELMER_DENY_GROUPS");
        unsetenv("ELMER_ACCOUNT");
        if (!on)
            break;
    }
    return 0;
}
