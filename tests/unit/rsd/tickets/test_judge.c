/* test_judge.c - what the root half hears of a job's ticket, and what is recorded then. What tickets refuse is in
 * tests/unit/lib/ticket, with a root half in tests/root/test_tickets. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/tickets/desk.h"
#include "rsd/tickets/judge.h"
#include "rsd/tickets/record.h"
#include "tests/unit/scratch.h"

static struct ticket_keys keys;
static struct ticket_counter counter;
static struct judge judge_;
static int records = -1; /* where the recorder would read */
static char text[TICKET_TEXT_MAX + 1];

static int setup(void **state)
{
    char dir[64] = "/tmp/test_judge.XXXXXX";
    struct err err = ERR_INIT;
    int ends[2];
    (void)state;
    assert_non_null(scratch_dir(dir));
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    counter = (struct ticket_counter){0};
    judge_ = (struct judge){
        .window = ticket_window_create(), .hosts = "all", .users = "all", .record_fd = ends[1], .grant_fd = -1};
    ticket_keys_trust(&keys, &judge_.trust);
    records = ends[0];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ticket_window_destroy(judge_.window);
    close(judge_.record_fd);
    if (records >= 0)
        close(records);
    ticket_keys_close(&keys);
    return 0;
}

/* What is sent to be signed, and what a start comes with. */
static const char *asked_variables[2], *variables[4];
static uint64_t job = 1;

static size_t count_of(const char *const *list, size_t max)
{
    size_t count = 0;
    while (count < max && list[count])
        count++;
    return count;
}

static void sign_by(const struct ticket_keys *signer)
{
    static const char *command[] = {"/bin/true"};
    struct wire_submit submit = {.token = "t",
                                 .name = "x",
                                 .nprocs = 1,
                                 .command = {command, 1},
                                 .dir = "/d",
                                 .umask = 022,
                                 .output = "o",
                                 .errors = "",
                                 .environment = {asked_variables, count_of(asked_variables, 2)}};
    struct err err = ERR_INIT;
    if (desk_sign(signer, &counter, &submit, 1000, "alice", text, &err) < 0)
        fail_msg("%s", err.text);
}

static void sign(void)
{
    sign_by(&keys);
}

/* As it comes from the socket. */
static struct ticket_verdict ask(enum ticket_verb verb, const char *user, uint32_t attempt, bool begun, const char *dir)
{
    char bytes[TICKET_TEXT_MAX + 200];
    size_t envc = verb == TICKET_ASK_START ? count_of(variables, 4) : 0;
    const char *texts[] = {text,        user,         dir,          "o",          "o",         "/run/jobs/1.1",
                           "/bin/true", variables[0], variables[1], variables[2], variables[3]};
    struct ticket_ask asked = {.verb = verb,
                               .envc = (uint32_t)envc,
                               .job = job,
                               .attempt = attempt,
                               .uid = 1000,
                               .processors = 1,
                               .umask = 022,
                               .argc = 1,
                               .begun = begun};
    struct ticket_verdict verdict;
    for (size_t i = 0; i < 7 + envc; i++) {
        memcpy(bytes + asked.size, texts[i], strlen(texts[i]) + 1);
        asked.size += (uint32_t)strlen(texts[i]) + 1;
    }
    judge(&judge_, &asked, bytes, &verdict);
    assert_string_equal(verdict.name, ticket_refusal_name((enum ticket_refusal)verdict.why));
    return verdict;
}

static bool is_recorded(void)
{
    struct record record;
    return read(records, &record, sizeof(record)) == (ssize_t)sizeof(record);
}

static void a_ticket_is_used_by_the_first_start(void **state)
{
    struct ticket_verdict verdict;
    (void)state;
    sign();
    verdict = ask(TICKET_ASK_OPEN, "alice", 1, false, "/d");
    assert_int_equal(verdict.why, TICKET_GOOD);
    assert_true(verdict.ours);
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/other").why, TICKET_OTHER_PLACE);
    assert_false(is_recorded());
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
    assert_true(is_recorded());
    assert_int_equal(ask(TICKET_ASK_START, "", 1, true, "/d").why, TICKET_GOOD); /* the job goes on */
    assert_false(is_recorded());
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_USED);
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_USED);
}

/* As judge_all() does it when somebody else asks. */
static void connect_anew(void)
{
    judge_.unsure = judge_.last;
}

/* elmer-tickets or rsd ends between the mark and what rsd keeps of the answer. */
static void who_may_not_have_heard_the_answer_may_ask_again(void **state)
{
    char first[sizeof(text)];
    (void)state;
    sign();
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_USED); /* it has been answered */
    connect_anew();
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/other").why, TICKET_OTHER_PLACE);
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_USED);
    job = 2;
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_USED);
    job = 1;
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_USED); /* once */
    connect_anew();                                                               /* nor has this answer been heard */
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
    memcpy(first, text, sizeof(first));
    sign();
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
    connect_anew();
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
    memcpy(text, first, sizeof(text));
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_USED);
}

static void without_a_recorder_nothing_is_decided(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    sign();
    close(records);
    records = -1;
    ask(TICKET_ASK_START, "", 1, false, "/d");
    assert_true(judge_.recorder_gone);
}

static void what_cannot_be_recorded_is_not_started(void **state)
{
    char bytes[4096] = {0};
    (void)state;
    sign();
    fcntl(judge_.record_fd, F_SETPIPE_SZ, sizeof(bytes));
    assert_int_equal(write(judge_.record_fd, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_NOT_RECORDED);
    assert_true(read(records, bytes, sizeof(bytes)) == sizeof(bytes) && !judge_.recorder_gone);
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD); /* nothing has used it */
}

static void only_other_hosts_have_to_be_believed(void **state)
{
    (void)state;
    sign();
    judge_.hosts = judge_.users = "";
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_GOOD);
    assert_int_equal(ask(TICKET_ASK_OPEN, "bob", 1, false, "").why, TICKET_OTHER_USER);
    assert_true(ticket_is_among("all", "ws2") && ticket_is_among("ws1 ws2", "ws2") &&
                ticket_is_among("all !ws1", "ws2"));
    assert_false(ticket_is_among("", "ws2") || ticket_is_among("ws22 ws", "ws2") || ticket_is_among("all !ws2", "ws2"));
    assert_false(ticket_is_among("!ws2 all", "ws2") || ticket_is_among("!ws1", "ws2"));
}

/* A host's key is certified while elmer-tickets runs: eadmin init on a queue host that had no cluster before. */
static void a_certificate_that_comes_later_counts(void **state)
{
    struct ticket_keys other = keys, elsewhere;
    uint8_t secret[TICKET_KEY_BYTES], authority[TICKET_KEY_BYTES], certificate[TICKET_SIGNATURE_BYTES];
    uint8_t bytes[TICKET_BYTES_MAX];
    struct err err = ERR_INIT;
    (void)state;
    judge_.keys = &keys;
    assert_true(ticket_key_create(secret, authority));
    snprintf(other.host, sizeof(other.host), "ws2");
    other.signer = NULL;
    assert_true(ticket_key_create(other.secret, other.key));
    assert_true(ticket_sign_bytes(secret, bytes, ticket_certified_bytes("ws2", other.key, bytes), other.certificate));
    sign_by(&other);
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_OTHER_CLUSTER);
    assert_true(ticket_sign_bytes(secret, bytes, ticket_certified_bytes("ws1", keys.key, bytes), certificate));
    elsewhere = keys;
    assert_int_equal(ticket_keys_certify(&elsewhere, authority, certificate, &err), 0);
    assert_false(keys.certified);
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_GOOD);
    assert_true(keys.certified);
}

/* ---- elmer-spawn, which joins again ---- */

static int waiting[4], next_waiting, waited_ms;

static int next_grantee(int wait_ms)
{
    waited_ms += wait_ms;
    return next_waiting > 0 ? waiting[--next_waiting] : -1;
}

static int spawn_joins(void)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    waiting[next_waiting++] = pair[1];
    return pair[0];
}

static bool is_granted(int fd)
{
    struct ticket_grant grant;
    return recv(fd, &grant, sizeof(grant), MSG_DONTWAIT) == (ssize_t)sizeof(grant) && grant.job == job &&
           grant.attempt == 1 && grant.uid == 1000;
}

static void grants_go_to_who_has_joined_last(void **state)
{
    int first, second, third;
    (void)state;
    sign();
    judge_.next_grantee = next_grantee;
    first = spawn_joins();
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_GOOD);
    assert_true(is_granted(first));
    second = spawn_joins(); /* begun anew, while the first is still open */
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_GOOD);
    assert_false(is_granted(first));
    assert_true(is_granted(second));
    close(second);
    third = spawn_joins();
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_GOOD);
    assert_true(is_granted(third));
    close(first);
    close(third);
}

static void without_anybody_to_grant_to_nothing_is_opened(void **state)
{
    int fd;
    (void)state;
    sign();
    judge_.next_grantee = next_grantee;
    waited_ms = 0;
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_NOT_RECORDED);
    assert_in_range(waited_ms, GRANTEE_MS, 2 * GRANTEE_MS);
    fd = spawn_joins();
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_GOOD);
    assert_true(is_granted(fd));
    close(fd);
    waited_ms = 0;
    assert_int_equal(ask(TICKET_ASK_OPEN, "alice", 1, false, "").why, TICKET_NOT_RECORDED);
    assert_in_range(waited_ms, GRANTEE_MS, 2 * GRANTEE_MS);
    assert_int_equal(ask(TICKET_ASK_OPEN, "bob", 1, false, "").why, TICKET_OTHER_USER); /* nobody is asked for */
}

/* As the task with this number and this index. */
static enum ticket_refusal ask_task(enum ticket_verb verb, const char *number, const char *index, const char *array,
                                    uint32_t attempt)
{
    static char signed_text[sizeof(text)], index_of[40], array_of[40];
    enum ticket_refusal why;
    snprintf(signed_text, sizeof(signed_text), "%s", text);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", number);
    snprintf(index_of, sizeof(index_of), "ELMER_ARRAY_INDEX=%s", index);
    snprintf(array_of, sizeof(array_of), "ELMER_ARRAY_ID=%s", array);
    variables[0] = *array ? array_of : NULL;
    variables[1] = *array && *index ? index_of : NULL;
    why = ask(verb, verb == TICKET_ASK_OPEN ? "alice" : "", attempt, false, "/d").why;
    memcpy(text, signed_text, sizeof(text));
    variables[0] = variables[1] = NULL;
    return why;
}

static void each_task_of_an_array_is_used_once(void **state)
{
    static char early[sizeof(text)];
    (void)state;
    sign();
    memcpy(early, text, sizeof(early));
    asked_variables[0] = TASKS_VARIABLE "=3-9:2,20%2"; /* 3 5 7 9 20 */
    sign();
    asked_variables[0] = NULL;
    job = 40 + 2; /* of the array 40, the second */
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "", "", "", 1), TICKET_NO_SUCH_TASK);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/6", "", "", 1), TICKET_NO_SUCH_TASK);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/0", "", "", 1), TICKET_GARBLED);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/02", "", "", 1), TICKET_GARBLED);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/", "", "", 1), TICKET_GARBLED);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/2/3", "", "", 1), TICKET_GARBLED);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/4294967298", "", "", 1), TICKET_GARBLED);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/2", "", "", 1), TICKET_GOOD);
    assert_int_equal(ask_task(TICKET_ASK_START, "", "5", "40", 1), TICKET_NO_SUCH_TASK);
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "7", "40", 1), TICKET_ADDED_VARIABLE);
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "05", "40", 1), TICKET_ADDED_VARIABLE);
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "$(id)", "40", 1), TICKET_ADDED_VARIABLE);
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "5", "41", 1), TICKET_ADDED_VARIABLE);
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "", "40", 1), TICKET_ADDED_VARIABLE);
    variables[2] = "ELMER_ARRAY_INDEX=5";
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "5", "40", 1), TICKET_ADDED_VARIABLE);
    variables[2] = TASKS_VARIABLE "=1-9";
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "5", "40", 1), TICKET_ADDED_VARIABLE);
    variables[2] = NULL;
    assert_false(is_recorded());
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "5", "40", 1), TICKET_GOOD);
    assert_true(is_recorded());
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "5", "40", 1), TICKET_USED);
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/2", "", "", 1), TICKET_USED);
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "5", "40", 2), TICKET_USED); /* nobody asked for --requeue */
    job = 90 + 2;                                                                  /* another array of another elmer */
    assert_int_equal(ask_task(TICKET_ASK_START, "/2", "5", "90", 1), TICKET_USED);
    job = 40 + 5;
    assert_int_equal(ask_task(TICKET_ASK_START, "/5", "20", "40", 1), TICKET_GOOD);
    assert_int_equal(ask_task(TICKET_ASK_START, "/5", "20", "40", 1), TICKET_USED);
    job = 1;
    sign(); /* the numbers of the array's tasks are theirs alone */
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
    memcpy(text, early, sizeof(text));
    assert_int_equal(ask_task(TICKET_ASK_OPEN, "/1", "", "", 1), TICKET_NO_SUCH_TASK);
    variables[0] = "ELMER_ARRAY_INDEX=5"; /* or its {} would be something else */
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_ADDED_VARIABLE);
    variables[0] = NULL;
    assert_int_equal(ask(TICKET_ASK_START, "", 1, false, "/d").why, TICKET_GOOD);
}

/* As ask_task(), with the line and its proof. */
static enum ticket_refusal ask_line(const char *number, const char *proof, const char *index, const char *line)
{
    static char behind[40 + 2 * TREE_PROOF_MAX * TREE_DIGEST_BYTES], entry[80];
    enum ticket_refusal why;
    snprintf(behind, sizeof(behind), "%s%s%s", number, *proof ? "/" : "", proof);
    snprintf(entry, sizeof(entry), "ELMER_ARRAY_LINE=%s", line);
    variables[2] = *line ? entry : NULL;
    why = ask_task(TICKET_ASK_START, behind, index, "40", 1);
    variables[2] = NULL;
    return why;
}

static const char *proof_of(const struct tree *tree, uint32_t place)
{
    static char digits[2 * TREE_PROOF_MAX * TREE_DIGEST_BYTES + 1];
    uint8_t proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES];
    int count = tree_proof(tree, place, proof);
    for (size_t i = 0; i < (size_t)count * TREE_DIGEST_BYTES; i++)
        snprintf(digits + 2 * i, 3, "%02x", proof[i / TREE_DIGEST_BYTES][i % TREE_DIGEST_BYTES]);
    return digits;
}

/* elmer may give no task the line of another one, or one of its own making. */
static void a_task_has_the_line_that_was_signed(void **state)
{
    static char without[sizeof(text)], proof[2][2 * TREE_PROOF_MAX * TREE_DIGEST_BYTES + 1];
    const char lines[] = "a 1\nb 2\nc 3\nd 4\ne 5\n";
    struct tree *tree = tree_create(lines);
    (void)state;
    asked_variables[0] = TASKS_VARIABLE "=3-9:2,20%2"; /* 3 5 7 9 20 */
    sign();
    memcpy(without, text, sizeof(without));
    asked_variables[1] = "ELMER_ARRAY_LINES=a 1\nb 2\nc 3\nd 4\ne 5\n";
    sign();
    asked_variables[0] = asked_variables[1] = NULL;
    snprintf(proof[0], sizeof(proof[0]), "%s", proof_of(tree, 1));
    snprintf(proof[1], sizeof(proof[1]), "%s", proof_of(tree, 4));
    job = 40 + 2;
    assert_int_equal(ask_line("/2", "", "5", ""), TICKET_OTHER_LINE);
    assert_int_equal(ask_line("/2", "", "5", "b 2"), TICKET_OTHER_LINE);
    assert_int_equal(ask_line("/2", proof[0], "5", ""), TICKET_OTHER_LINE);
    assert_int_equal(ask_line("/2", proof[0], "5", "b 2; id"), TICKET_OTHER_LINE);
    assert_int_equal(ask_line("/2", proof[1], "5", "e 5"), TICKET_OTHER_LINE);
    assert_int_equal(ask_line("/2", proof_of(tree, 0), "5", "a 1"), TICKET_OTHER_LINE);
    assert_int_equal(ask_line("/2", "00", "5", "b 2"), TICKET_GARBLED);
    assert_int_equal(ask_line("/2/", proof[0], "5", "b 2"), TICKET_GARBLED);
    variables[3] = "ELMER_ARRAY_LINE=b 2";
    assert_int_equal(ask_line("/2", proof[0], "5", "b 2"), TICKET_OTHER_LINE); /* twice: which one counts? */
    variables[3] = "ELMER_ARRAY_LINES=b 2";
    assert_int_equal(ask_line("/2", proof[0], "5", "b 2"), TICKET_ADDED_VARIABLE);
    variables[3] = NULL;
    assert_false(is_recorded());
    assert_int_equal(ask_line("/2", proof[0], "5", "b 2"), TICKET_GOOD);
    assert_int_equal(ask_line("/2", proof[0], "5", "b 2"), TICKET_USED);
    job = 40 + 5;
    assert_int_equal(ask_line("/5", proof[1], "20", "e 5"), TICKET_GOOD);
    memcpy(text, without, sizeof(text)); /* an array without lines has none */
    job = 40 + 1;
    assert_int_equal(ask_line("/1", "", "3", "a 1"), TICKET_ADDED_VARIABLE);
    assert_int_equal(ask_line("/1", proof[0], "3", ""), TICKET_GARBLED);
    assert_int_equal(ask_line("/1", "", "3", ""), TICKET_GOOD);
    tree_destroy(tree);
    job = 1;
}

static bool remembers(int used, enum ticket_refusal wanted, uint32_t task)
{
    static struct ticket ticket;
    struct ticket_window *window = ticket_window_create();
    struct err err = ERR_INIT;
    bool does;
    assert_int_equal(ticket_decode(text, &ticket), TICKET_GOOD);
    ticket.task = task;
    assert_int_equal(record_load(used, window, &err), 0);
    does = ticket_window_check(window, &ticket, 1) == wanted;
    ticket_window_destroy(window);
    return does;
}

/* By the recorder, in the file that the next start reads. */
static void tasks_of_a_long_array_are_remembered(void **state)
{
    char dir[64] = "/tmp/test_judge.XXXXXX";
    int used, fd, kept = judge_.record_fd;
    struct record_user last;
    pid_t recorder;
    (void)state;
    assert_non_null(scratch_dir(dir));
    used = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    record_load_last(used, &last);
    assert_int_equal(last.job, 0);
    assert_true((recorder = record_start(used, &fd)) > 0);
    judge_.record_fd = fd;
    asked_variables[0] = TASKS_VARIABLE "=1-100000%8";
    sign();
    asked_variables[0] = NULL;
    job = 40 + 5000;
    assert_int_equal(ask_task(TICKET_ASK_START, "/5000", "5000", "40", 1), TICKET_GOOD);
    assert_int_equal(ask_task(TICKET_ASK_START, "/5000", "5000", "40", 1), TICKET_USED);
    connect_anew();
    job = 9000;
    assert_int_equal(ask_task(TICKET_ASK_START, "/5002", "5002", "3998", 1), TICKET_GOOD);
    job = 40 + 5000; /* it may be started again, but with its own task of the sheet */
    assert_int_equal(ask_task(TICKET_ASK_START, "/5002", "5002", "38", 1), TICKET_USED);
    assert_int_equal(ask_task(TICKET_ASK_START, "/5000", "5000", "40", 1), TICKET_GOOD);
    job = 1;
    judge_.record_fd = kept;
    close(fd);
    assert_int_equal(waitpid(recorder, NULL, 0), recorder);
    assert_true(remembers(used, TICKET_USED, 5000));
    assert_true(remembers(used, TICKET_GOOD, 5001));
    assert_true(remembers(used, TICKET_GOOD, 1));
    record_load_last(used, &last);
    assert_memory_equal(&last, &judge_.last, sizeof(last));
    assert_int_equal(last.job, 9000);
    close(used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_ticket_is_used_by_the_first_start),   TEST(who_may_not_have_heard_the_answer_may_ask_again),
        TEST(without_a_recorder_nothing_is_decided), TEST(what_cannot_be_recorded_is_not_started),
        TEST(only_other_hosts_have_to_be_believed),  TEST(a_certificate_that_comes_later_counts),
        TEST(grants_go_to_who_has_joined_last),      TEST(without_anybody_to_grant_to_nothing_is_opened),
        TEST(each_task_of_an_array_is_used_once),    TEST(a_task_has_the_line_that_was_signed),
        TEST(tasks_of_a_long_array_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
