/* ticket.c - a ticket as bytes and as text, and back: see ticket.h for the order. */
#include "config.h"

#include "lib/ticket/ticket.h"

#include <assert.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"

static const char head[] = "elmer ticket 1\n", key_head[] = "elmer ticket key 1\n";

enum { EACH = 1, HELPERS = 2, REQUEUE = 4, ARRAY = 8, LINES = 16, MEMORY = 32 };
enum { TASK_DIGITS = 6 };
/* Of a ticket's bytes: for its numbers, lengths, digests, keys and signatures, and in its text for the task's number;
 * and for its lines' digest and the proof of one. */
enum { FIXED_BYTES = 512, LINES_BYTES = (TREE_PROOF_MAX + 2) * TREE_DIGEST_BYTES };

/* ---- to bytes ---- */

struct writer {
    uint8_t *out;
    size_t size;
};

static void put(struct writer *w, const void *bytes, size_t size)
{
    assert(size <= TICKET_BYTES_MAX - w->size);
    memcpy(w->out + w->size, bytes, size);
    w->size += size;
}

static void put_number(struct writer *w, uint64_t number, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;) {
        uint8_t byte = (uint8_t)(number >> (8 * i));
        put(w, &byte, 1);
    }
}

static void put_text(struct writer *w, const char *text, size_t max)
{
    size_t length = strnlen(text, max + 1);
    assert(length <= max);
    put_number(w, length, 2);
    put(w, text, length);
}

size_t ticket_signed_bytes(const struct ticket *t, uint8_t *out)
{
    struct writer w = {out, 0};
    put(&w, head, sizeof(head) - 1);
    put_text(&w, t->host, TICKET_HOST_MAX);
    put_number(&w, t->counter, 8);
    put_number(&w, t->uid, 4);
    put_text(&w, t->user, TICKET_USER_MAX);
    put_text(&w, t->name, TICKET_NAME_MAX);
    put_text(&w, t->token, TICKET_NAME_MAX);
    put_number(&w, t->nprocs, 4);
    put_number(&w,
               (t->each ? EACH : 0) | (t->helpers ? HELPERS : 0) | (t->requeue ? REQUEUE : 0) |
                   (*t->tasks ? ARRAY : 0) | (t->has_lines ? LINES : 0) | (t->memory_bytes ? MEMORY : 0),
               1);
    if (*t->tasks)
        put_text(&w, t->tasks, TASKS_TEXT_MAX);
    if (t->has_lines)
        put(&w, t->lines, sizeof(t->lines));
    if (t->memory_bytes)
        put_number(&w, t->memory_bytes, 8);
    put(&w, t->command, sizeof(t->command));
    put(&w, t->environment, sizeof(t->environment));
    put(&w, t->place, sizeof(t->place));
    put_text(&w, t->output, TICKET_PATH_MAX);
    put_text(&w, t->errors, TICKET_PATH_MAX);
    put(&w, t->key, sizeof(t->key));
    put(&w, t->certificate, sizeof(t->certificate));
    return w.size;
}

bool ticket_has_room(const struct ticket *t)
{
    return strlen(t->host) + strlen(t->user) + strlen(t->name) + strlen(t->token) + strlen(t->tasks) +
               strlen(t->output) + strlen(t->errors) + FIXED_BYTES + (t->has_lines ? LINES_BYTES : 0) <=
           TICKET_BYTES_MAX;
}

uint32_t ticket_numbers_of(uint32_t ntasks)
{
    if (ntasks > TICKET_SHEET_TASKS)
        return (ntasks - 1) / TICKET_SHEET_TASKS + 1;
    return ntasks > 0 ? ntasks : 1;
}

uint64_t ticket_counter_of(const struct ticket *ticket)
{
    uint32_t ordinal = ticket->task > 0 ? ticket->task - 1 : 0;
    return ticket->counter + (ticket->ntasks > TICKET_SHEET_TASKS ? ordinal / TICKET_SHEET_TASKS : ordinal);
}

size_t ticket_certified_bytes(const char *host, const uint8_t key[TICKET_KEY_BYTES], uint8_t *out)
{
    struct writer w = {out, 0};
    put(&w, key_head, sizeof(key_head) - 1);
    put_text(&w, host, TICKET_HOST_MAX);
    put(&w, key, TICKET_KEY_BYTES);
    return w.size;
}

void ticket_encode(const struct ticket *ticket, char *out)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    struct writer w = {bytes, ticket_signed_bytes(ticket, bytes)};
    put(&w, ticket->signature, sizeof(ticket->signature));
    hex_write(bytes, w.size, out);
}

/* ---- from bytes ---- */

struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static const uint8_t *take(struct reader *r, size_t size)
{
    const uint8_t *at = r->at;
    if (r->bad || size > r->left) {
        r->bad = true;
        return NULL;
    }
    r->at += size;
    r->left -= size;
    return at;
}

static void get(struct reader *r, void *out, size_t size)
{
    const uint8_t *at = take(r, size);
    if (at)
        memcpy(out, at, size);
}

static uint64_t get_number(struct reader *r, unsigned bytes)
{
    const uint8_t *at = take(r, bytes);
    uint64_t number = 0;
    for (unsigned i = 0; at && i < bytes; i++)
        number = number << 8 | at[i];
    return number;
}

/* It goes into messages and logs: UTF-8 without NUL. */
static void get_text(struct reader *r, char *out, size_t max)
{
    size_t length = (size_t)get_number(r, 2);
    const uint8_t *at = length <= max ? take(r, length) : NULL;
    if (!at || memchr(at, 0, length) || !str_valid_utf8((const char *)at, length)) {
        r->bad = true;
        return;
    }
    memcpy(out, at, length);
    out[length] = 0;
}

/* Returns how many bytes; 0: it is no text of a ticket. */
static size_t unhex(const char *text, size_t length, uint8_t *bytes)
{
    if (length > TICKET_TEXT_MAX || length % 2 || !hex_read_digits(text, bytes, length / 2))
        return 0;
    return length / 2;
}

static void read_tasks(struct reader *r, struct ticket *t)
{
    static struct tasks tasks;
    char why[TASKS_WHY];
    get_text(r, t->tasks, TASKS_TEXT_MAX);
    r->bad =
        r->bad || !*t->tasks || tasks_parse(t->tasks, true, &tasks, why) < 0 || t->counter > UINT64_MAX - tasks.count;
    t->ntasks = tasks.count;
}

static bool take_proof(const char *text, struct ticket *t)
{
    size_t length = strnlen(text, sizeof(t->proof) * 2 + 1);
    if (length == 0 || length > sizeof(t->proof) * 2 || length % ((size_t)2 * TREE_DIGEST_BYTES))
        return false;
    t->nproof = (uint32_t)(length / ((size_t)2 * TREE_DIGEST_BYTES));
    return unhex(text, length, t->proof[0]) > 0;
}

/* What stands behind the slash; *length: of what is before it. False: nothing that is ever there. */
static bool take_task(const char *text, size_t *length, struct ticket *t)
{
    const char *slash = strchr(text, '/'), *c;
    *length = slash ? (size_t)(slash - text) : strnlen(text, TICKET_TEXT_MAX + 1);
    if (!slash)
        return true;
    if (slash[1] < '1' || slash[1] > '9')
        return false;
    for (c = slash + 1; *c >= '0' && *c <= '9' && c <= slash + TASK_DIGITS; c++)
        t->task = 10 * t->task + (uint32_t)(*c - '0');
    return *c == 0 || (*c == '/' && take_proof(c + 1, t));
}

static bool read_all(struct reader *r, struct ticket *t)
{
    const uint8_t *begin = take(r, sizeof(head) - 1);
    uint64_t flags;
    if (!begin || memcmp(begin, head, sizeof(head) - 1) != 0)
        return false;
    get_text(r, t->host, TICKET_HOST_MAX);
    t->counter = get_number(r, 8);
    t->uid = (uint32_t)get_number(r, 4);
    get_text(r, t->user, TICKET_USER_MAX);
    get_text(r, t->name, TICKET_NAME_MAX);
    get_text(r, t->token, TICKET_NAME_MAX);
    t->nprocs = (uint32_t)get_number(r, 4);
    flags = get_number(r, 1);
    t->each = flags & EACH;
    t->helpers = flags & HELPERS;
    t->requeue = flags & REQUEUE;
    if (flags & ARRAY)
        read_tasks(r, t);
    t->has_lines = flags & LINES;
    if (t->has_lines)
        get(r, t->lines, sizeof(t->lines));
    if (flags & MEMORY) {
        t->memory_bytes = get_number(r, 8);
        r->bad = r->bad || t->memory_bytes == 0;
    }
    get(r, t->command, sizeof(t->command));
    get(r, t->environment, sizeof(t->environment));
    get(r, t->place, sizeof(t->place));
    get_text(r, t->output, TICKET_PATH_MAX);
    get_text(r, t->errors, TICKET_PATH_MAX);
    get(r, t->key, sizeof(t->key));
    get(r, t->certificate, sizeof(t->certificate));
    get(r, t->signature, sizeof(t->signature));
    return !r->bad && r->left == 0 && flags <= (EACH | HELPERS | REQUEUE | ARRAY | LINES | MEMORY) &&
           (t->ntasks > 0 || !t->has_lines) && str_valid_hostname(t->host) && *t->user && t->nprocs > 0;
}

enum ticket_refusal ticket_decode(const char *text, struct ticket *ticket)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    struct reader r = {bytes, 0, false};
    size_t length;
    if (!*text)
        return TICKET_MISSING;
    *ticket = (struct ticket){.counter = 0};
    if (!take_task(text, &length, ticket))
        return TICKET_GARBLED;
    r.left = unhex(text, length, bytes);
    return read_all(&r, ticket) && (ticket->has_lines || ticket->nproof == 0) ? TICKET_GOOD : TICKET_GARBLED;
}

bool ticket_host(const char *text, char host[TICKET_HOST_MAX + 1])
{
    uint8_t bytes[sizeof(head) - 1 + 2 + TICKET_HOST_MAX];
    struct reader r = {bytes, unhex(text, strnlen(text, 2 * sizeof(bytes)), bytes), false};
    const uint8_t *begin = take(&r, sizeof(head) - 1);
    if (!begin || memcmp(begin, head, sizeof(head) - 1) != 0)
        return false;
    get_text(&r, host, TICKET_HOST_MAX);
    return !r.bad && str_valid_hostname(host);
}

/* ---- words ---- */

static const struct {
    const char *name, *text;
} refusals[TICKET_REFUSAL_COUNT] = {
    [TICKET_GOOD] = {"good", "its ticket is good"},
    [TICKET_MISSING] = {"missing",
                        "the job has no ticket: it was submitted through a libelmer, an rsd or an elmer from "
                        "before there were tickets, or on a host without a ticket key (rsd --join again), "
                        "and rsd.conf here says tickets = require"},
    [TICKET_GARBLED] = {"garbled", "its ticket cannot be read: it was cut short or changed on the way"},
    [TICKET_OTHER_CLUSTER] = {"other-cluster", "its ticket is signed with a key that this cluster's CA has not "
                                               "certified for that host: another cluster's, or the host has to join "
                                               "again"},
    [TICKET_FORGED] = {"forged", "the signature of its ticket does not hold: it was changed on the way"},
    [TICKET_NOT_VOUCHED] = {"not-vouched",
                            "the host that has signed its ticket is not believed here, or not about this "
                            "user (vouch and vouch_users in rsd.conf)"},
    [TICKET_OTHER_USER] = {"other-user", "its ticket is of another user"},
    [TICKET_OTHER_LAUNCHER] = {"other-launcher", "its ticket is for a job of another kind (with helpers or without)"},
    [TICKET_TOO_MANY_PROCESSORS] = {"too-many-processors", "its ticket is for fewer processors"},
    [TICKET_OTHER_MEMORY] = {"other-memory",
                             "its ticket is for another amount of memory, or signed by an rsd from before "
                             "memory could be asked for"},
    [TICKET_OTHER_COMMAND] = {"other-command", "its command is not the one that its ticket was signed for"},
    [TICKET_OTHER_ENVIRONMENT] = {"other-environment", "its environment is not the one that its ticket was signed for"},
    [TICKET_ADDED_VARIABLE] = {"added-variable",
                               "a variable that Elmer sets for jobs has a value that it never has, or is missing"},
    [TICKET_OTHER_PLACE] = {"other-place", "its directory or umask is not the one that its ticket was signed for"},
    [TICKET_OTHER_OUTPUT] = {"other-output", "its output files are not those that its ticket was signed for"},
    [TICKET_NO_SUCH_RANK] = {"no-such-rank", "its ticket is for fewer processes than that"},
    [TICKET_NO_SUCH_TASK] = {"no-such-task",
                             "its ticket is for no such task of an array: for other ones, for one job, or "
                             "signed by an rsd from before there were arrays"},
    [TICKET_OTHER_LINE] = {"other-line", "its line is not the one that its ticket was signed for, or it is not shown"},
    [TICKET_OTHER_HELPER] = {"other-helper", "this is no process of a virtual machine that its ticket allows"},
    [TICKET_USED] = {"used", "its ticket was used on this host before"},
    [TICKET_TOO_OLD] = {"too-old", "its ticket is older than what this host remembers of used ones: submit it again"},
    [TICKET_TOO_OFTEN] = {"too-often", "its ticket was used for too many attempts: submit it again"},
    [TICKET_NOT_RECORDED] = {"not-recorded", "it cannot be recorded that its ticket is used"},
};

const char *ticket_refusal_name(enum ticket_refusal why)
{
    return refusals[why].name;
}

const char *ticket_refusal_text(enum ticket_refusal why)
{
    return refusals[why].text;
}
