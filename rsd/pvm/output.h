/* output.h - puts the output of many tasks into one file, whole lines, in the order of their ends. */
#ifndef RSD_PVM_OUTPUT_H
#define RSD_PVM_OUTPUT_H

#include <stddef.h>

/* A longer line is cut into lines of this length. */
enum { OUTPUT_LINE_MAX = 65536 };

/* One task's output: the beginning of a line whose end has not come yet. */
struct output_stream {
    int tid;
    char *line;
    size_t length, capacity;
};

struct output {
    int fd;    /* not owned; opened to append */
    int error; /* errno of the first failed write, 0 if none */
    struct output_stream *streams;
    size_t count, capacity;
};

void output_init(struct output *output, int fd);
/* Frees the streams; what they hold is lost unless output_flush() came before. */
void output_fini(struct output *output);
/* A task is there: it counts as open until output_end(). Does nothing for one that is open. 0 or -ENOMEM. */
int output_begin(struct output *output, int tid);
/* Text of a task, opened if it is not. Lines that it completes are written, together, with one write(2); an unfinished
 * one is kept. 0 or -ENOMEM (the text is lost); errors of writing only show in output->error. */
int output_text(struct output *output, int tid, const char *text, size_t size);
/* The task writes no more: its unfinished line is written with a newline. Does nothing for one that is not open. */
void output_end(struct output *output, int tid);
/* Write all unfinished lines, each with a newline. */
void output_flush(struct output *output);

#endif
