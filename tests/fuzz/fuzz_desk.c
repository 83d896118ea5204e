/* fuzz_desk.c - the desk that signs, as local users see it (rsd/tickets/desk.c, sign.c, passes.c): who comes and goes,
 * what he asks, whole or in parts, large or small, how slowly he reads, and time. world.c stands in for the kernel,
 * this file for the name services, the control groups and the directory of the key. Nobody may end it; nobody gets
 * anything that is signed but as himself, nor a number twice; and what is said to be good is so. */
#include "config.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/job/lines.h"
#include "lib/job/variables.h"
#include "rsd/sup/admit.h"
#include "rsd/sup/user.h"
#include "tests/fuzz/world.h"

/* Its turns are private, and so is what is kept of users; its process is not for us. */
#include "rsd/tickets/desk.c"   /* NOLINT(bugprone-suspicious-include) */
#include "rsd/tickets/passes.c" /* NOLINT(bugprone-suspicious-include) */

enum { MAX_TURNS = 300, COMERS = 48, KEYS = 3, LONGEST_LIST = 60000, FRAME_HEADER = WIRE_FRAME_HEADER };

static char root[] = "root", alice[] = "alice", bob[] = "bob", elmer_sup[] = "elmer-sup";
static const struct passwd users[] = {
    {.pw_name = root, .pw_uid = 0}, {.pw_name = alice, .pw_uid = 2001}, {.pw_name = bob, .pw_uid = 2002}};
static const uint32_t comers[] = {2001, 2002, 2003 /* has no name */, 2001};

static struct {
    struct desk desk;
    struct ticket_keys keys[KEYS]; /* ours; of a host of the cluster; of one that is not */
    struct ticket_trust trust;
    struct ticket_counter taken; /* next: the number that was given out last */
    uint32_t numbers;
    char group[64];
    uint8_t coming;                                        /* so many come first */
    char pass[PASS_TEXT_MAX + 1], made[PASS_TEXT_MAX + 1]; /* the last that the desk has made; one of ours */
} bed;

/* ---- in place of the name services, the groups, and the directory of the key ---- */

static const struct passwd *user_named(const char *name)
{
    for (size_t i = 0; i < sizeof(users) / sizeof(*users); i++)
        if (strcmp(users[i].pw_name, name) == 0)
            return &users[i];
    return NULL;
}

static const char *name_of(uint32_t uid)
{
    for (size_t i = 0; i < sizeof(users) / sizeof(*users); i++)
        if (users[i].pw_uid == uid)
            return users[i].pw_name;
    return NULL;
}

const struct passwd *__wrap_getpwuid(uid_t uid);
const struct passwd *__wrap_getpwuid(uid_t uid)
{
    const char *name = name_of(uid);
    errno = world_fails() ? EIO : 0;
    return name && !errno ? user_named(name) : NULL;
}

const struct passwd *__wrap_getpwnam(const char *name);
const struct passwd *__wrap_getpwnam(const char *name)
{
    static const struct passwd supervisors = {.pw_name = elmer_sup, .pw_uid = 990};
    return strcmp(name, "elmer-sup") == 0 && !world_fails() ? &supervisors : NULL;
}

int __wrap_service_hold(int fd, pid_t pid);
int __wrap_service_hold(int fd, pid_t pid)
{
    FUZZ_CHECK(world_kind(fd) == WORLD_SOCKET && pid > 0, "of no connection");
    return world_fails() ? -1 : world_open(WORLD_OTHER);
}

/* A job's; one like it that is not Elmer's; of a login; one that cannot be read. */
int __wrap_group_of(const char *proc, pid_t pid, char *group, size_t size);
int __wrap_group_of(const char *proc, pid_t pid, char *group, size_t size)
{
    static const char *const groups[] = {"/elmer.scope/7.2/job", "/user.slice/7.2/job", "/user.slice/session-1.scope"};
    uint8_t what = input_byte(world_input());
    FUZZ_CHECK(strcmp(proc, "/proc") == 0 && pid > 0, "process %d", (int)pid);
    snprintf(bed.group, sizeof(bed.group), "%s", what < 0x80 ? groups[0] : groups[what % 3]);
    snprintf(group, size, "%s", bed.group);
    return what == 0xFF ? -ENOENT : 0;
}

int __wrap_group_locate(const char *proc, const char *group, char *path, size_t size, struct err *err);
int __wrap_group_locate(const char *proc, const char *group, char *path, size_t size, struct err *err)
{
    (void)proc;
    snprintf(path, size, "/fuzz%s", group);
    return world_fails() ? err_set(err, -ENOENT, "it is gone") : 0;
}

int __wrap_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st)
{
    memset(st, 0, sizeof(*st));
    st->st_uid = strncmp(path, "/fuzz/elmer.scope/", 18) == 0 ? 990 : 2001;
    return world_fails() ? -1 : 0;
}

int user_lookup(struct user *user, const char *name, uid_t uid, struct err *err)
{
    const struct passwd *entry = user_named(name);
    *user = (struct user){.uid = uid};
    return !entry                 ? err_set(err, -ENOENT, "user %s is not known", name)
           : entry->pw_uid != uid ? err_set(err, -EPERM, "user %s has another uid", name)
                                  : 0;
}

int uid_here(const char *name, id_t *id)
{
    (void)name, (void)id;
    return -ENOENT;
}

int gid_here(const char *name, id_t *id)
{
    (void)name, (void)id;
    return -ENOENT;
}

int admit_judge(const struct user *user, const struct admit_lists *lists, struct err *err)
{
    FUZZ_CHECK(strcmp(lists->users, "bob") == 0, "other lists");
    return user->uid == 2002 ? err_set(err, -EPERM, "bob is in deny_users") : 0;
}

bool __wrap_ticket_keys_certified(struct ticket_keys *keys);
bool __wrap_ticket_keys_certified(struct ticket_keys *keys)
{
    return keys->certified;
}

/* Any number, and after it as many others as it takes. */
int __wrap_ticket_counter_next(const struct ticket_keys *keys, struct ticket_counter *counter, uint32_t count,
                               uint64_t *number, struct err *err);
int __wrap_ticket_counter_next(const struct ticket_keys *keys, struct ticket_counter *counter, uint32_t count,
                               uint64_t *number, struct err *err)
{
    (void)keys;
    FUZZ_CHECK(count > 0 && count <= TICKET_NUMBERS_MAX, "%u numbers", count);
    if (world_fails())
        return err_set(err, -ENOSPC, "the disk is full");
    *number = bed.taken.next = counter->next;
    bed.numbers = count;
    counter->next += count;
    return 0;
}

/* ---- what the desk says ---- */

static const struct client *client_at(int fd)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (bed.desk.clients[i].here && bed.desk.clients[i].channel.fd == fd)
            return &bed.desk.clients[i];
    return NULL;
}

static void heard_ticket(const struct client *client, const char *text)
{
    static struct ticket t;
    FUZZ_CHECK(client->request.type == WIRE_submit && ticket_decode(text, &t) == TICKET_GOOD, "no ticket: %s", text);
    FUZZ_CHECK(t.uid == client->uid && strcmp(t.user, name_of(client->uid)) == 0, "%s for uid %u", t.user, client->uid);
    FUZZ_CHECK(strcmp(t.host, "ws1") == 0 && t.nprocs == client->request.u.submit.nprocs, "of another job");
    FUZZ_CHECK(t.counter == bed.taken.next && ticket_numbers_of(t.ntasks) == bed.numbers, "another number");
    bed.numbers = 0; /* nobody else's */
    FUZZ_CHECK(ticket_check_chain(&t, &bed.trust) == TICKET_GOOD, "not signed");
}

static void heard_pass(const struct client *client, const char *text)
{
    struct pass pass;
    FUZZ_CHECK(pass_decode(text, &pass) && pass_check_chain(&pass, &bed.trust) == TICKET_GOOD, "no pass: %s", text);
    FUZZ_CHECK(pass.uid == client->uid && strcmp(pass.user, name_of(client->uid)) == 0, "%s for uid %u", pass.user,
               client->uid);
    if (client->request.type == WIRE_pass_look)
        FUZZ_CHECK(pass.looks && pass.job == client->request.u.pass_look.job && pass.job > 0, "a look at another job");
    else
        FUZZ_CHECK(client->request.type == WIRE_pass_ask && !pass.looks && pass.job == 7 && pass.attempt == 2 &&
                       strncmp(bed.group, "/elmer.scope/", 13) == 0,
                   "the pass of a job for a process in %s", bed.group);
    snprintf(bed.pass, sizeof(bed.pass), "%s", text);
}

static void heard_warrant(const struct client *client, const char *text)
{
    struct warrant warrant;
    FUZZ_CHECK(client->request.type == WIRE_warrant_ask && warrant_decode(text, &warrant), "no warrant: %s", text);
    FUZZ_CHECK(bed.desk.believes.required && bed.desk.keys->certified, "a warrant, and who asks is not certain");
    FUZZ_CHECK(warrant.uid == client->uid && strcmp(warrant.user, name_of(client->uid)) == 0, "%s for uid %u",
               warrant.user, client->uid);
    FUZZ_CHECK(warrant_check_chain(&warrant, &bed.trust) == TICKET_GOOD, "not signed");
}

/* Of another host only who may run jobs here by its word; who only asks may be anybody's. */
static void heard_good(const struct client *client)
{
    const bool checks = client->request.type == WIRE_pass_check;
    struct pass pass;
    FUZZ_CHECK(checks || client->request.type == WIRE_pass_trust, "done, and nothing was to be");
    FUZZ_CHECK(pass_decode(checks ? client->request.u.pass_check.pass : client->request.u.pass_trust.pass, &pass) &&
                   pass_check_chain(&pass, &bed.trust) == TICKET_GOOD,
               "a pass that is none");
    if (strcmp(pass.host, "ws1") == 0)
        return;
    FUZZ_CHECK(strcmp(pass.host, "ws2") == 0, "what %s says", pass.host);
    if (checks) {
        const char *name = name_of(pass.uid);
        FUZZ_CHECK(pass.uid != 2002 && name && strcmp(pass.user, name) == 0, "ws2's %s, uid %u", pass.user, pass.uid);
    }
}

void world_heard(int fd, const struct wire_message *message)
{
    const struct client *client = client_at(fd);
    if (!client)
        abort(); /* nobody is there */
    FUZZ_CHECK(is_request(client->request.type), "nobody has asked");
    FUZZ_CHECK(message->id == client->request.id, "an answer to another request");
    if (message->type == WIRE_error) {
        FUZZ_CHECK(message->u.error.text[0], "an error without a sentence");
        return;
    }
    if (message->type == WIRE_ticket && !*message->u.ticket.ticket) {
        FUZZ_CHECK(client->request.type == WIRE_submit && !bed.desk.believes.required, "an empty ticket");
        return;
    }
    FUZZ_CHECK(name_of(client->uid), "uid %u has no name, and gets an answer", client->uid);
    if (message->type == WIRE_ticket)
        heard_ticket(client, message->u.ticket.ticket);
    else if (message->type == WIRE_pass)
        heard_pass(client, message->u.pass.pass);
    else if (message->type == WIRE_warrant)
        heard_warrant(client, message->u.warrant.warrant);
    else
        heard_good(client);
}

/* ---- what happens ---- */

/* As a host could make it: ours, another one of the cluster, one that is not of it. */
static const char *pass_of(struct input *input)
{
    const struct passwd *user = &users[input_below(input, 3)];
    const struct ticket_keys *keys = &bed.keys[input_below(input, KEYS)];
    uint8_t how = input_byte(input), spoilt = input_byte(input);
    struct pass pass = {.looks = how & 1, .job = 7, .attempt = 2, .uid = how < 0xE0 ? user->pw_uid : 2001};
    snprintf(pass.host, sizeof(pass.host), "%s", keys->host);
    snprintf(pass.user, sizeof(pass.user), "%s", user->pw_name);
    memcpy(pass.certificate, keys->certificate, sizeof(pass.certificate));
    FUZZ_CHECK(pass_sign(&pass, keys->key, keys->secret), "no memory");
    pass_encode(&pass, bed.made);
    if (spoilt >= 0xC0)
        bed.made[input_number(input, strlen(bed.made) - 1)] = "0123456789abcdef"[spoilt % 16];
    return bed.made;
}

/* An array: its tasks, and perhaps a line for each, come as variables. */
static void make_array(struct input *input, struct wire_message *message)
{
    static char tasks[40], lines[LONGEST_LIST], memory[40];
    static const char *environment[] = {tasks, memory, lines};
    const unsigned count = (unsigned)input_number(input, 5000), said = count - (input_byte(input) >= 0xF0);
    size_t size = (size_t)snprintf(lines, sizeof(lines), "%s=", LINES_VARIABLE);
    snprintf(tasks, sizeof(tasks), "%s=1-%u%%8", TASKS_VARIABLE, count);
    snprintf(memory, sizeof(memory), "%s=%u", MEMORY_VARIABLE, (unsigned)input_byte(input) << 20);
    for (unsigned i = 0; i < said && size + 16 < sizeof(lines); i++)
        size += (size_t)snprintf(lines + size, sizeof(lines) - size, "line %u\n", i);
    message->u.submit.environment = (struct wire_strs){environment, 1 + input_below(input, 3)};
}

static void make_request(struct input *input, struct wire_message *message)
{
    static const enum wire_type usual[] = {WIRE_submit,     WIRE_submit,     WIRE_pass_ask,   WIRE_pass_look,
                                           WIRE_pass_check, WIRE_pass_trust, WIRE_warrant_ask};
    static const char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    uint8_t what = input_byte(input), right;
    input_message(input, what < 0xF0 ? usual[what % 7] : input_type(input, WIRE_FROM_CLIENT), message);
    right = input_byte(input);
    if (right >= 0x60) { /* else what the table makes of it, which is seldom right */
        if (message->type == WIRE_submit && right >= 0xA0)
            make_array(input, message);
        else if (message->type == WIRE_pass_ask)
            message->u.pass_ask.key = key;
        else if (message->type == WIRE_pass_look)
            message->u.pass_look.key = key;
        else if (message->type == WIRE_pass_check)
            message->u.pass_check.pass = right >= 0xE0 ? bed.pass : pass_of(input);
        else if (message->type == WIRE_pass_trust)
            message->u.pass_trust.pass = right >= 0xE0 ? bed.pass : pass_of(input);
        else if (message->type == WIRE_warrant_ask)
            message->u.warrant_ask.challenge = key;
    }
}

static void asks(struct input *input)
{
    int fd = world_pick(WORLD_SOCKET, input_byte(input));
    struct wire_message message;
    struct err err = ERR_INIT;
    uint8_t *frame;
    size_t size;
    make_request(input, &message);
    if (wire_encode_frame(&message, WIRE_TICKET_MINOR, &frame, &size, &err) == 0) {
        world_feed(fd, frame, size);
        free(frame);
    }
    wire_message_fini(&message);
}

/* The beginning of a request, or all of it but the end; sometimes all do that. */
static void asks_in_part(struct input *input)
{
    static const uint8_t filler[4096];
    const uint8_t who = input_byte(input);
    uint32_t length = (uint32_t)input_number(input, WIRE_MAX_FRAME);
    uint8_t header[FRAME_HEADER] = {(uint8_t)(length >> 24), (uint8_t)(length >> 16), (uint8_t)(length >> 8),
                                    (uint8_t)length};
    const size_t said = input_byte(input) < 0xC0 ? sizeof(header) : 2, more = input_number(input, sizeof(filler));
    for (size_t i = 0; i < (who < 0xC0 ? 1U : COMERS); i++) {
        int fd = world_pick(WORLD_SOCKET, who + i);
        world_feed(fd, header, said);
        world_feed(fd, filler, more);
    }
}

static void bytes_into(struct input *input)
{
    size_t size = input_below(input, 64);
    int fd = world_pick(WORLD_SOCKET, input_byte(input));
    size = size < input->left ? size : input->left;
    world_feed(fd, input->at, size);
    input->at += size;
    input->left -= size;
}

static void comes(uint8_t who)
{
    world_come_as(comers[who % 4]);
    world_feed(world_pick(WORLD_LISTENER, 0), "c", 1);
}

static void happen(struct input *input, int timeout_ms)
{
    uint8_t what = input_byte(input);
    if (what < 0x80) {
        asks(input);
    } else if (what < 0xA8) {
        comes(what);
    } else if (what < 0xB8) {
        asks_in_part(input);
    } else if (what < 0xC0) {
        bytes_into(input);
    } else if (what < 0xD0) {
        world_pass_ms(timeout_ms < 0 ? 1000 : timeout_ms);
    } else if (what < 0xD8) {
        world_pass_ms(100 * (int64_t)input_byte(input));
    } else if (what < 0xE8) {
        world_feed_end(world_pick(WORLD_SOCKET, input_byte(input)));
    } else {
        world_clog(world_pick(WORLD_SOCKET, input_byte(input)), input_byte(input) & 1);
    }
}

/* Whether the process that asks lives yet, or a turn of the desk. */
int world_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    int ready = 0;
    if (count == 1 && world_kind(fds[0].fd) == WORLD_OTHER)
        return world_fails();
    if (bed.coming > 0)
        comes(--bed.coming);
    else
        happen(world_input(), timeout_ms);
    for (size_t i = 0; i < count; i++) {
        if ((fds[i].events & POLLIN) && fds[i].fd >= 0 && world_readable(fds[i].fd))
            fds[i].revents |= POLLIN;
        if ((fds[i].events & POLLOUT) && fds[i].fd >= 0 && world_writable(fds[i].fd))
            fds[i].revents |= POLLOUT;
        ready += fds[i].revents != 0;
    }
    return ready;
}

/* ---- what holds between two turns ---- */

static void check_bounds(void)
{
    const struct desk *desk = &bed.desk;
    for (size_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &desk->clients[i];
        if (!client->here)
            continue;
        FUZZ_CHECK(i < desk->top, "place %zu above the top", i);
        FUZZ_CHECK(!client->channel.dead && client->end_ms > world_now_ms() - 1, "kept beyond its end");
        FUZZ_CHECK(client->large || client->channel.in.capacity <= SMALL_BYTES, "%zu bytes for a small one",
                   client->channel.in.capacity);
        FUZZ_CHECK(large_of(desk, client->uid) <= LARGE_OF_A_USER, "%d large of uid %u", large_of(desk, client->uid),
                   client->uid);
        FUZZ_CHECK(!(client->asked && client->answered), "waits, and is answered");
    }
    FUZZ_CHECK(large_of(desk, -1) <= LARGE, "%d large ones", large_of(desk, -1));
}

/* ---- a cluster ---- */

static void make_keys(size_t which, const char *host, const uint8_t *authority)
{
    struct ticket_keys *keys = &bed.keys[which];
    uint8_t bytes[TICKET_BYTES_MAX];
    *keys = (struct ticket_keys){.dir = -1, .secret = {(uint8_t)(which + 1)}};
    snprintf(keys->host, sizeof(keys->host), "%s", host);
    FUZZ_CHECK(ticket_key_of(keys->secret, keys->key), "no memory");
    FUZZ_CHECK(ticket_sign_bytes(authority, bytes, ticket_certified_bytes(host, keys->key, bytes), keys->certificate),
               "no memory");
}

static void make_cluster(void)
{
    static const uint8_t authority[TICKET_KEY_BYTES] = {9}, other[TICKET_KEY_BYTES] = {8};
    make_keys(0, "ws1", authority);
    make_keys(1, "ws2", authority);
    make_keys(2, "ws3", other);
    FUZZ_CHECK(ticket_key_of(authority, bed.keys[0].authority), "no memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool made;
    struct input input = {data, size};
    uint8_t how = input_byte(&input);
    int listener;
    if (!made)
        make_cluster();
    made = true;
    bed.keys[0].certified = how & 1;
    ticket_keys_trust(&bed.keys[0], &bed.trust);
    bed.pass[0] = 0;
    bed.numbers = 0;
    bed.coming = how >= 0x80 ? COMERS : how >> 4;
    memset(admitted, 0, sizeof(admitted));
    world_begin(&input, WIRE_FROM_ROOT);
    listener = world_open(WORLD_LISTENER);
    bed.desk = (struct desk){
        .keys = &bed.keys[0], .believes = {how & 2 ? "all" : "ws2", "all", "bob", "", how & 4}, .listener = listener};
    for (int i = 0; i < MAX_TURNS && input.left > 0; i++) {
        turn(&bed.desk);
        check_bounds();
    }
    for (size_t i = 0; i < CLIENTS; i++)
        if (bed.desk.clients[i].here)
            drop(&bed.desk.clients[i]);
    (void)close(listener);
    world_end();
    return 0;
}
