/* common.h - what the commands share: messages, exit codes, the connection. */
#ifndef CLIENT_COMMON_H
#define CLIENT_COMMON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/options/options.h"
#include "libelmer/elmer.h"

enum {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    EXIT_JOB = 3,
    EXIT_UNREACHABLE = 4,
    EXIT_PERMISSION = 5,
    EXIT_UNAVAILABLE = 6,
    EXIT_ELMER = 125
};
enum { ANSWER_MS = 30000 }; /* how long a command waits for an answer, and of a list for each page */

/* Call first. */
void command_begin(const struct command *command);
/* One line on stderr, "NAME: ...", control characters made printable. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What is said from now on is about this place, like FILE:LINE; NULL: about none. */
void say_where(const char *place);
/* The same with a hint at --help; returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What options_next() has returned and the command does not know itself: help, version, errors. Returns the exit code.
 */
int common_option(int c, char **argv);
/* Say the error of a call and return the exit code for it; when it has been said that elmer is waited for, for how long
 * it was. */
int say_result(int result, const struct elmer_error *error);
int exit_code(int result);
/* The handle; ELMER_SOCKET in the environment names another socket. NULL: it has said why. */
struct elmer *open_elmer(void);
/* For one that is opened otherwise: elmer's log says who is root by sudo. */
void tell_sudo(struct elmer *elmer);
/* Before a call is made again that elmer cannot answer now; once, as that elmer is waited for. */
void say_unavailable(const char *why);
/* Whether such a message has been said since the last call of this: elmer has been away. */
bool waiting_was_said(void);
/* The id of a job; false: it has said what is wrong. */
bool parse_id(const char *text, uint64_t *id);
/* malloc'd copy without control characters; ends the program when out of memory, as the next ones. */
char *printable(const char *text);
char *printable_format(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
void *must(void *memory);
/* Flush stdout; EXIT_REFUSED (and said why) if what was printed did not arrive, else code. */
int finish_output(int code);

#endif
