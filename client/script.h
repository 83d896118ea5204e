/* script.h - job scripts: a file with #ELMER lines, or standard input. Their text goes with the job. */
#ifndef CLIENT_SCRIPT_H
#define CLIENT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

enum { SCRIPT_MAX_BYTES = 64 << 10, SCRIPT_JOB_NAME = 65 };

/* The words of one #ELMER line, NULL at the end. */
struct directive {
    unsigned line;
    char **words;
    int count;
};

struct script {
    const char *place; /* for messages: the file as it was named, or "standard input" */
    char *text;        /* NULL: there is no script */
    size_t size;
    char *name;                    /* what the script calls itself, $0 */
    char *interpreter, *parameter; /* of its first line; parameter may be "" */
    struct directive *directives;
    size_t ndirectives;
    const char **command; /* what script_command() has made */
};

void script_fini(struct script *script);
/* Whether the command is a file with #ELMER lines; then it is read. dir: of the job, from which a relative path
 * begins; only names with a '/' are looked at. -1: go on, with or without script; else the exit code: it has said what
 * is wrong. */
int script_read_file(struct script *script, const char *dir, const char *command);
/* Whether a file has #ELMER lines, by any name; and whether its first line names an interpreter. */
bool script_has_lines(const char *dir, const char *name, bool *interpreter);
/* The same for standard input, which must be a script. */
int script_read_input(struct script *script);
/* The command that runs the text with these arguments (NULL at the end), wherever the job runs. It belongs to the
 * script. The text itself is expected in the environment, as SCRIPT_VARIABLE. */
#define SCRIPT_VARIABLE "ELMER_SCRIPT"
/* A command that script_command() has made for a job: the name of the script, and where its arguments begin. NULL: it
 * is another one. */
const char *script_of_command(const char *const *command, const char *const **arguments);
/* Such a command, but of another version of these programs. */
bool script_is_foreign(const char *const *command);
/* Any text file, for eretry --script: as script_read_file(), but it must be readable, and needs no #ELMER lines. */
int script_read_again(struct script *script, const char *path);
const char *const *script_command(struct script *script, char **arguments);
/* For a job that has no other name. */
void script_job_name(const struct script *script, char name[SCRIPT_JOB_NAME]);

#endif
