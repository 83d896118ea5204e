#include "config.h"

#include "client/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "client/common.h"

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

static struct option longs[OPTIONS_MAX + 1]; /* of the table that is read now */
static char letters[3 * OPTIONS_MAX + 3];

static void build(const char *order, const struct option_row *rows)
{
    size_t count = 0, used = (size_t)snprintf(letters, sizeof(letters), "%s:", order);

    for (; !is_last(rows); rows++) {
        int kind = kind_of(rows);

        if (rows->c == 0)
            continue;
        assert(count < OPTIONS_MAX);
        if (rows->name)
            longs[count++] = (struct option){rows->name, kind, NULL, rows->c};
        if (is_letter(rows->c)) { /* a value that may be left out belongs to the long one */
            letters[used++] = (char)rows->c;
            if (kind == required_argument)
                letters[used++] = ':';
        }
    }
    letters[used] = '\0';
    longs[count] = (struct option){NULL, 0, NULL, 0};
}

int options_next(int argc, char **argv, const char *order, const struct option_row *rows)
{
    static const struct option_row *built;

    if (built != rows)
        build(order, rows);
    built = rows;
    return next_option(argc, argv, letters, longs);
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
        int width = rows->c == 0 ? 0 : head_of(rows, head, sizeof(head));

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

void options_print(const struct option_row *rows)
{
    int column = column_of(rows);
    char head[100];

    for (; !is_last(rows); rows++) {
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
