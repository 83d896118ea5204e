/* queued_lines.c - see queued_lines.h. */
#include "config.h"

#include "lib/wire/queued_lines.h"

#include <assert.h>
#include <string.h>

enum column { JOB, NPROCS, AHEAD, SUBMITTED, NAME, USER, REASON, MARKS };
enum { MARK_HELD = 1, MARK_HIDDEN = 2 };

static uint64_t index_of(struct queued_lines *lines, enum column column, const char *text)
{
    size_t *recent = lines->recent[column - NAME].texts, *count = &lines->recent[column - NAME].count;

    for (size_t i = 0; i < QUEUED_RECENT && i < *count; i++)
        if (strcmp(lines->texts[recent[i]], text) == 0)
            return recent[i];
    recent[(*count)++ % QUEUED_RECENT] = lines->ntexts;
    lines->texts[lines->ntexts] = text;
    return lines->ntexts++;
}

void queued_lines_clear(struct queued_lines *lines)
{
    lines->count = lines->ntexts = 0;
    for (size_t i = 0; i < QUEUED_TEXTS; i++)
        lines->recent[i].count = 0;
}

void queued_lines_add(struct queued_lines *lines, const struct queued_line *line)
{
    const uint64_t row[QUEUED_COLUMNS] = {
        [JOB] = line->job,
        [NPROCS] = line->nprocs,
        [AHEAD] = line->ahead,
        [SUBMITTED] = line->submitted_ms,
        [NAME] = index_of(lines, NAME, line->name),
        [USER] = index_of(lines, USER, line->user),
        [REASON] = index_of(lines, REASON, line->reason),
        [MARKS] = (line->held ? MARK_HELD : 0) | (line->hidden ? MARK_HIDDEN : 0),
    };

    assert(lines->count < QUEUED_LINES_MAX);
    for (size_t i = 0; i < QUEUED_COLUMNS; i++)
        lines->columns[i][lines->count] = row[i];
    lines->count++;
}

void queued_lines_put(struct queued_lines *lines, struct wire_lines *message)
{
    struct wire_uints columns[QUEUED_COLUMNS];

    for (size_t i = 0; i < QUEUED_COLUMNS; i++)
        columns[i] = (struct wire_uints){lines->columns[i], lines->count};
    message->queued_jobs = columns[JOB];
    message->queued_nprocs = columns[NPROCS];
    message->queued_ahead = columns[AHEAD];
    message->queued_submitted_ms = columns[SUBMITTED];
    message->queued_names = columns[NAME];
    message->queued_users = columns[USER];
    message->queued_reasons = columns[REASON];
    message->queued_marks = columns[MARKS];
    message->texts = (struct wire_strs){lines->texts, lines->ntexts};
}

static bool within(const struct wire_uints *column, size_t length, uint64_t limit)
{
    if (column->count != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (column->items[i] > limit)
            return false;
    return true;
}

bool queued_lines_fit(const struct wire_lines *message)
{
    const struct wire_lines *m = message;
    size_t length = m->queued_jobs.count;
    uint64_t last = m->texts.count - 1;

    if (m->texts.count == 0 && length > 0)
        return false;
    return within(&m->queued_nprocs, length, UINT32_MAX) && within(&m->queued_ahead, length, UINT32_MAX) &&
           within(&m->queued_submitted_ms, length, INT64_MAX) && within(&m->queued_names, length, last) &&
           within(&m->queued_users, length, last) && within(&m->queued_reasons, length, last) &&
           within(&m->queued_marks, length, MARK_HELD | MARK_HIDDEN);
}

size_t queued_lines_count(const struct wire_lines *message)
{
    return message->queued_jobs.count;
}

struct queued_line queued_lines_at(const struct wire_lines *message, size_t index)
{
    const char *const *texts = message->texts.items;
    uint64_t marks = message->queued_marks.items[index];

    return (struct queued_line){
        .job = message->queued_jobs.items[index],
        .nprocs = message->queued_nprocs.items[index],
        .ahead = message->queued_ahead.items[index],
        .submitted_ms = message->queued_submitted_ms.items[index],
        .name = texts[message->queued_names.items[index]],
        .user = texts[message->queued_users.items[index]],
        .reason = texts[message->queued_reasons.items[index]],
        .held = (marks & MARK_HELD) != 0,
        .hidden = (marks & MARK_HIDDEN) != 0,
    };
}
