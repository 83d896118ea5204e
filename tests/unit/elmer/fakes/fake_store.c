#include "config.h"

#include "tests/unit/elmer/fakes/fake_store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/store/boot.h"

struct fake_store fake_store;

void fake_store_begin(void)
{
    fake_store = (struct fake_store){.boot = 7};
}

void fake_store_end(void)
{
    assert(!fake_store.open);
    for (size_t i = 0; i < fake_store.nputs; i++)
        record_destroy(fake_store.puts[i].record);
    for (size_t i = 0; i < fake_store.njobs; i++)
        record_destroy(fake_store.jobs[i]);
    free(fake_store.puts);
    fake_store = (struct fake_store){0};
}

void fake_store_commit(void)
{
    assert(fake_store.open && fake_store.committed < fake_store.nputs);
    fake_store.committed = fake_store.nputs;
    fake_store.callbacks->on_commit(fake_store.committed, fake_store.data);
}

void fake_store_fail(const char *text)
{
    fake_store.callbacks->on_failure(text, fake_store.data);
}

const struct record *fake_store_last(uint64_t job)
{
    for (size_t i = fake_store.nputs; i-- > 0;)
        if (fake_store.puts[i].record && fake_store.puts[i].record->id == job)
            return fake_store.puts[i].record;
    return NULL;
}

void fake_store_answer(struct record **records, size_t count, const char *error)
{
    assert(fake_store.nreads);
    struct fake_read read = fake_store.reads[0];
    fake_store.nreads--;
    memmove(fake_store.reads, fake_store.reads + 1, fake_store.nreads * sizeof(read));
    read.answer(records, count, error, read.data);
}

void fake_store_answer_decisions(const struct decision *decisions, size_t count, const char *error)
{
    assert(fake_store.nreads && fake_store.reads[0].type == FAKE_READ_DECISIONS);
    struct fake_read read = fake_store.reads[0];
    fake_store.nreads--;
    memmove(fake_store.reads, fake_store.reads + 1, fake_store.nreads * sizeof(read));
    read.decided(decisions, count, error, read.data);
}

struct record *fake_store_record(uint64_t job, uint32_t uid, const struct wire_submit *submit)
{
    struct wire_message message = {.type = WIRE_submit, .u.submit = *submit};
    struct record *record = record_create();
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    if (wire_encode(&message, WIRE_MINOR, &json, &size, &err) ||
        wire_decode(json, size, WIRE_MINOR, &record->submission, &err)) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    free(json);
    record->id = job;
    record->uid = uid;
    record->user = "alice";
    record->submit = &record->submission.u.submit;
    record->token = record->submit->token;
    record->failed_rank = UINT32_MAX;
    record->exit_status = -1;
    record->submitted_ms = 1;
    return record;
}

/* ---- store.h ---- */

int store_open(uv_loop_t *loop, const char *path, const struct store_callbacks *callbacks, void *data,
               struct store **store, struct err *err)
{
    (void)loop;
    if (fake_store.open_code)
        return err_set(err, fake_store.open_code, "%s cannot be opened", path);
    assert(!fake_store.open);
    fake_store.open = true;
    fake_store.callbacks = callbacks;
    fake_store.data = data;
    *store = (struct store *)&fake_store;
    return 0;
}

void store_close(struct store *store)
{
    assert(store == (struct store *)&fake_store && fake_store.open);
    fake_store.open = false;
}

int store_load(struct store *store, void (*each)(struct record *record, void *data), void *data, uint64_t *next_job,
               uint64_t *next_allocation, struct err *err)
{
    (void)store;
    size_t count = fake_store.njobs;
    fake_store.njobs = 0;
    for (size_t i = 0; i < count; i++)
        each(fake_store.jobs[i], data);
    *next_job = fake_store.next_job ? fake_store.next_job : 1;
    *next_allocation = fake_store.next_allocation ? fake_store.next_allocation : 1;
    return fake_store.load_code ? err_set(err, fake_store.load_code, "the jobs cannot be read") : 0;
}

int store_load_ends(struct store *store, const uint64_t *jobs, size_t count, enum core_end *ends, struct err *err)
{
    (void)store;
    for (size_t i = 0; i < count; i++) {
        ends[i] = CORE_END_FORGOTTEN;
        for (size_t k = 0; k < fake_store.nends; k++)
            if (fake_store.ends[k].job == jobs[i])
                ends[i] = fake_store.ends[k].end;
    }
    return fake_store.load_ends_code ? err_set(err, fake_store.load_ends_code, "the ends cannot be read") : 0;
}

int store_load_certificates(struct store *store, void (*each)(const struct certificate *certificate, void *data),
                            void *data, struct err *err)
{
    (void)store;
    for (size_t i = 0; i < fake_store.ncertificates; i++)
        each(&fake_store.certificates[i], data);
    return fake_store.load_certificates_code
               ? err_set(err, fake_store.load_certificates_code, "the certificates cannot be read")
               : 0;
}

int store_load_hosts(struct store *store, void (*each)(const struct host_row *host, void *data), void *data,
                     struct err *err)
{
    (void)store;
    for (size_t i = 0; i < fake_store.nhosts; i++)
        each(&fake_store.hosts[i], data);
    return fake_store.load_hosts_code ? err_set(err, fake_store.load_hosts_code, "the hosts cannot be read") : 0;
}

int store_load_settings(struct store *store, void (*each)(const struct setting_row *setting, void *data), void *data,
                        struct err *err)
{
    (void)store, (void)err;
    for (size_t i = 0; i < fake_store.nsettings; i++)
        each(&fake_store.settings[i], data);
    return 0;
}

void store_check(struct store *store)
{
    (void)store;
    fake_store.checks++;
}

void store_trim(struct store *store, const struct store_limits *limits)
{
    (void)store;
    fake_store.trims++;
    fake_store.limits = *limits;
}

static struct fake_put *put(void)
{
    assert(fake_store.open);
    fake_store.puts = mem_grow(fake_store.puts, &fake_store.room, fake_store.nputs + 1, sizeof(*fake_store.puts));
    fake_store.puts[fake_store.nputs] = (struct fake_put){0};
    fake_store.held += fake_store.holding;
    return &fake_store.puts[fake_store.nputs++];
}

uint64_t store_put(struct store *store, struct record *record)
{
    (void)store;
    put()->record = record;
    return fake_store.nputs;
}

uint64_t store_put_certificate(struct store *store, const struct certificate *certificate)
{
    (void)store;
    put()->certificate = *certificate;
    return fake_store.nputs;
}

uint64_t store_put_host(struct store *store, const struct host_row *host)
{
    (void)store;
    put()->host = *host;
    return fake_store.nputs;
}

uint64_t store_put_setting(struct store *store, const struct setting_row *setting)
{
    (void)store;
    put()->setting = *setting;
    return fake_store.nputs;
}

uint64_t store_put_decision(struct store *store, const struct decision *decision)
{
    (void)store;
    put()->decision = *decision;
    return fake_store.nputs;
}

void store_want(struct store *store, uint64_t number)
{
    (void)store;
    assert(number && number <= fake_store.nputs);
    if (number > fake_store.wanted)
        fake_store.wanted = number;
}

void store_hold(struct store *store, bool hold)
{
    (void)store;
    fake_store.holding = hold;
}

uint64_t store_committed(const struct store *store)
{
    (void)store;
    return fake_store.committed;
}

static struct fake_read *new_read(enum fake_read_type type, store_answer answer, void *data)
{
    assert(fake_store.nreads < FAKE_STORE_MAX);
    struct fake_read *read = &fake_store.reads[fake_store.nreads++];
    *read = (struct fake_read){.type = type, .answer = answer, .data = data};
    return read;
}

void store_read(struct store *store, const uint64_t *ids, size_t count, store_answer answer, void *data)
{
    (void)store;
    struct fake_read *read = new_read(FAKE_READ_IDS, answer, data);
    assert(count <= sizeof(read->ids) / sizeof(*read->ids));
    memcpy(read->ids, ids, count * sizeof(*ids));
    read->count = count;
}

void store_find(struct store *store, uint32_t uid, const char *token, store_answer answer, void *data)
{
    (void)store;
    struct fake_read *read = new_read(FAKE_READ_TOKEN, answer, data);
    read->uid = uid;
    snprintf(read->text, sizeof(read->text), "%s", token);
}

void store_read_history(struct store *store, uint64_t before, const char *user, int64_t since_ms, size_t count,
                        store_answer answer, void *data)
{
    (void)store;
    struct fake_read *read = new_read(FAKE_READ_HISTORY, answer, data);
    read->before = before;
    read->since_ms = since_ms;
    read->count = count;
    snprintf(read->text, sizeof(read->text), "%s", user);
}

void store_read_decisions(struct store *store, int64_t since_ms, int64_t after, size_t count, store_decisions answer,
                          void *data)
{
    (void)store;
    struct fake_read *read = new_read(FAKE_READ_DECISIONS, NULL, data);
    read->decided = answer;
    read->since_ms = since_ms;
    read->after = after;
    read->count = count;
}

/* ---- boot.h ---- */

int64_t boot_number(void)
{
    return fake_store.boot;
}
