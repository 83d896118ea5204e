/* fuzz_store.h - in place of elmer/store/store.c. */
#ifndef ELMER_TESTS_FUZZ_STORE_H
#define ELMER_TESTS_FUZZ_STORE_H

#include <stdbool.h>

/* All that was put is on disk. */
void fuzz_store_commit(void);
/* The oldest read is answered: with nothing, or a failure. */
void fuzz_store_answer(bool fails);
/* It cannot be written; NULL: it can again. */
void fuzz_store_fail(const char *why);
/* The data that its callbacks get: the engine. */
void *fuzz_store_owner(void);

#endif
