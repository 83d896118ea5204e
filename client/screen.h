/* screen.h - the terminal of who looks: raw while he does, and as it was in every way out that a program has. */
#ifndef CLIENT_SCREEN_H
#define CLIENT_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* From now on signals come by the descriptor that is returned (signalfd(2)), those to stop and to go on too; -1: errno.
 * What is ignored stays so. */
int screen_signals(void);
/* They do what they do to other programs again. */
void screen_signals_end(void);
/* If standard input is a terminal. */
void screen_raw(void);
void screen_back(void);
bool screen_is_raw(void);
void screen_again(void); /* raw, if it was: we have been stopped */
/* Stop as a program does that has got TSTP, with the terminal as it was; returns when it goes on. */
void screen_stop(void);
/* Of the terminal at standard input or output; 0: there is none. */
void screen_size(uint32_t *rows, uint32_t *columns);
/* The terminal or pipe that this descriptor is, opened again, so that writing does not wait for who reads nothing; not
 * O_NONBLOCK for the one that we have, for who has given it to us may have it too. -1: it is none, or cannot be. A file
 * never waits, and has its place in the one description. */
int screen_open_again(int fd);
/* A line between what the other terminal shows. */
void screen_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
