#include "config.h"

#include "lib/run/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PTY = 1, SHELL = 2, HOME = 4, INPUT = 8, MPI = 16, FLAGS = 31 };

/* ---- to bytes ---- */

static void put_number(FILE *out, uint32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        putc((int)(number >> shift & 0xff), out);
}

/* With its NUL, so that it can stay where it is. */
static void put_text(FILE *out, const char *text)
{
    fwrite(text, 1, strlen(text) + 1, out);
}

static void put_strings(FILE *out, const struct run_strings *strings)
{
    put_number(out, (uint32_t)strings->count);
    for (size_t i = 0; i < strings->count; i++)
        put_text(out, strings->items[i]);
}

uint8_t *run_start_pack(const struct run_start *start, size_t *size)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, size);
    if (!out)
        return NULL;
    put_number(out, (start->pty ? PTY : 0U) | (start->shell ? SHELL : 0U) | (start->home ? HOME : 0U) |
                        (start->input ? INPUT : 0U) | (start->mpi ? MPI : 0U));
    put_number(out, start->umask);
    put_number(out, start->rows);
    put_number(out, start->columns);
    put_number(out, start->total);
    put_number(out, (uint32_t)start->nranks);
    for (size_t i = 0; i < start->nranks; i++) {
        put_number(out, start->ranks[i].rank);
        put_number(out, start->ranks[i].cpu);
    }
    put_text(out, start->dir);
    put_strings(out, &start->argv);
    put_strings(out, &start->environment);
    if (fclose(out) == 0)
        return (uint8_t *)bytes;
    free(bytes);
    return NULL;
}

/* ---- from bytes ---- */

struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static uint32_t get_number(struct reader *r)
{
    uint32_t number = 0;
    r->bad = r->bad || r->left < 4;
    for (int i = 0; i < 4 && !r->bad; i++, r->at++, r->left--)
        number = number << 8 | *r->at;
    return number;
}

static const char *get_text(struct reader *r)
{
    const char *text = (const char *)r->at;
    const uint8_t *end = r->bad ? NULL : memchr(r->at, 0, r->left);
    r->bad = !end;
    if (!end)
        return "";
    r->left -= (size_t)(end + 1 - r->at);
    r->at = end + 1;
    return text;
}

/* Each takes a byte at least, so what is claimed cannot be more than there is. */
static size_t get_count(struct reader *r, size_t most, size_t bytes)
{
    size_t count = get_number(r);
    r->bad = r->bad || count > most || count * bytes > r->left;
    return r->bad ? 0 : count;
}

/* How many strings there can be at most: each ends with a NUL. */
static size_t count_ends(const struct reader *r)
{
    size_t count = 0;
    for (const uint8_t *at = r->at, *end = r->at + r->left; (at = memchr(at, 0, (size_t)(end - at))); at++)
        count++;
    return count;
}

static void get_strings(struct reader *r, struct run_strings *strings, const char **items, size_t count)
{
    *strings = (struct run_strings){items, count};
    for (size_t i = 0; i < count; i++)
        items[i] = get_text(r);
    items[count] = NULL;
}

bool run_start_unpack(const uint8_t *bytes, size_t size, struct run_start *start, void **memory)
{
    struct reader r = {bytes, size, false};
    uint32_t flags = get_number(&r);
    struct run_rank *ranks;
    const char **items;
    size_t count, most;
    *memory = NULL;
    *start = (struct run_start){
        .pty = flags & PTY, .shell = flags & SHELL, .home = flags & HOME, .input = flags & INPUT, .mpi = flags & MPI};
    start->umask = get_number(&r);
    start->rows = get_number(&r);
    start->columns = get_number(&r);
    start->total = get_number(&r);
    start->nranks = get_count(&r, RUN_RANKS_MAX, 8);
    if (r.bad || flags > FLAGS || start->nranks == 0 || start->umask > 0777)
        return false;
    count = count_ends(&r); /* one piece for all lists */
    *memory = calloc(1, start->nranks * sizeof(*ranks) + (count + 2) * sizeof(char *));
    if (!*memory)
        return false;
    items = *memory;
    ranks = (struct run_rank *)(items + count + 2);
    for (size_t i = 0; i < start->nranks; i++)
        ranks[i] = (struct run_rank){get_number(&r), get_number(&r)};
    start->ranks = ranks;
    start->dir = get_text(&r);
    most = count;
    count = get_count(&r, most, 1);
    get_strings(&r, &start->argv, items, count);
    items += count + 1;
    count = get_count(&r, most - count, 1);
    get_strings(&r, &start->environment, items, count);
    return !r.bad && r.left == 0 && (start->argv.count > 0 || start->shell);
}
