/* options.h - the options of a command, in one table: how they are read, what --help says of them, and so what shells
 * complete. tests/unit/client/test_completion.sh compares them with the page. */
#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

enum { OPTIONS_MAX = 64 };

struct option_row {
    int c;             /* what options_next() returns: the letter; where it has none, of OPTION_FIRST_FREE and above */
    const char *name;  /* the long one; NULL: there is none */
    const char *value; /* what --help calls its value; "=X" or "[=X]": it may be left out; NULL: it has none */
    const char *text;  /* for --help; lines are separated by '\n'. Of a row with c 0: a line between others */
};
/* The last ones of each table, and its end. */
/* clang-format off */
#define OPTION_ROWS_END                                                                                                \
    {'h', "help", NULL, "print this and exit"}, {'V', "version", NULL, "print the version and exit"}, {0, NULL, NULL, NULL}
/* clang-format on */

/* getopt_long(3) for this table. order: "+" if what follows the first operand is none of ours, else "". What it returns
 * and the command does not know is for common_option(). */
int options_next(int argc, char **argv, const char *order, const struct option_row *rows);
/* The lines of --help, to stdout. */
void options_print(const struct option_row *rows);

#endif
