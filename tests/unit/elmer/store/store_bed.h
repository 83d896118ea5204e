/* store_bed.h - a store in a directory of its own, with a loop, and what its callbacks said. */
#ifndef TESTS_UNIT_ELMER_STORE_STORE_BED_H
#define TESTS_UNIT_ELMER_STORE_STORE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <cmocka.h>

#include "elmer/store/store.h"

struct bed {
    char dir[40], path[60];
    uv_loop_t loop;
    struct store *store;
    uint64_t committed;
    struct record *found[400];
    size_t nfound, answers;
    char error[200], damage[600];
};

int open_store(struct bed *bed, struct err *err);
void close_store(struct bed *bed);
int setup(void **state);
int teardown(void **state);
struct record *make(uint64_t id, uint32_t uid, const char *token, enum job_state state, bool first);
void await(struct bed *bed, uint64_t number);
void collect(struct record *record, void *data);
void drop_found(struct bed *bed);
void answer(struct record **records, size_t count, const char *error, void *data);
struct record *make_ended(uint64_t id, int64_t ended_ms);
size_t history(struct bed *bed, uint64_t before, const char *user, size_t count);
size_t history_since(struct bed *bed, uint64_t before, const char *user, int64_t since_ms, size_t count);
/* The writer trims when it has nothing else to do: wait until the number of ended jobs is this. Counted in reads, each
 * of which costs CPU time, as the writer may wait long for a disk or a CPU that others use. */
void await_history(struct bed *bed, size_t wanted);

#endif
