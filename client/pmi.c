/* pmi.c - see pmi.h. */
#include "config.h"

#include "client/pmi.h"

#include <assert.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "lib/base/str.h"
#include "lib/run/link.h"

enum { WORDS = 8 };

struct rank {
    enum pmi_state state;
    bool heard;  /* it has said something that it has no answer to */
    bool waits;  /* it is in a barrier */
    bool ended;  /* as a process */
    bool spawns; /* it is amid the lines of a request to spawn, of the how-manieth program of how many */
    uint64_t program, programs;
    char *in; /* what it has said, and was not looked at */
    size_t in_size;
    char *out;
    size_t out_size;
};

struct pair {
    const char *key, *value;
    char text[];
};

struct pmi {
    char name[PMI_NAME_MAX];
    struct rank *ranks;
    size_t nranks, waiting; /* in the barrier */
    uint32_t *ready;        /* [nranks] whose answers can be fetched, in turn; a ring */
    size_t first_ready, nready;
    void *store; /* tsearch(3) tree of struct pair */
    size_t bytes;
    enum pmi_result result;
    struct pmi_said *said;
};

struct word {
    const char *key, *value;
};
struct words {
    struct word words[WORDS];
    size_t count;
};

/* ---- what they share ---- */

static int compare_pairs(const void *one, const void *other)
{
    return strcmp(((const struct pair *)one)->key, ((const struct pair *)other)->key);
}

static const char *find(const struct pmi *pmi, const char *key)
{
    const struct pair wanted = {.key = key};
    struct pair *const *found = tfind(&wanted, &pmi->store, compare_pairs);
    return found ? (*found)->value : NULL;
}

/* NULL, or in a word why not. */
static const char *put(struct pmi *pmi, const char *key, const char *value)
{
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1,
           size = sizeof(struct pair) + key_size + value_size;
    struct pair *pair;
    if (key_size == 1 || key_size > PMI_KEY_MAX || value_size > PMI_VALUE_MAX)
        return "too_long";
    if (find(pmi, key))
        return "duplicate_key";
    if (size > PMI_STORE_BYTES - pmi->bytes)
        return "the_store_is_full";
    pair = must(malloc(size));
    *pair = (struct pair){pair->text, pair->text + key_size};
    memcpy(pair->text, key, key_size);
    memcpy(pair->text + key_size, value, value_size);
    must(tsearch(pair, &pmi->store, compare_pairs));
    pmi->bytes += size;
    return NULL;
}

bool pmi_mapping(const size_t *hosts, size_t nranks, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(vector");
    for (size_t at = 0; at < nranks;) {
        size_t first = hosts[at], each = 0, count = 0;
        while (at + each < nranks && hosts[at + each] == first)
            each++;
        for (bool more = true; more; count += more) { /* hosts that follow, with as many ranks */
            size_t ranks = 0;
            while (at + ranks < nranks && ranks <= each && hosts[at + ranks] == first + count)
                ranks++;
            more = ranks == each;
            at += more ? each : 0;
        }
        used += (size_t)snprintf(text + used, size - used, ",(%zu,%zu,%zu)", first, count, each);
        if (used >= size)
            return false;
    }
    used += (size_t)snprintf(text + used, size - used, ")");
    return used < size;
}

struct pmi *pmi_create(size_t nranks, const char *name, const char *mapping)
{
    struct pmi *pmi = must(calloc(1, sizeof(*pmi)));
    snprintf(pmi->name, sizeof(pmi->name), "%s", name);
    pmi->nranks = nranks;
    pmi->ranks = must(calloc(nranks, sizeof(*pmi->ranks)));
    pmi->ready = must(calloc(nranks, sizeof(*pmi->ready)));
    if (mapping)
        (void)put(pmi, "PMI_process_mapping", mapping);
    return pmi;
}

void pmi_destroy(struct pmi *pmi)
{
    if (!pmi)
        return;
    tdestroy(pmi->store, free);
    for (size_t i = 0; i < pmi->nranks; i++) {
        free(pmi->ranks[i].in);
        free(pmi->ranks[i].out);
    }
    free(pmi->ranks);
    free(pmi->ready);
    free(pmi);
}

/* ---- answers ---- */

static uint32_t number_of(const struct pmi *pmi, const struct rank *rank)
{
    return (uint32_t)(rank - pmi->ranks);
}

/* The first word about what ends all counts. */
static void wrong(struct pmi *pmi, const struct rank *rank, const char *what)
{
    if (pmi->result > PMI_SPAWNS)
        return;
    pmi->result = PMI_WRONG;
    *pmi->said = (struct pmi_said){.rank = number_of(pmi, rank)};
    snprintf(pmi->said->text, sizeof(pmi->said->text), "%s", what);
}

static void answer(struct pmi *pmi, struct rank *rank, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void answer(struct pmi *pmi, struct rank *rank, const char *format, ...)
{
    char line[PMI_LINE_MAX];
    va_list list;
    int length;
    va_start(list, format);
    length = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    if (length < 0 || (size_t)length >= sizeof(line) || rank->out_size + (size_t)length > RUN_PMI_ANSWER) {
        wrong(pmi, rank, "it asks for more than it reads");
        return;
    }
    rank->out = must(realloc(rank->out, rank->out_size + (size_t)length));
    memcpy(rank->out + rank->out_size, line, (size_t)length);
    rank->out_size += (size_t)length;
}

/* ---- what ranks may say ---- */

static const char *value_of(const struct words *words, const char *key)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->words[i].key, key) == 0)
            return words->words[i].value;
    return "";
}

static void hear_init(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    bool known = strcmp(value_of(words, "pmi_version"), "1") == 0;
    if (known && rank->state == PMI_NOT_BEGUN)
        rank->state = PMI_BEGUN;
    answer(pmi, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n", known ? 0 : -1);
}

static void hear_get_maxes(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    answer(pmi, rank, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", PMI_NAME_MAX, PMI_KEY_MAX,
           PMI_VALUE_MAX);
}

static void hear_get_appnum(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    answer(pmi, rank, "cmd=appnum appnum=0\n");
}

static void hear_get_universe_size(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    answer(pmi, rank, "cmd=universe_size size=%zu\n", pmi->nranks);
}

static void hear_get_my_kvsname(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    answer(pmi, rank, "cmd=my_kvsname kvsname=%s\n", pmi->name);
}

static bool is_ours(const struct pmi *pmi, const struct words *words)
{
    return strcmp(value_of(words, "kvsname"), pmi->name) == 0;
}

static void hear_put(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    const char *why =
        is_ours(pmi, words) ? put(pmi, value_of(words, "key"), value_of(words, "value")) : "no_such_store";
    answer(pmi, rank, "cmd=put_result rc=%d msg=%s\n", why ? -1 : 0, why ? why : "success");
}

static void hear_get(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    const char *value = is_ours(pmi, words) ? find(pmi, value_of(words, "key")) : NULL;
    answer(pmi, rank, "cmd=get_result rc=%d msg=%s value=%s\n", value ? 0 : -1, value ? "success" : "key_not_found",
           value ? value : "unknown");
}

static void hear_barrier_in(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    assert(!rank->waits && pmi->waiting < pmi->nranks); /* hear_lines() reads no further */
    rank->waits = true;
    pmi->waiting++;
}

static void hear_finalize(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    rank->state = PMI_FINISHED;
    answer(pmi, rank, "cmd=finalize_ack\n");
}

static void hear_abort(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    if (pmi->result > PMI_SPAWNS)
        return;
    pmi->result = PMI_ABORTS;
    *pmi->said =
        (struct pmi_said){.rank = number_of(pmi, rank), .code = (int)strtol(value_of(words, "exitcode"), NULL, 10)};
}

/* Names of services, which need somebody who outlives us. */
static void hear_publish_name(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    answer(pmi, rank, "cmd=publish_result rc=1 msg=not_served\n");
}

static void hear_unpublish_name(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    answer(pmi, rank, "cmd=unpublish_result rc=1 msg=not_served\n");
}

static void hear_lookup_name(struct pmi *pmi, struct rank *rank, const struct words *words)
{
    (void)words;
    answer(pmi, rank, "cmd=lookup_result rc=1 msg=not_served\n");
}

static const struct {
    const char *name;
    void (*hear)(struct pmi *pmi, struct rank *rank, const struct words *words);
} commands[] = {
    {"init", hear_init},
    {"get_maxes", hear_get_maxes},
    {"get_appnum", hear_get_appnum},
    {"get_universe_size", hear_get_universe_size},
    {"get_my_kvsname", hear_get_my_kvsname},
    {"put", hear_put},
    {"get", hear_get},
    {"barrier_in", hear_barrier_in},
    {"finalize", hear_finalize},
    {"abort", hear_abort},
    {"publish_name", hear_publish_name},
    {"unpublish_name", hear_unpublish_name},
    {"lookup_name", hear_lookup_name},
};

/* ---- lines ---- */

static bool split(char *line, struct words *words)
{
    char *word;
    words->count = 0;
    while ((word = strsep(&line, " "))) {
        char *equals = strchr(word, '=');
        if (!*word)
            continue;
        if (!equals || equals == word || words->count == WORDS)
            return false;
        *equals = 0;
        words->words[words->count++] = (struct word){word, equals + 1};
    }
    return words->count > 0;
}

static bool number_after(const char *line, const char *name, uint64_t *number)
{
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 && str_to_u64(line + length, number);
}

static void begin_spawn(struct rank *rank)
{
    rank->spawns = true;
    rank->program = rank->programs = 0;
}

/* "mcmd=spawn", lines, "endcmd"; so for each program. The answer comes after the last. */
static void hear_spawn(struct pmi *pmi, struct rank *rank, const char *line)
{
    (void)number_after(line, "totspawns=", &rank->programs);
    (void)number_after(line, "spawnssofar=", &rank->program);
    if (strcmp(line, "endcmd") != 0)
        return;
    rank->spawns = false;
    if (rank->program < rank->programs)
        return;
    if (pmi->result == PMI_GOES_ON) {
        pmi->result = PMI_SPAWNS;
        *pmi->said = (struct pmi_said){.rank = number_of(pmi, rank)};
    }
    answer(pmi, rank, "cmd=spawn_result rc=-1 msg=not_served\n");
}

static void hear_command(struct pmi *pmi, struct rank *rank, char *line)
{
    struct words words;
    const char *name;
    if (!split(line, &words)) {
        wrong(pmi, rank, "it says what is no line of PMI 1");
        return;
    }
    name = value_of(&words, "cmd");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0) {
            commands[i].hear(pmi, rank, &words);
            return;
        }
    wrong(pmi, rank, "it asks for what erun does not know of PMI 1");
}

/* Without its end. */
static void hear_line(struct pmi *pmi, struct rank *rank, char *line, size_t size)
{
    bool plain = true;
    for (size_t i = 0; i < size; i++)
        plain = plain && line[i] >= ' ' && line[i] <= '~';
    if (rank->spawns)
        hear_spawn(pmi, rank, line);
    else if (!plain)
        wrong(pmi, rank, "it says what is no line of PMI 1");
    else if (strcmp(line, "mcmd=spawn") != 0)
        hear_command(pmi, rank, line);
    else
        begin_spawn(rank);
}

/* Up to a barrier, or what ends all. */
static void hear_lines(struct pmi *pmi, struct rank *rank)
{
    size_t done = 0;
    while (!rank->waits && pmi->result <= PMI_SPAWNS) {
        char *line = rank->in + done, *end = memchr(line, '\n', rank->in_size - done);
        size_t size = end ? (size_t)(end - line) : rank->in_size - done;
        if (size >= PMI_LINE_MAX)
            wrong(pmi, rank, "it says a line without end");
        if (!end || size >= PMI_LINE_MAX)
            break;
        *end = 0;
        hear_line(pmi, rank, line, size);
        done += size + 1;
    }
    rank->in_size -= done;
    memmove(rank->in, rank->in + done, rank->in_size);
    if (!rank->heard || rank->waits)
        return;
    assert(pmi->nready < pmi->nranks); /* each once, until it has its answer */
    pmi->ready[(pmi->first_ready + pmi->nready++) % pmi->nranks] = number_of(pmi, rank);
}

/* Who has said more than that goes on with it, and may be in the next one. */
static void end_barriers(struct pmi *pmi)
{
    while (pmi->waiting == pmi->nranks && pmi->result <= PMI_SPAWNS) {
        pmi->waiting = 0;
        for (size_t i = 0; i < pmi->nranks; i++) {
            pmi->ranks[i].waits = false;
            answer(pmi, &pmi->ranks[i], "cmd=barrier_out\n");
        }
        for (size_t i = 0; i < pmi->nranks; i++)
            hear_lines(pmi, &pmi->ranks[i]);
    }
}

enum pmi_result pmi_hear(struct pmi *pmi, uint32_t number, const void *bytes, size_t size, struct pmi_said *said)
{
    struct rank *rank = &pmi->ranks[number < pmi->nranks ? number : 0];
    *said = (struct pmi_said){.rank = number};
    pmi->said = said;
    if (pmi->result == PMI_SPAWNS)
        pmi->result = PMI_GOES_ON;
    if (number >= pmi->nranks || rank->heard || size > RUN_PMI_PIECE) {
        wrong(pmi, rank, "it says more than it was asked for");
        said->rank = number;
        return pmi->result;
    }
    rank->heard = true;
    rank->in = must(realloc(rank->in, rank->in_size + size + 1));
    memcpy(rank->in + rank->in_size, bytes, size);
    rank->in_size += size;
    hear_lines(pmi, rank);
    end_barriers(pmi);
    return pmi->result;
}

bool pmi_next(struct pmi *pmi, struct pmi_answer *next)
{
    struct rank *rank;
    if (pmi->nready == 0 || pmi->result > PMI_SPAWNS)
        return false;
    next->rank = pmi->ready[pmi->first_ready];
    pmi->first_ready = (pmi->first_ready + 1) % pmi->nranks;
    pmi->nready--;
    rank = &pmi->ranks[next->rank];
    next->bytes = rank->out;
    next->size = rank->out_size;
    rank->out_size = 0;
    rank->heard = false;
    return true;
}

/* ---- ends ---- */

enum pmi_state pmi_ended(struct pmi *pmi, uint32_t rank)
{
    if (rank >= pmi->nranks)
        return PMI_NOT_BEGUN;
    pmi->ranks[rank].ended = true;
    return pmi->ranks[rank].state;
}

bool pmi_stuck(const struct pmi *pmi, uint32_t *rank)
{
    for (size_t i = 0; i < pmi->nranks && pmi->waiting > 0; i++)
        if (pmi->ranks[i].ended && !pmi->ranks[i].waits) {
            *rank = (uint32_t)i;
            return true;
        }
    return false;
}
