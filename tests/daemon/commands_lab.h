/* commands_lab.h - the real commands, one at a time, and an elmer that the test plays. */
#ifndef TESTS_DAEMON_COMMANDS_LAB_H
#define TESTS_DAEMON_COMMANDS_LAB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/wire/channel.h"

enum { OUTPUT_MAX = 65536, RUN_MS = 20000 };

struct world {
    char dir[64], socket[108], out[108], err[108];
    int listening;
    pid_t pid;
    bool closed; /* run the next command without standard files */
    struct channel elmer;
    char stdout_text[OUTPUT_MAX], stderr_text[OUTPUT_MAX];
};

int set_up(void **data);
int tear_down(void **data);
/* words: the command below client/ and its arguments. */
void run(struct world *w, const char *const *words);
#define RUN(w, ...) run(w, (const char *const[]){__VA_ARGS__, NULL})
/* The same, with standard input and error on a terminal, where somebody has typed that already: its other end. */
int run_at_terminal(struct world *w, const char *typed, const char *const *words);
#define RUN_AT_TERMINAL(w, typed, ...) run_at_terminal(w, typed, (const char *const[]){__VA_ARGS__, NULL})
/* What was said there has these words, or has not; closes it. */
void expect_said(int terminal, const char *words);
void expect_unsaid(int terminal, const char *words);
/* The exit status (128+n for a signal), both outputs read. */
int finish(struct world *w);
/* It refuses these words with status 2 and says that, before it asks anybody. */
void run_refused(struct world *w, const char *const *words, const char *text);
#define REFUSED(w, text, ...) run_refused(w, (const char *const[]){__VA_ARGS__, NULL}, text)
/* What it has written so far: one of out and err into its text. */
void read_back(const char *path, char *text);
void accept_command(struct world *w);
/* The same as a daemon that speaks this minor. */
void accept_command_of_minor(struct world *w, unsigned minor);
/* The same, where that daemon cannot read what the command says first: it comes once more. */
void accept_twice_of_minor(struct world *w, unsigned minor);

/* What it has printed is JSON as the schema in TOP/schemas says that it names. */
void check_schema(struct world *w, const char *top);

/* Job 42, with hosts where there is a level. */
void answer_submitted(struct world *w, uint64_t id, const char *state, int level, uint64_t ahead, const char *reason);
void answer_jobs(struct world *w, uint64_t id, struct wire_job_view *views, size_t count, bool more);
extern struct wire_processor view_processors[3];
/* Of alice's; the second has run on ws1 and ws2 and ended. */
struct wire_job_view view_of(uint64_t id, const char *name, const char *state);
struct wire_job_view done_view(uint64_t id, int exit_status, int number, const char *code, const char *reason);

#endif
