/* launchers.h - which launchers there are, and how messages name them. The only place outside elmer/launch/launchers
 * that knows them by name; what they do is said there. A new one that hosts must be able to, or be told of, is a row in
 * launchers.c. */
#ifndef ELMER_ENGINE_LAUNCHERS_H
#define ELMER_ENGINE_LAUNCHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/wire.h"

enum launcher_kind { LAUNCHER_PLAIN, LAUNCHER_EACH, LAUNCHER_PVM, LAUNCHER_COUNT };

/* The one that the submission asks for. */
enum launcher_kind launcher_of(const struct wire_submit *submit);
/* What a host must have for it, in words for people; NULL: nothing. */
const char *launcher_needs(enum launcher_kind kind);

/* Beside the bits of launchers: it knows tasks of arrays, and lines of these; what memory it has for jobs; it gives
 * commands terminals; it has what holds a virtual machine that has no command. */
enum {
    OFFERS_ARRAYS = 1 << 30,
    OFFERS_LINES = 1 << 29,
    OFFERS_MEMORY = 1 << 28,
    OFFERS_TERMINALS = 1 << 27,
    OFFERS_MACHINES = 1 << 26
};
/* Launchers that a host can run, as a set of bits. */
uint32_t launchers_of_host(const struct wire_host_hello *hello);
static inline bool launchers_have(uint32_t set, enum launcher_kind kind)
{
    return (set & 1u << kind) != 0;
}
/* What the host has of all that launchers need, for the log: "PVM yes". Returns text. */
const char *launchers_describe(uint32_t set, char *text, size_t size);
/* Fill in what a host is told of it when it opens the job. */
void launcher_tell_host(enum launcher_kind kind, struct wire_open *open);

#endif
