/* options.h - the options of a program, in one table: how they are read, what --help says of them, and so what shells
 * complete. tests/unit/client/test_completion.sh compares the table with the page. */
#ifndef LIB_OPTIONS_H
#define LIB_OPTIONS_H

#include <getopt.h> /* optarg, optind */
#include <stddef.h>

enum { OPTIONS_MAX = 64, OPTION_FIRST_FREE = 256, OPTIONS_FAULT_BYTES = 512 };

struct option_row {
    int c;             /* what options_next() returns: the letter; where it has none, of OPTION_FIRST_FREE and above */
    const char *name;  /* the long one; NULL: there is none */
    const char *value; /* what --help calls its value; "=X" or "[=X]": it may be left out; NULL: it has none */
    const char *text;  /* for --help; lines are separated by '\n'; NULL: --help does not show it, as it is given by a
                          program. Of a row with c 0: a line between others */
};
/* The last ones of each table, and its end. */
/* clang-format off */
#define OPTION_ROWS_END                                                                                                \
    {'h', "help", NULL, "print this and exit"}, {'V', "version", NULL, "print the version and exit"}, {0, NULL, NULL, NULL}
/* clang-format on */

/* --help prints help, the options and notes, each of which may be NULL. */
struct command {
    const char *name, *help;
    const struct option_row *options;
    const char *notes;
};

/* getopt_long(3) for this table, which prints nothing. order: "+" if what follows the first operand is none of ours,
 * else "". Another order with the same argv counts from optind = 0 on. */
int options_next(int argc, char **argv, const char *order, const struct option_row *rows);
/* The row of what options_next() has returned last, for rows that have a value of c in common. */
const struct option_row *options_row(void);
/* Of '?' and ':', which it returns for an error: what is wrong, and perhaps what was meant. */
void options_fault(int c, char **argv, char text[OPTIONS_FAULT_BYTES]);
/* The row with this long name, of length bytes, for who reads options in a way of his own; NULL: there is none. */
const struct option_row *options_find(const struct option_row *rows, const char *name, size_t length);
/* What --help prints, to stdout. */
void options_help(const struct command *command);
/* For a daemon: what options_next() has returned and the program does not know itself. Prints help or version and
 * returns 0, or says what is wrong with the options on stderr and returns wrong. */
int options_common(const struct command *command, int c, char **argv, int wrong);
/* The same for a word that is no option and too many. */
int options_surplus(const struct command *command, const char *word, int wrong);

#endif
