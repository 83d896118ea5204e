/* typed.h - what was typed at a job's terminal, until the terminal takes it; or what erun has read, until its first
 * process does. Counted in each session, so that who comes back after a lost connection learns how much has come. At
 * most RUN_WINDOW bytes of a session wait here, and as many of those before. */
#ifndef RSD_COURIER_TYPED_H
#define RSD_COURIER_TYPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct typed {
    uint8_t *bytes;
    size_t begin, end;
    size_t of_before;    /* bytes of it that came in an earlier session */
    uint64_t came, went; /* in this session; went: the terminal has taken it */
    bool ended;          /* this session has said that there is no more of it */
    bool end_waits;      /* the terminal has not been told */
    int ends;            /* so many characters of that are to be typed yet */
    uint8_t last;        /* what the terminal has taken last */
};

bool typed_init(struct typed *typed);
void typed_fini(struct typed *typed);
/* A new session. What an earlier one has typed and nobody has read stays, but for the oldest beyond a window. */
void typed_begin(struct typed *typed);
/* False: there is no room for so much, or it has ended. */
bool typed_put(struct typed *typed, const void *bytes, size_t size);
/* End of input. A second call, after a lost connection, does nothing. */
void typed_end(struct typed *typed);
bool typed_waits(const struct typed *typed); /* for the terminal */
/* To the terminal whose master that is, as much as it takes now. Returns how many bytes of this session that are. */
size_t typed_write(struct typed *typed, int fd);
/* What waits: *size bytes. */
const uint8_t *typed_at(const struct typed *typed, size_t *size);
/* So many of them have gone on. Returns how many of these are of this session. */
size_t typed_take(struct typed *typed, size_t size);

#endif
