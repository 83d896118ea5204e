/* table.c - aligned columns of text. */
#include "config.h"

#include "client/table.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/colour.h"
#include "client/common.h"

enum { GAP = 2, FLEXIBLE_MIN = 8, LAST_MIN = 10, LAST_COMFORTABLE = 40, BELOW = 5 };

void table_init(struct table *table, const struct table_column *columns, size_t ncolumns)
{
    *table = (struct table){.columns = columns, .ncolumns = ncolumns};
}

void table_fini(struct table *table)
{
    for (size_t i = 0; i < table->nrows * table->ncolumns; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table->paint);
    *table = (struct table){0};
}

void table_add(struct table *table, const char *const *cells)
{
    size_t at = table->nrows * table->ncolumns;

    if (table->nrows == table->room) {
        table->room = 2 * table->room + 16;
        table->cells = must(reallocarray(table->cells, table->room * table->ncolumns, sizeof(char *)));
        if (colour_wanted())
            table->paint = must(reallocarray(table->paint, table->room * table->ncolumns, sizeof(char *)));
    }
    for (size_t i = 0; i < table->ncolumns; i++)
        table->cells[at + i] = printable(cells[i][0] ? cells[i] : "-");
    for (size_t i = 0; table->paint && i < table->ncolumns; i++)
        table->paint[at + i] = NULL;
    table->nrows++;
}

void table_paint(struct table *table, size_t column, const char *code)
{
    assert(column < table->ncolumns);
    if (table->paint && table->nrows > 0)
        table->paint[(table->nrows - 1) * table->ncolumns + column] = code;
}

/* One character of valid UTF-8: its bytes, and the columns that it takes. */
static size_t next_character(const char *text, size_t *columns)
{
    unsigned char first = (unsigned char)*text;
    size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    uint32_t code = first < 0x80 ? first : first & (0xFFu >> (bytes + 1));
    int width;

    for (size_t i = 1; i < bytes; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80) {
            *columns = 1;
            return i;
        }
        code = code << 6 | ((unsigned char)text[i] & 0x3Fu);
    }
    width = wcwidth((wchar_t)code);
    *columns = width >= 0 ? (size_t)width : 1;
    return bytes;
}

size_t table_text_width(const char *text)
{
    size_t width = 0, columns;

    while (*text) {
        if (*text >= 0x20 && *text < 0x7F) {
            text++;
            width++;
            continue;
        }
        text += next_character(text, &columns);
        width += columns;
    }
    return width;
}

/* The bytes of text that fit into width columns; used: how many of these they take. */
static size_t fitting(const char *text, size_t width, size_t *used)
{
    const char *p = text;

    *used = 0;
    while (*p) {
        size_t columns, bytes = next_character(p, &columns);

        if (*used + columns > width)
            break;
        *used += columns;
        p += bytes;
    }
    return (size_t)(p - text);
}

static void spaces(FILE *out, size_t count)
{
    while (count-- > 0)
        putc_unlocked(' ', out);
}

static void put_painted(FILE *out, const char *text, const char *code)
{
    if (code)
        fprintf(out, "\033[%sm", code);
    fputs(text, out);
    if (code)
        fputs("\033[0m", out);
}

static void put_cell(FILE *out, const struct table_column *column, const char *text, size_t width, const char *code)
{
    size_t own = table_text_width(text);
    size_t pad = own < width ? width - own : 0;

    if (own > width) {
        size_t used, bytes = fitting(text, width - 3, &used);

        fprintf(out, "%.*s...", (int)bytes, text);
        spaces(out, width - 3 - used); /* of a wide character there was room for half */
        return;
    }
    if (column->right)
        spaces(out, pad);
    put_painted(out, text, code);
    if (!column->right)
        spaces(out, pad);
}

/* Wrapped between words at width; the next lines begin at indent. */
static void put_wrapped(FILE *out, const char *text, size_t indent, size_t width)
{
    while (table_text_width(text) > width) {
        size_t used, bytes = fitting(text, width, &used), cut = bytes;

        while (cut > 0 && text[cut] != ' ')
            cut--;
        if (cut == 0)
            cut = bytes > 0 ? bytes : strlen(text);
        fprintf(out, "%.*s\n", (int)cut, text);
        text += cut;
        text += strspn(text, " ");
        spaces(out, indent);
    }
    fprintf(out, "%s\n", text);
}

/* The last column begins at begin. Where little room is left for a long text, it goes below its row. */
static void put_last(FILE *out, const char *text, size_t begin, size_t width, const char *code)
{
    size_t room = width > begin ? width - begin : 0;

    if (width == 0 || table_text_width(text) <= (room > LAST_MIN ? room : LAST_MIN)) {
        put_painted(out, text, code);
        fputc('\n', out);
    } else if (room >= LAST_COMFORTABLE) {
        put_wrapped(out, text, begin, room);
    } else {
        fputc('\n', out);
        spaces(out, BELOW);
        put_wrapped(out, text, BELOW, width > LAST_COMFORTABLE + BELOW ? width - BELOW : LAST_COMFORTABLE);
    }
}

static void measure(const struct table *table, size_t *widths)
{
    for (size_t c = 0; c < table->ncolumns; c++) {
        widths[c] = table_text_width(table->columns[c].title);
        for (size_t r = 0; r < table->nrows; r++) {
            size_t width = table_text_width(table->cells[r * table->ncolumns + c]);

            if (width > widths[c])
                widths[c] = width;
        }
    }
}

/* Take from the widest flexible column until the last one has room. Returns where the last column begins. */
static size_t fit(const struct table *table, size_t *widths, size_t width)
{
    size_t last = table->ncolumns - 1, begin = 0;
    size_t want = widths[last] < LAST_MIN ? widths[last] : LAST_MIN;

    for (size_t c = 0; c < last; c++)
        begin += widths[c] + GAP;
    while (width > 0 && begin + want > width) {
        size_t widest = last;

        for (size_t c = 0; c < last; c++)
            if (table->columns[c].flexible && widths[c] > FLEXIBLE_MIN &&
                (widest == last || widths[c] > widths[widest]))
                widest = c;
        if (widest == last)
            break;
        widths[widest]--;
        begin--;
    }
    return begin;
}

static const char *paint_of(const struct table *table, size_t row, size_t column)
{
    return table->paint ? table->paint[row * table->ncolumns + column] : NULL;
}

void table_print(const struct table *table, FILE *out, size_t width)
{
    size_t last = table->ncolumns - 1;
    size_t *widths = must(calloc(table->ncolumns, sizeof(*widths)));
    size_t begin;

    measure(table, widths);
    begin = fit(table, widths, width);
    for (size_t c = 0; c < last; c++) {
        put_cell(out, &table->columns[c], table->columns[c].title, widths[c], NULL);
        spaces(out, GAP);
    }
    fprintf(out, "%s\n", table->columns[last].title);
    for (size_t r = 0; r < table->nrows; r++) {
        char **cells = &table->cells[r * table->ncolumns];

        for (size_t c = 0; c < last; c++) {
            put_cell(out, &table->columns[c], cells[c], widths[c], paint_of(table, r, c));
            spaces(out, GAP);
        }
        put_last(out, cells[last], begin, width, paint_of(table, r, last));
    }
    free(widths);
}

size_t table_terminal_width(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
