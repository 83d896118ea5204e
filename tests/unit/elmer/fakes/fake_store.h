/* fake_store.h - in place of the room store: what is put is kept in memory, and is on disk when a test says so. */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_STORE_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_STORE_H

#include "elmer/store/store.h"

struct fake_put { /* one of the five */
    struct record *record;
    struct certificate certificate;
    struct host_row host;
    struct setting_row setting;
    struct decision decision;
};
enum fake_read_type { FAKE_READ_IDS, FAKE_READ_TOKEN, FAKE_READ_HISTORY, FAKE_READ_DECISIONS };
struct fake_read {
    enum fake_read_type type;
    uint64_t ids[256]; /* [count] */
    size_t count;      /* of ids; at most so many of a history */
    uint64_t before;
    uint32_t uid;
    char text[256]; /* the token, or the user */
    store_answer answer;
    store_decisions decided;
    int64_t since_ms, after;
    void *data;
};

enum { FAKE_STORE_MAX = 64 };
extern struct fake_store {
    /* What it holds at the start; the records are handed over. */
    struct record *jobs[FAKE_STORE_MAX];
    struct host_row hosts[FAKE_STORE_MAX];
    struct certificate certificates[FAKE_STORE_MAX];
    struct setting_row settings[FAKE_STORE_MAX];
    size_t njobs, nhosts, ncertificates, nsettings;
    uint64_t next_job, next_allocation; /* 0: 1 */
    int64_t boot;                       /* number of the machine's start */
    /* Negative: that fails. */
    struct fake_end {
        uint64_t job;
        enum core_end end;
    } ends[8]; /* [nends] */
    size_t nends;
    int load_ends_code;
    int open_code, load_code, load_hosts_code, load_certificates_code;
    /* What has happened. */
    struct fake_put *puts; /* [nputs], number i + 1 at i */
    size_t nputs, room;
    bool holding;
    size_t held;                /* puts while it was held */
    uint64_t committed, wanted; /* 0: nobody waits */
    struct fake_read reads[FAKE_STORE_MAX];
    size_t nreads; /* not answered yet */
    unsigned checks, trims;
    struct store_limits limits; /* of the last trim */
    bool open;
    /* Of its owner. */
    const struct store_callbacks *callbacks;
    void *data;
} fake_store;

void fake_store_begin(void);
void fake_store_end(void);
/* All that was put is on disk; the owner is told. */
void fake_store_commit(void);
/* The last attempt to write has failed; NULL: it works again. */
void fake_store_fail(const char *text);
/* The last that was put of the job; NULL. */
const struct record *fake_store_last(uint64_t job);
/* The oldest read gets these (handed over), or the error. */
void fake_store_answer(struct record **records, size_t count, const char *error);

/* The same of one for decisions, which stay the caller's. */
void fake_store_answer_decisions(const struct decision *decisions, size_t count, const char *error);

/* A record as store_load() gives it: with its submission, made by this call (names and lists are the caller's until
 * then). Its other fields are as record_create() makes them. */
struct record *fake_store_record(uint64_t job, uint32_t uid, const struct wire_submit *submit);

#endif
