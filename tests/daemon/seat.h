/* seat.h - one who looks at the terminal of terminal_lab.h, from within the test. */
#ifndef TESTS_DAEMON_SEAT_H
#define TESTS_DAEMON_SEAT_H

#include "tests/daemon/terminal_lab.h"

struct seat {
    struct run_link link;
    struct run_looking looking;
    bool shown, exited, gives_back;
    uint32_t status, signal;
    char refused[200];
    uint64_t seen, came; /* counted as in run_looking */
    char *text;
    size_t size, room;
};
extern struct terminal_lab lab;
extern const char *const seat_shell[];
int seat_teardown(void **state); /* of the lab */

int64_t soon(void);
void turn(struct seat *seat);
#define UNTIL(seat, condition)                                                                                         \
    do {                                                                                                               \
        int64_t deadline = soon();                                                                                     \
        while (!(condition) && mono_ms(mono_now()) < deadline)                                                         \
            turn(seat);                                                                                                \
        if (!(condition))                                                                                              \
            fail_msg("not %s; shown: %s", #condition, (seat)->text ? (seat)->text : "nothing");                        \
    } while (0)
void ask(struct seat *seat, struct run_look look);
void look_with(struct seat *seat, struct run_look look); /* until it is shown */
void look(struct seat *seat);                            /* anew, in 40 lines of 132 */
void leave(struct seat *seat);                           /* without a word */
void type(struct seat *seat, const char *text);
void forget(struct seat *seat); /* what was shown */
bool shows(const struct seat *seat, const char *text);
/* A line for the shell; what it prints comes behind what was typed, and then its prompt. */
void command(struct seat *seat, const char *line, const char *expected);

#endif
