/* counter.h - which certificate of elmer is the latest: a number in it that grows with each `eadmin init` that makes
 * one, and the highest that was seen, in a file. Hosts refuse lower ones, so that a stolen key can be taken back
 * without any clock. A certificate without it counts as 0, as those of before there was a counter. */
#ifndef LIB_PKI_COUNTER_H
#define LIB_PKI_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct x509_st;

#define COUNTER_FILE "elmer.counter"
enum { COUNTER_TEXT_SIZE = 104 };

/* Before it is signed. */
bool counter_add(struct x509_st *certificate, uint64_t counter);
bool counter_copy(struct x509_st *to, const struct x509_st *from);
uint64_t counter_of(const struct x509_st *certificate);

/* The highest that was seen of this CA (its certificate, PEM): the file elmer.counter in the directory. No file, or
 * that of another CA: 0. -EINVAL: it is damaged. */
int counter_read(int dir, const char *ca, uint64_t *counter, struct err *err);
/* What the file says. */
int counter_text(const char *ca, uint64_t counter, char text[COUNTER_TEXT_SIZE], struct err *err);
/* On disk when it returns. */
int counter_write(int dir, const char *ca, uint64_t counter, struct err *err);

#endif
