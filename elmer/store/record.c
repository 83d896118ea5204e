#include "config.h"

#include "elmer/store/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pki/digest.h"

struct record *record_create(void)
{
    struct record *record = mem_zalloc(sizeof(*record));
    record->level = CORE_NO_LEVEL;
    record->submitted_ms = record->started_ms = record->ended_ms = -1;
    record->accounted_ms = record->accounted_mono_ms = -1;
    record->user = record->token = record->text = record->environment_sha256 = record->polls = record->line = "";
    return record;
}

void record_destroy(struct record *record)
{
    if (!record)
        return;
    arena_fini(&record->memory);
    wire_message_fini(&record->submission);
    free(record);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int record_json(const struct wire_message *submission, char **json, unsigned *minor, struct err *err)
{
    size_t size;
    *minor = wire_minor_said(submission);
    return mem_result(wire_encode(submission, *minor, json, &size, err));
}

int record_end(const struct wire_message *submission, char **json, unsigned *minor, char digest[RECORD_DIGEST_SIZE],
               struct err *err)
{
    static_assert(RECORD_DIGEST_SIZE == (int)PKI_DIGEST_SIZE, "the size of a digest");
    const struct wire_strs *environment = &submission->u.submit.environment;
    const char **sorted = mem_array(environment->count, sizeof(*sorted));
    struct wire_message kept = {.type = WIRE_submit, .id = submission->id, .u.submit = submission->u.submit};
    if (environment->count) {
        memcpy(sorted, environment->items, environment->count * sizeof(*sorted));
        qsort(sorted, environment->count, sizeof(*sorted), by_text);
    }
    kept.u.submit.environment = (struct wire_strs){0};
    kept.u.submit.ticket = "";
    int result = mem_result(pki_digest(sorted, environment->count, digest, err));
    free(sorted);
    return result ? result : record_json(&kept, json, minor, err);
}

struct wire_strs record_cluster_hosts(const struct record *r, struct arena *memory)
{
    struct wire_strs hosts = {arena_array(memory, r->nprocessors, sizeof(char *)), 0};
    for (uint32_t i = 0; i < r->nprocessors; i++)
        if (!hosts.count || strcmp(hosts.items[hosts.count - 1], r->processors[i].host) != 0)
            hosts.items[hosts.count++] = r->processors[i].host;
    return hosts;
}
