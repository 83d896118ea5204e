/* hint.c - what people type instead of a command. Only what certainly is wrong is refused: a program need not be on the
 * host where its job is submitted. */
#include "config.h"

#include "client/hint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "client/script.h"
#include "lib/base/str.h"

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define BLANKS  " \t\n"

/* ---- programs ---- */

static char *in_folder(const char *folder, size_t folder_length, const char *name, size_t length)
{
    return must(str_format("%.*s/%.*s", (int)folder_length, folder, (int)length, name));
}

/* malloc'd; relative to dir. */
static char *path_from(const char *dir, const char *name, size_t length)
{
    return name[0] == '/' || !dir ? must(strndup(name, length)) : in_folder(dir, strlen(dir), name, length);
}

static bool is_file(const char *path, bool program)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && (!program || access(path, X_OK) == 0);
}

/* Takes path over; NULL: it is no file. */
static char *if_file(char *path, bool program)
{
    if (is_file(path, program))
        return path;
    free(path);
    return NULL;
}

/* As execvp() finds it in the directory of the job; malloc'd. */
static char *find(const char *name, size_t length, const char *dir, const char *path)
{
    char *found = NULL;

    if (memchr(name, '/', length))
        return if_file(path_from(dir, name, length), false);
    for (const char *at = path; at && !found; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        size_t size = strcspn(at, ":");
        char *folder = path_from(dir, at, size);

        if (size > 0)
            found = if_file(in_folder(folder, strlen(folder), name, length), true);
        free(folder);
    }
    return found;
}

static bool is_program(const char *name, size_t length, const char *dir, const char *path)
{
    char *found = find(name, length, dir, path);

    free(found);
    return found != NULL;
}

char *hint_find(const char *name, const char *dir, const char *path)
{
    return strchr(name, '/') ? NULL : find(name, strlen(name), dir, path);
}

/* ---- what belongs to a shell ---- */

/* Its first word is a program, or sets a variable. */
static bool is_shell_line(const char *word, const char *dir, const char *path)
{
    size_t head = strcspn(word, BLANKS "|;&<>"), name = strspn(word, LETTERS DIGITS);

    return word[head] && head > 0 &&
           (is_program(word, head, dir, path) || (name > 0 && name < head && word[name] == '='));
}

/* NAME=VALUE */
static bool sets_variable(const char *word)
{
    return !strchr(DIGITS, word[0]) && strspn(word, LETTERS DIGITS) > 0 && word[strspn(word, LETTERS DIGITS)] == '=';
}

/* "seed={}/run.sh": what stands for {} is known where a task runs. */
static bool is_made_path(const char *word)
{
    return strchr(word, '{') && strchr(word, '/');
}

/* words: these and the command behind them. In the environment {} stays what it is. */
static int refuse_variable(char **words)
{
    const char *quote = strpbrk(words[0], BLANKS "'\"$&|;<>()*?\\") ? "'" : "", *what = words[0];
    const bool filled_in = strchr(what, '{');

    while (*words && sets_variable(*words))
        words++;
    return usage_error("'%s' sets a variable and is no program: %s %s%s%s%s %s", what,
                       filled_in ? "esubmit .. env" : "esubmit -v", quote, what, quote, filled_in ? "" : " ..",
                       *words ? *words : "COMMAND");
}

static bool is_word_of_shell(const char *word)
{
    static const char *const words[] = {
        "!",        ".",       ":",      "[[",       "alias",  "bg",     "break", "case",   "cd",
        "continue", "declare", "eval",   "exec",     "exit",   "export", "fg",    "for",    "if",
        "let",      "local",   "module", "readonly", "return", "set",    "shift", "source", "trap",
        "type",     "typeset", "ulimit", "umask",    "unset",  "until",  "wait",  "while",  "{"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static int refuse_word_of_shell(char **command)
{
    if (strcmp(command[0], "export") == 0 && command[1] && sets_variable(command[1]))
        return refuse_variable(command + 1);
    if (strcmp(command[0], "cd") == 0 && command[1])
        return usage_error("'cd' is a word of the shell and no program: esubmit -D %s .. COMMAND runs it there, and a "
                           "shell line needs: sh -c '...'",
                           command[1]);
    return usage_error("'%s' is a word of the shell and no program; a shell line needs: sh -c '...'", command[0]);
}

/* ---- a command ---- */

/* "4 ./run.sh" as one word. */
static bool is_quoted_line(const char *word)
{
    size_t digits = strspn(word, DIGITS);

    return digits > 0 && strchr(" \t", word[digits]) && word[digits] && word[digits + strspn(word + digits, BLANKS)];
}

int hint_command(char **command, const char *dir, const char *path, bool counted)
{
    const char *word = command[0];
    char *file;
    bool is_here;

    if (is_program(word, strlen(word), dir, path))
        return -1;
    if (sets_variable(word) && !is_made_path(word) && (command[1] || !strpbrk(word, BLANKS)))
        return refuse_variable(command);
    if (is_shell_line(word, dir, path))
        return usage_error("'%s' is no program; a shell line needs: sh -c '...'", word);
    if (!counted && is_quoted_line(word))
        return usage_error("'%s' is one word: leave out the quotes", word);
    if (strchr(word, '/'))
        return -1;
    file = path_from(dir, word, strlen(word));
    is_here = *word && is_file(file, false);
    free(file);
    if (is_here)
        return usage_error("there is no program '%s' in PATH; did you mean ./%s?", word, word);
    if (is_word_of_shell(word))
        return refuse_word_of_shell(command);
    if (!counted && word[strspn(word, "+")] && strchr(DIGITS, word[strspn(word, "+")]))
        return usage_error("'%s' is neither a number of processors, a whole number from 1 to 1000000, nor a program "
                           "of this host; for one that the job's host has: esubmit .. 1 %s",
                           word, word);
    return -1;
}

/* ---- scripts behind their interpreters ---- */

/* "python3.11" is "python". */
static bool is_interpreter(const char *command)
{
    static const char *const names[] = {"sh",     "bash", "dash", "ksh",  "zsh",     "fish",  "csh", "tcsh",
                                        "python", "pypy", "perl", "ruby", "Rscript", "julia", "lua"};
    const char *slash = strrchr(command, '/'), *name = slash ? slash + 1 : command;
    size_t length = strcspn(name, DIGITS ".");

    if (name[length + strspn(name + length, DIGITS ".")])
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
            return true;
    return false;
}

void hint_interpreter(char **command, const char *dir)
{
    const char *interpreter = command[0], *slash = strrchr(interpreter, '/');
    bool named;

    if (!is_interpreter(interpreter))
        return;
    for (command++; *command && (*command)[0] == '-';) /* its options */
        command++;
    if (!*command || !script_has_lines(dir, *command, &named))
        return;
    if (named || strcmp(slash ? slash + 1 : interpreter, "sh") == 0)
        say("#ELMER lines of %s are not read: esubmit %s%s", *command, strchr(*command, '/') ? "" : "./", *command);
    else
        say("#ELMER lines of %s are not read: begin it with a line #!/usr/bin/env %s, then esubmit %s%s", *command,
            slash ? slash + 1 : interpreter, strchr(*command, '/') ? "" : "./", *command);
}
