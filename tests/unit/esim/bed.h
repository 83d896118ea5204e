/* bed.h - small simulations for tests: a configuration of pairs of keys and values, and its run. */
#ifndef TESTS_UNIT_ESIM_BED_H
#define TESTS_UNIT_ESIM_BED_H

#include "esim/plan.h"

enum { ROOM = 4096 };
extern double series[ROOM]; /* of the last simulation */
/* pairs: key, value, .. NULL. */
struct config config_of(const char *const *pairs);
#define CONFIG(...) config_of((const char *const[]){__VA_ARGS__, NULL})
/* It is done, or the test has failed. */
struct result simulate(struct config config);
void expect_near(double value, double expected, double most);

#endif
