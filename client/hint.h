/* hint.h - commands that cannot be meant. */
#ifndef CLIENT_HINT_H
#define CLIENT_HINT_H

#include <stdbool.h>

/* word: the command, to be looked for in the directories of path, or from dir (NULL: the current directory). counted:
 * a number of processors stands before it. -1: it may be a program, here or elsewhere; else the exit code: it has said
 * what to type instead. */
int hint_command(const char *word, const char *dir, const char *path, bool counted);

#endif
