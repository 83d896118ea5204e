/* session_lab.h - a session of a courier in this process, and the erun at its other end. */
#ifndef TESTS_UNIT_RSD_COURIER_SESSION_LAB_H
#define TESTS_UNIT_RSD_COURIER_SESSION_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "rsd/courier/courier.h"

enum { WAIT_MS = 20000, RANKS = 4 };
struct session_lab {
    struct courier courier;
    struct session *session;
    struct run_link erun;
    bool gives_back; /* erun writes what comes, and says so */
    bool terminal;   /* of what is started */
    bool mpi;        /* it is ranks of MPI */
    /* What has come. */
    struct heard {
        size_t out[RANKS], error[RANKS], taken, exits, died, failed, refused;
        uint32_t status[RANKS], signal[RANKS];
        char text[300];
        size_t asked[RANKS];                 /* pieces of PMI */
        char asks[RANKS][RUN_PMI_PIECE + 1]; /* the last */
    } heard;
};
extern struct session_lab lab;

/* cmocka's: until each has seen the pass of the other; until the link is open; until the session is over. */
int session_lab_show(void **state);
int session_lab_begin(void **state);
int session_lab_end(void **state);
/* Both ends, once. */
void session_lab_turn(int timeout);
/* A line for a shell, on so many ranks. */
void session_lab_start(const char *line, size_t ranks, bool input);
void session_lab_start_in(const char *line, size_t ranks, bool input, const char *dir);

#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        int64_t deadline = mono_ms(mono_now()) + WAIT_MS;                                                              \
        while (!(condition) && mono_ms(mono_now()) < deadline)                                                         \
            session_lab_turn(10);                                                                                      \
        assert_true(condition);                                                                                        \
    } while (0)

#endif
