/* hint.c - what people type instead of a command. Only what certainly is wrong is refused: a program need not be on the
 * host where its job is submitted. */
#include "config.h"

#include "client/hint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/str.h"

#define DIGITS "0123456789"

/* A file, of length bytes of name. program: it may be executed. */
static bool is_file(const char *dir, size_t dir_length, const char *name, size_t length, bool program)
{
    char *path = name[0] == '/' || !dir ? must(strndup(name, length))
                                        : must(str_format("%.*s/%.*s", (int)dir_length, dir, (int)length, name));
    struct stat status;
    bool found = stat(path, &status) == 0 && S_ISREG(status.st_mode) && (!program || access(path, X_OK) == 0);

    free(path);
    return found;
}

/* As execvp() finds it. */
static bool is_program(const char *name, size_t length, const char *dir, const char *path)
{
    if (memchr(name, '/', length))
        return is_file(dir, dir ? strlen(dir) : 0, name, length, false);
    for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        size_t size = strcspn(at, ":");

        if (size > 0 && is_file(at, size, name, length, true))
            return true;
    }
    return false;
}

/* Its first word is a program, or sets a variable. */
static bool is_shell_line(const char *word, const char *dir, const char *path)
{
    size_t head = strcspn(word, " \t\n|;&<>"),
           name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_" DIGITS);

    return word[head] && head > 0 &&
           (is_program(word, head, dir, path) || (name > 0 && name < head && word[name] == '='));
}

int hint_command(const char *word, const char *dir, const char *path, bool counted)
{
    size_t length = strlen(word);

    if (is_program(word, length, dir, path))
        return -1;
    if (is_shell_line(word, dir, path))
        return usage_error("'%s' is no program; a shell line needs: sh -c '...'", word);
    if (strchr(word, '/'))
        return -1;
    if (length > 0 && is_file(dir, dir ? strlen(dir) : 0, word, length, false))
        return usage_error("there is no program '%s' in PATH; did you mean ./%s?", word, word);
    if (!counted && word[strspn(word, "+")] && strchr(DIGITS, word[strspn(word, "+")]))
        return usage_error("'%s' is neither a number of processors, a whole number from 1 to 1000000, nor a program",
                           word);
    return -1;
}
