/* test_join.c - the root half joins the network half and elmer-tickets that are units of their own, and joins them
 * again when they have begun anew. The test is both of them. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/root/internal.h"
#include "tests/unit/scratch.h"

static struct rsd_config config;
static struct rsd_tickets tickets;
static struct root root;
static int net_door, judge_door;

static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", config.rundir, name);
    unlink(address.sun_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static int setup(void **state)
{
    (void)state;
    rsd_config_default(&config);
    snprintf(config.rundir, sizeof(config.rundir), "/tmp/test_join.XXXXXX");
    assert_non_null(scratch_dir(config.rundir));
    assert_true(scratch_mkdir(config.rundir, "sup"));
    tickets = (struct rsd_tickets){.fd = -1, .grants = -1, .unit = true};
    root = (struct root){.config = &config, .tickets = &tickets, .net_is_unit = true, .net = {.fd = -1}};
    net_door = listen_at(RSD_NET_SOCKET);
    judge_door = listen_at(RSD_JUDGE_SOCKET);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (root.net.fd >= 0)
        channel_fini(&root.net);
    if (tickets.fd >= 0)
        close(tickets.fd);
    close(net_door);
    close(judge_door);
    return 0;
}

static int64_t now(void)
{
    return mono_ms(mono_now());
}

/* ---- the network half ---- */

static int net_accepts(void)
{
    int fd = accept(net_door, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

static void the_network_half_is_joined_and_answers(void **state)
{
    const int32_t pid = getpid(); /* of no unit: it gets no class */
    struct wire_message opened = {.type = WIRE_opened};
    char byte;
    int fd;
    (void)state;
    assert_false(join_net_there(&root));
    assert_int_equal(join_net_next(&root), 0);
    join_net_due(&root, now());
    fd = net_accepts();
    assert_false(join_net_there(&root));
    tell(&root, &opened); /* nobody is there to hear it */
    assert_false(join_net_answered(&root));
    assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    assert_int_equal(send(fd, &pid, sizeof(pid), 0), sizeof(pid));
    assert_true(join_net_answered(&root));
    assert_true(join_net_there(&root));
    assert_int_equal(join_net_next(&root), INT64_MAX);
    tell(&root, &opened);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 1);
    assert_false(root.stop);
    close(fd);
}

static void one_that_has_ended_is_looked_for_again(void **state)
{
    int fd;
    (void)state;
    join_net_due(&root, now());
    close(net_accepts());
    assert_false(join_net_answered(&root)); /* it has ended without a word */
    assert_int_equal(root.net.fd, -1);
    assert_non_null(strstr(root.uplink, "rsd-net.service"));
    assert_in_range(join_net_next(&root) - now(), 1, 1000); /* not at once: it may do so for ever */
    join_net_due(&root, now());
    assert_int_equal(root.net.fd, -1);
    join_net_due(&root, join_net_next(&root));
    fd = net_accepts();
    close(fd);
    assert_false(root.stop);
}

static void one_that_does_not_answer_is_left(void **state)
{
    int64_t due;
    (void)state;
    join_net_due(&root, now());
    due = join_net_next(&root);
    assert_in_range(due - now(), 1000, 10000);
    join_net_due(&root, due - 1);
    assert_true(root.net.fd >= 0);
    join_net_due(&root, due);
    assert_int_equal(root.net.fd, -1);
    assert_false(root.stop);
}

static void where_nobody_listens_it_is_tried_again(void **state)
{
    (void)state;
    close(net_door);
    join_net_due(&root, now());
    assert_int_equal(root.net.fd, -1);
    assert_in_range(join_net_next(&root) - now(), 1, 1000);
    net_door = listen_at(RSD_NET_SOCKET);
    join_net_due(&root, join_net_next(&root));
    close(net_accepts());
}

/* ---- elmer-tickets ---- */

static const struct ticket_ask asked = {.verb = TICKET_ASK_OPEN, .ticket = "t", .user = "alice", .job = 1};

/* In a process of its own: takes so many connections, says that it is ready, answers the last only. */
static pid_t judge_runs(unsigned connections, int32_t result)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    while (connections-- > 0) {
        static char texts[4096];
        struct ticket_ready ready = {.result = result, .text = "no key"};
        struct ticket_verdict verdict = {.why = 0, .name = "good"};
        struct ticket_ask head;
        int fd = accept(judge_door, NULL, NULL);
        if (send(fd, &ready, sizeof(ready), 0) != (ssize_t)sizeof(ready))
            _exit(1);
        if (connections == 0 && recv(fd, &head, sizeof(head), MSG_WAITALL) == (ssize_t)sizeof(head) &&
            recv(fd, texts, head.size, MSG_WAITALL) == (ssize_t)head.size)
            (void)send(fd, &verdict, sizeof(verdict), 0);
        close(fd);
    }
    _exit(0);
}

static void ended_well(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_verdict_waits_for_one_that_begins_anew(void **state)
{
    struct ticket_verdict verdict;
    pid_t pid = judge_runs(3, 0); /* it ends twice while it is asked */
    (void)state;
    assert_true(join_tickets_await(&root, true, now() + TICKETS_BACK_MS)); /* joined */
    assert_false(tickets.joining);
    assert_false(ticket_ask(tickets.fd, &asked, &verdict));
    assert_true(join_tickets_await(&root, true, now() + TICKETS_BACK_MS));
    assert_false(ticket_ask(tickets.fd, &asked, &verdict));
    assert_true(join_tickets_await(&root, true, now() + TICKETS_BACK_MS));
    assert_true(ticket_ask(tickets.fd, &asked, &verdict));
    assert_int_equal(verdict.why, 0);
    ended_well(pid);
}

static void one_that_has_gone_is_joined_at_once(void **state)
{
    struct ticket_verdict verdict;
    pid_t pid;
    (void)state;
    pid = judge_runs(1, 0);
    assert_true(join_tickets_await(&root, true, now() + TICKETS_BACK_MS));
    assert_true(ticket_ask(tickets.fd, &asked, &verdict));
    ended_well(pid);
    join_tickets_news(&root);
    assert_in_range(join_tickets_next(&root) - now(), 0, 1000);
    join_tickets_due(&root, join_tickets_next(&root));
    assert_true(tickets.joining); /* nobody has to ask for that: users want tickets */
    pid = judge_runs(1, 0);
    assert_int_equal(poll(&(struct pollfd){.fd = tickets.fd, .events = POLLIN}, 1, 5000), 1);
    join_tickets_news(&root);
    assert_false(tickets.joining || tickets.gone);
    assert_true(ticket_ask(tickets.fd, &asked, &verdict));
    ended_well(pid);
}

/* systemd does so with who connects while the unit is being stopped: rsd, above all jobs, must not spin of it. */
static void one_that_closes_all_at_once_is_not_joined_all_the_time(void **state)
{
    unsigned joined = 0;
    int64_t begin = now();
    (void)state;
    tickets.fd = -1;
    for (int64_t left; (left = begin + 1000 - now()) > 0;) {
        struct pollfd fds[] = {{.fd = judge_door, .events = POLLIN}, {.fd = tickets.fd, .events = POLLIN}};
        int64_t due = join_tickets_next(&root) - now();
        (void)poll(fds, 2, (int)(due < 1 ? 1 : due < left ? due : left));
        if (fds[0].revents) {
            close(accept(judge_door, NULL, NULL));
            joined++;
        }
        if (fds[1].revents)
            join_tickets_news(&root);
        join_tickets_due(&root, now());
    }
    assert_in_range(joined, 2, 6);
    assert_false(tickets.gone);
}

/* Three seconds, and rsd begins again. */
static void one_that_does_not_come_back_is_not_waited_for(void **state)
{
    int64_t begin = now();
    (void)state;
    assert_false(join_tickets_await(&root, true, now() + TICKETS_BACK_MS));
    assert_in_range(now() - begin, 2500, 20000);
    close(judge_door);
    begin = now();
    assert_false(join_tickets_await(&root, true, now() + TICKETS_BACK_MS)); /* its socket is gone */
    assert_in_range(now() - begin, 0, 2000);
    join_tickets_due(&root, join_tickets_next(&root));
    assert_true(tickets.gone);
    judge_door = listen_at(RSD_JUDGE_SOCKET);
}

/* However many jobs there are to be opened: the loop stands still for the first only. */
static void it_is_waited_for_once(void **state)
{
    const struct wire_open open = {.job = 1, .attempt = 1, .user = "alice", .ticket = "t"};
    struct err err = ERR_INIT;
    int64_t begin = now();
    (void)state;
    assert_false(tickets_let_open(&root, &open, &err));
    assert_true(tickets.gone);
    assert_in_range(now() - begin, 2500, 20000);
    begin = now();
    for (int i = 0; i < 100; i++)
        assert_false(tickets_let_open(&root, &open, &err));
    assert_in_range(now() - begin, 0, 2000);
}

static void a_child_is_not_joined(void **state)
{
    (void)state;
    tickets.unit = root.net_is_unit = false;
    assert_true(join_tickets_await(&root, false, now() + TICKETS_BACK_MS));
    assert_false(join_tickets_await(&root, true, now() + TICKETS_BACK_MS));
    join_net_due(&root, now());
    assert_int_equal(root.net.fd, -1);
    assert_int_equal(join_net_next(&root), INT64_MAX);
}

/* ---- since when ---- */

static void what_was_begun_lasts_until_it_is_ended(void **state)
{
    uint64_t first = 0, second = 0;
    (void)state;
    assert_int_equal(rsd_begun(&config, &first), 0);
    assert_int_equal(rsd_begun(&config, &second), 0);
    assert_int_equal(first, second); /* after a crash */
    rsd_begun_end(&config);
    assert_int_equal(rsd_begun(&config, &second), 0);
    assert_int_not_equal(first, second);
    assert_true(scratch_put(config.rundir, "sup/begun", "nonsense"));
    assert_int_equal(rsd_begun(&config, &first), 0);
    assert_int_equal(rsd_begun(&config, &second), 0);
    assert_int_equal(first, second);
}

/* The directory is that of a user who may have been taken over, and it is root who reads. */
static void what_is_no_file_is_neither_waited_for_nor_followed(void **state)
{
    uint64_t first = 0, second = 0;
    char begun[200], other[200], text[24] = "";
    FILE *file;
    (void)state;
    snprintf(begun, sizeof(begun), "%s/sup/begun", config.rundir);
    snprintf(other, sizeof(other), "%s/other", config.rundir);
    assert_int_equal(mkfifo(begun, 0600), 0);
    alarm(60);
    assert_int_equal(rsd_begun(&config, &first), 0);
    alarm(0);
    assert_int_equal(rsd_begun(&config, &second), 0);
    assert_int_equal(first, second);
    assert_true(scratch_put(config.rundir, "other", "mine"));
    assert_int_equal(unlink(begun), 0);
    assert_int_equal(symlink(other, begun), 0);
    assert_int_equal(rsd_begun(&config, &second), 0);
    assert_int_not_equal(first, second);
    assert_int_equal(unlink(begun), 0);
    assert_int_equal(link(other, begun), 0);
    assert_int_equal(rsd_begun(&config, &second), 0);
    file = fopen(other, "re");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    assert_string_equal(text, "mine");
}

/* Then the others begin anew each time, which costs something; with the same number they would not begin at all. */
static void what_cannot_be_kept_is_another_each_time(void **state)
{
    uint64_t first = 0, second = 0;
    char path[200];
    (void)state;
    snprintf(path, sizeof(path), "%s/sup", config.rundir);
    assert_int_equal(rmdir(path), 0);
    assert_true(rsd_begun(&config, &first) < 0);
    assert_true(rsd_begun(&config, &second) < 0);
    assert_int_not_equal(first, second);
}

/* Or a reload with other lists would leave elmer-tickets with the ones before. */
static void all_that_it_is_to_serve_is_in_the_plan(void **state)
{
    static struct ticket_plan plain, other;
    struct ticket_serve serve = {.dir = "/nowhere", .host = "ws1", .hosts = "all", .users = "all"};
    (void)state;
    ticket_plan_fill(&plain, &serve, 1);
    serve.deny_users = "alice";
    ticket_plan_fill(&other, &serve, 1);
    assert_string_equal(other.deny_users, "alice");
    assert_memory_not_equal(&plain, &other, sizeof(plain));
    serve.deny_users = NULL;
    serve.deny_groups = "sudo";
    ticket_plan_fill(&other, &serve, 1);
    assert_string_equal(other.deny_groups, "sudo");
    assert_memory_not_equal(&plain, &other, sizeof(plain));
    serve.deny_groups = NULL;
    serve.required = true;
    ticket_plan_fill(&other, &serve, 1);
    assert_int_equal(other.required, 1);
    assert_memory_not_equal(&plain, &other, sizeof(plain));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_it_is_to_serve_is_in_the_plan),
        TEST(the_network_half_is_joined_and_answers),
        TEST(one_that_has_ended_is_looked_for_again),
        TEST(one_that_does_not_answer_is_left),
        TEST(where_nobody_listens_it_is_tried_again),
        TEST(a_verdict_waits_for_one_that_begins_anew),
        TEST(one_that_has_gone_is_joined_at_once),
        TEST(one_that_closes_all_at_once_is_not_joined_all_the_time),
        TEST(one_that_does_not_come_back_is_not_waited_for),
        TEST(it_is_waited_for_once),
        TEST(a_child_is_not_joined),
        TEST(what_was_begun_lasts_until_it_is_ended),
        TEST(what_is_no_file_is_neither_waited_for_nor_followed),
        TEST(what_cannot_be_kept_is_another_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
