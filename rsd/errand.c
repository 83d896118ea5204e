#include <config.h>

#include "rsd/errand.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rsd/options.h"

/* More than a pipe takes without a reader is no token. */
static int make_input(const char *token)
{
    char line[PIPE_BUF];
    int pair[2], length = snprintf(line, sizeof(line), "%.*s\n", PIPE_BUF - 2, token);
    ssize_t written;

    if (pipe(pair) < 0)
        return -errno;
    written = write(pair[1], line, (size_t)length);
    explicit_bzero(line, sizeof(line));
    close(pair[1]);
    if (written != length || dup2(pair[0], STDIN_FILENO) < 0)
        return -EIO;
    if (pair[0] != STDIN_FILENO)
        close(pair[0]);
    return 0;
}

/* Of more than one no program makes anything, but one of them may be a token. */
static int hide_operands(int argc, char **argv)
{
    static char dash[] = "-";
    int result = 0;

    for (int i = optind; i < argc; i++) {
        if (strcmp(argv[i], dash) == 0)
            continue;
        if (i == optind)
            result = make_input(argv[i]);
        memset(argv[i], 'x', strlen(argv[i]));
        argv[i] = dash;
    }
    return result;
}

int errand_hand_over(const char *program, int argc, char **argv)
{
    int result;

    optind = 0; /* another order: operands come last */
    while (options_next(argc, argv, "", rsd_command.options) != -1)
        ; /* the program says what is wrong with them */
    result = hide_operands(argc, argv);
    if (result < 0)
        return result;
    execv(program, argv);
    return -errno;
}
