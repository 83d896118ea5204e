#include "config.h"

#include "lib/options/options.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

enum { COLUMN_MAX = 26 }; /* texts begin further to the left, and behind a longer option in the next line */

static bool is_letter(int c)
{
    return c > ' ' && c < 127;
}

static bool is_last(const struct option_row *row)
{
    return row->c == 0 && !row->text;
}

static bool may_lack_value(const struct option_row *row)
{
    return row->value && (row->value[0] == '[' || row->value[0] == '=');
}

static int kind_of(const struct option_row *row)
{
    return !row->value ? no_argument : may_lack_value(row) ? optional_argument : required_argument;
}

/* ---- reading ---- */

static const struct option_row *table; /* that is read now */
static struct option longs[OPTIONS_MAX + 1];
static const struct option_row *rows_of_longs[OPTIONS_MAX], *last;
static char letters[3 * OPTIONS_MAX + 3];

static void build(const char *order, const struct option_row *rows)
{
    size_t count = 0, used = (size_t)snprintf(letters, sizeof(letters), "%s:", order);

    table = rows;
    for (; !is_last(rows); rows++) {
        int kind = kind_of(rows);

        if (rows->c == 0)
            continue;
        assert(count < OPTIONS_MAX);
        if (rows->name) {
            rows_of_longs[count] = rows;
            longs[count++] = (struct option){rows->name, kind, NULL, rows->c};
        }
        if (is_letter(rows->c)) { /* a value that may be left out belongs to the long one */
            letters[used++] = (char)rows->c;
            if (kind == required_argument)
                letters[used++] = ':';
        }
    }
    letters[used] = '\0';
    longs[count] = (struct option){NULL, 0, NULL, 0};
}

static const struct option_row *row_of_letter(int c)
{
    for (const struct option_row *row = table; !is_last(row); row++)
        if (row->c == c)
            return row;
    return NULL;
}

int options_next(int argc, char **argv, const char *order, const struct option_row *rows)
{
    int which = -1, c;

    if (table != rows || letters[0] != (*order ? *order : ':'))
        build(order, rows);
    opterr = 0;
    c = getopt_long(argc, argv, letters, longs, &which);
    last = which >= 0 ? rows_of_longs[which] : c > 0 ? row_of_letter(c) : NULL;
    return c;
}

const struct option_row *options_row(void)
{
    return last;
}

const struct option_row *options_find(const struct option_row *rows, const char *name, size_t length)
{
    for (; !is_last(rows); rows++)
        if (rows->c != 0 && rows->name && strncmp(rows->name, name, length) == 0 && !rows->name[length])
            return rows;
    return NULL;
}

/* ---- what is wrong ---- */

/* " '--each' '--error'": those that begin so, as far as there is room. Returns their number. */
static size_t beginning_with(const char *name, size_t length, char *list, size_t size)
{
    size_t count = 0, used = 0;

    list[0] = '\0';
    for (const struct option *o = longs; o->name; o++)
        if (strncmp(o->name, name, length) == 0) {
            count++;
            used += (size_t)snprintf(list + used, size - used, " '--%s'", o->name);
            used = used < size ? used : size - 1;
        }
    return count;
}

/* The one that was probably meant; NULL: none. */
static const char *nearest(const char *name, size_t length)
{
    const char *best = NULL;
    size_t least = length / 3 < 2 ? length / 3 + 1 : 3; /* typing errors: one in three letters, two at most */
    char word[64];

    if (length >= sizeof(word))
        return NULL;
    snprintf(word, sizeof(word), "%.*s", (int)length, name);
    for (const struct option *o = longs; o->name; o++) {
        size_t distance = str_distance(word, o->name);

        if (distance < least) {
            least = distance;
            best = o->name;
        }
    }
    return best;
}

static void wrong_long(const char *word, char *text, size_t size)
{
    char list[300];
    size_t length = strcspn(word + 2, "="), count = beginning_with(word + 2, length, list, sizeof(list));
    const char *meant = nearest(word + 2, length);

    if (count == 1)
        snprintf(text, size, "option%s doesn't allow an argument", list);
    else if (count > 1)
        snprintf(text, size, "option '%.150s' is ambiguous; possibilities:%s", word, list);
    else if (meant)
        snprintf(text, size, "unrecognized option '%.300s'; did you mean '--%s'?", word, meant);
    else
        snprintf(text, size, "unrecognized option '%.400s'", word);
}

void options_fault(int c, char **argv, char text[OPTIONS_FAULT_BYTES])
{
    const char *word = argv[optind > 0 ? optind - 1 : 0];
    size_t size = OPTIONS_FAULT_BYTES;

    if (c == ':')
        snprintf(text, size, "option '%.400s' needs a value", word);
    else if (is_letter(optopt) && !strchr(letters, optopt)) /* one of several letters, perhaps */
        snprintf(text, size, "unknown option '-%c'", optopt);
    else if (strncmp(word, "--", 2) == 0)
        wrong_long(word, text, size);
    else
        snprintf(text, size, "option '%.400s' is unknown", word);
}

/* ---- --help ---- */

/* "  -t, --time TIME" */
static int head_of(const struct option_row *row, char *head, size_t size)
{
    char letter[8] = "";

    if (is_letter(row->c))
        snprintf(letter, sizeof(letter), "-%c%s", row->c, row->name ? ", " : "");
    return snprintf(head, size, "  %s%s%s%s%s", letter, row->name ? "--" : "", row->name ? row->name : "",
                    row->value && !may_lack_value(row) ? " " : "", row->value ? row->value : "");
}

static int column_of(const struct option_row *rows)
{
    char head[100];
    int column = 0;

    for (; !is_last(rows); rows++) {
        int width = rows->c == 0 || !rows->text ? 0 : head_of(rows, head, sizeof(head));

        if (width <= COLUMN_MAX && width > column)
            column = width;
    }
    return column + 2;
}

static void print_text(const char *text, int column)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        printf("%.*s\n%*s", (int)(end - text), text, column, "");
    puts(text);
}

static void print_rows(const struct option_row *rows)
{
    int column = column_of(rows);
    char head[100];

    for (; !is_last(rows); rows++) {
        if (!rows->text)
            continue;
        if (rows->c == 0) {
            puts(rows->text);
            continue;
        }
        if (head_of(rows, head, sizeof(head)) + 2 > column)
            printf("%s\n%*s", head, column, "");
        else
            printf("%-*s", column, head);
        print_text(rows->text, column);
    }
}

void options_help(const struct command *command)
{
    fputs(command->help ? command->help : "", stdout);
    if (command->options)
        print_rows(command->options);
    fputs(command->notes ? command->notes : "", stdout);
}

/* ---- daemons ---- */

/* A line on stderr, whatever is in it. */
static int complain(const struct command *command, const char *text, int wrong)
{
    char line[4 * OPTIONS_FAULT_BYTES];

    fprintf(stderr, "%s: %s; see '%s --help'\n", command->name, str_printable(line, sizeof(line), text, strlen(text)),
            command->name);
    return wrong;
}

int options_common(const struct command *command, int c, char **argv, int wrong)
{
    char text[OPTIONS_FAULT_BYTES];

    if (c == 'h') {
        options_help(command);
        return 0;
    }
    if (c == 'V') {
        printf("%s %s\n", command->name, PACKAGE_VERSION);
        return 0;
    }
    options_fault(c, argv, text);
    return complain(command, text, wrong);
}

int options_surplus(const struct command *command, const char *word, int wrong)
{
    char text[OPTIONS_FAULT_BYTES];

    snprintf(text, sizeof(text), "unexpected argument '%.400s'", word);
    return complain(command, text, wrong);
}
