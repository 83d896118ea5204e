/* table.h - aligned columns of text: whole words for files and pipes, fitted to the width for terminals. */
#ifndef CLIENT_TABLE_H
#define CLIENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table_column {
    const char *title;
    bool right;    /* align right (numbers) */
    bool flexible; /* may be cut with "..." on a terminal that is too narrow */
};

struct table {
    const struct table_column *columns;
    size_t ncolumns;
    char **cells;       /* row by row, printable */
    size_t nrows, room; /* in rows */
    const char **paint; /* beside cells; NULL: nothing is painted */
};

/* columns must outlive the table. */
void table_init(struct table *table, const struct table_column *columns, size_t ncolumns);
void table_fini(struct table *table);
/* ncolumns cells, copied and made printable; "" prints as "-". */
void table_add(struct table *table, const char *const *cells);
/* A cell of the last row in this colour, see colour.h, where colours are wanted; code, static, may be NULL. */
void table_paint(struct table *table, size_t column, const char *code);
/* width 0: as wide as it needs, nothing cut. Else flexible columns are cut, and the last column is wrapped between
 * words, below its row where it has little room. */
void table_print(const struct table *table, FILE *out, size_t width);
/* Of the terminal that standard output is; 0: it is none. */
size_t table_terminal_width(void);
/* Columns that text takes on a terminal. */
size_t table_text_width(const char *text);

#endif
