/* hint.h - commands that cannot be meant. */
#ifndef CLIENT_HINT_H
#define CLIENT_HINT_H

#include <stdbool.h>

/* command: its words, NULL behind the last. The first is looked for in the directories of path, or from dir (NULL: the
 * current directory). counted: a number of processors stands before it. -1: it may be a program, here or elsewhere;
 * else the exit code: it has said what to type instead. */
int hint_command(char **command, const char *dir, const char *path, bool counted);
/* Where a program without a slash is found; malloc'd. NULL: not here, or it has one. */
char *hint_find(const char *name, const char *dir, const char *path);
/* Says that #ELMER lines of a script are not read that is an argument of an interpreter, as in "sh job.sh". */
void hint_interpreter(char **command, const char *dir);

#endif
