/* fuzz_store.c - a store that keeps nothing: it commits and answers when the target says so. */
#include "config.h"

#include "tests/fuzz/fuzz_store.h"

#include <string.h>

#include "elmer/store/store.h"
#include "tests/fuzz/fuzz.h"

enum { READS = 32 };

struct read {
    store_answer answer;
    store_decisions decided; /* in its place */
    void *data;
};

struct store {
    struct store_callbacks callbacks;
    void *data;
    uint64_t put, committed;
    struct read reads[READS];
    size_t nreads;
};

static struct store the_store;

int store_open(uv_loop_t *loop, const char *path, const struct store_callbacks *callbacks, void *data,
               struct store **store, struct err *err)
{
    (void)loop;
    (void)path;
    (void)err;
    the_store = (struct store){.callbacks = *callbacks, .data = data};
    *store = &the_store;
    return 0;
}

void store_close(struct store *store)
{
    store->nreads = 0; /* never answered */
}

int store_load(struct store *store, void (*each)(struct record *record, void *data), void *data, uint64_t *next_job,
               uint64_t *next_allocation, struct err *err)
{
    (void)store;
    (void)each;
    (void)data;
    (void)err;
    *next_job = *next_allocation = 1;
    return 0;
}

uint64_t store_put(struct store *store, struct record *record)
{
    FUZZ_CHECK(record->id > 0, "a record without a job");
    record_destroy(record);
    return ++store->put;
}

void store_want(struct store *store, uint64_t number)
{
    FUZZ_CHECK(number <= store->put, "waited for what was never put");
}

void store_hold(struct store *store, bool hold)
{
    (void)store, (void)hold;
}

uint64_t store_committed(const struct store *store)
{
    return store->committed;
}

static void add_read(struct store *store, store_answer answer, void *data)
{
    if (store->nreads == READS)
        answer(NULL, 0, "too many reads", data);
    else
        store->reads[store->nreads++] = (struct read){.answer = answer, .data = data};
}

void store_read(struct store *store, const uint64_t *ids, size_t count, store_answer answer, void *data)
{
    FUZZ_CHECK(ids && count > 0, "nothing to read");
    add_read(store, answer, data);
}

void store_find(struct store *store, uint32_t uid, const char *token, store_answer answer, void *data)
{
    (void)uid;
    FUZZ_CHECK(token[0] != '\0', "no token");
    add_read(store, answer, data);
}

void store_read_history(struct store *store, uint64_t before, const char *user, int64_t since_ms, size_t count,
                        store_answer answer, void *data)
{
    (void)since_ms;
    (void)before;
    (void)user;
    FUZZ_CHECK(count > 0, "nothing to read");
    add_read(store, answer, data);
}

void store_read_decisions(struct store *store, int64_t since_ms, int64_t after, size_t count, store_decisions answer,
                          void *data)
{
    (void)since_ms;
    (void)after;
    FUZZ_CHECK(count > 0, "nothing to read");
    if (store->nreads == READS)
        answer(NULL, 0, "too many reads", data);
    else
        store->reads[store->nreads++] = (struct read){.decided = answer, .data = data};
}

void store_check(struct store *store)
{
    (void)store;
}

void store_trim(struct store *store, const struct store_limits *limits)
{
    (void)store;
    (void)limits;
}

int store_load_certificates(struct store *store, void (*each)(const struct certificate *certificate, void *data),
                            void *data, struct err *err)
{
    (void)store;
    (void)each;
    (void)data;
    (void)err;
    return 0;
}

uint64_t store_put_certificate(struct store *store, const struct certificate *certificate)
{
    FUZZ_CHECK(certificate->host[0] != '\0' && certificate->serial[0] != '\0', "a certificate of nobody");
    return ++store->put;
}

int store_load_ends(struct store *store, const uint64_t *jobs, size_t count, enum core_end *ends, struct err *err)
{
    (void)store;
    (void)jobs;
    (void)ends;
    (void)err;
    FUZZ_CHECK(count == 0, "a store that was empty has jobs");
    return 0;
}

int store_load_hosts(struct store *store, void (*each)(const struct host_row *host, void *data), void *data,
                     struct err *err)
{
    (void)store;
    (void)each;
    (void)data;
    (void)err;
    return 0;
}

int store_load_settings(struct store *store, void (*each)(const struct setting_row *setting, void *data), void *data,
                        struct err *err)
{
    (void)store;
    (void)each;
    (void)data;
    (void)err;
    return 0;
}

uint64_t store_put_host(struct store *store, const struct host_row *host)
{
    FUZZ_CHECK(host->name[0] != '\0', "a host without a name");
    return ++store->put;
}

uint64_t store_put_setting(struct store *store, const struct setting_row *setting)
{
    FUZZ_CHECK(setting->name[0] != '\0', "a setting without a name");
    return ++store->put;
}

uint64_t store_put_decision(struct store *store, const struct decision *decision)
{
    FUZZ_CHECK(decision->what[0] != '\0' && decision->by[0] != '\0', "nobody has decided, or nothing");
    return ++store->put;
}

void fuzz_store_commit(void)
{
    if (the_store.committed == the_store.put)
        return;
    the_store.committed = the_store.put;
    the_store.callbacks.on_commit(the_store.put, the_store.data);
}

void fuzz_store_answer(bool fails)
{
    struct read read;

    if (the_store.nreads == 0)
        return;
    read = the_store.reads[0];
    memmove(the_store.reads, the_store.reads + 1, --the_store.nreads * sizeof(read));
    if (read.decided)
        read.decided(NULL, 0, fails ? "cannot be read" : NULL, read.data);
    else
        read.answer(NULL, 0, fails ? "cannot be read" : NULL, read.data);
}

void fuzz_store_fail(const char *why)
{
    the_store.callbacks.on_failure(why, the_store.data);
}

void *fuzz_store_owner(void)
{
    return the_store.data;
}
