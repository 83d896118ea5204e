/* helpers.c - see helpers.h. */
#include "config.h"

#include "lib/ticket/helpers.h"

#include <string.h>
#include <strings.h>

#include "lib/base/variable.h"
#include "lib/job/variables.h"

/* Of names of hosts and of PVM's files. */
#define WORD_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

enum { WORDS_MAX = 64 };

/* ---- processes ---- */

/* A word of what a master pvmd says about its slave, or its own name: no name of a file, which pvmd would read hosts
 * and options from. */
static bool is_daemon_word(const char *word)
{
    if (strcmp(word, "-s") == 0 || strcmp(word, "-S") == 0 || strcmp(word, "-f") == 0)
        return true;
    if (strncmp(word, "-n", 2) == 0)
        return word[2] && strspn(word + 2, WORD_CHARACTERS) == strlen(word + 2);
    if (strncmp(word, "-d", 2) == 0)
        word += strncmp(word, "-d0x", 4) == 0 ? 4 : 2;
    return *word && strspn(word, "0123456789abcdefABCDEF:") == strlen(word);
}

bool helpers_daemon_fits(struct ticket_list argv)
{
    if (argv.count > WORDS_MAX)
        return false;
    for (size_t i = 1; i < argv.count; i++)
        if (!is_daemon_word(argv.items[i]))
            return false;
    /* A master has its name alone; a number makes it a slave, which says so. */
    return argv.count == 2 || (argv.count > 2 && strcasecmp(argv.items[1], "-s") == 0);
}

/* HOST or HOST=ADDRESS: behind a blank PVM would read options. */
static bool is_agent_word(const char *word)
{
    size_t host = strspn(word, WORD_CHARACTERS), address = word[host] == '=' ? strlen(word + host + 1) : 0;
    if (host == 0 || *word == '-' || (word[host] && address == 0))
        return false;
    return !word[host] || strspn(word + host + 1, "0123456789.") == address;
}

/* --wd DIR, then hosts, some with addresses. */
bool helpers_agent_fits(struct ticket_list argv, const char *dir)
{
    if (argv.count < 3 || strcmp(argv.items[1], "--wd") != 0 || strcmp(argv.items[2], dir) != 0)
        return false;
    for (size_t i = 3; i < argv.count; i++)
        if (!is_agent_word(argv.items[i]))
            return false;
    return true;
}

/* ---- variables ---- */

static const char *const unset[] = {JOB_VARIABLES_PVM_UNSET, NULL};

bool helpers_variable(const char *entry)
{
    static const char *const set[] = {JOB_VARIABLES_PVM, NULL};
    return strncmp(entry, "PVM", 3) == 0 && (variable_is_one_of(entry, set) || variable_is_one_of(entry, unset));
}

/* A file of the job's directory, as PVM names it. */
static bool is_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);
    const char *name = path + length;
    return strncmp(path, dir, length) == 0 && name[0] == '/' && name[1] && !strstr(name, "/.") &&
           strspn(name, WORD_CHARACTERS "/") == strlen(name);
}

static size_t times(struct ticket_list environment, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < environment.count; i++)
        count += variable_value(environment.items[i], name) != NULL;
    return count;
}

/* The master says where its socket is before the agent is started. An elmer that has started again does not know it any
 * more: then couriers find it in PVM_TMP. */
bool helpers_variables_are_there(struct ticket_list environment, enum ticket_role role)
{
    static const char *const always[] = {"PVM_TMP", "PVM_WD", "PVM_RSH", "PVMDLOGMAX"};
    const size_t sockets = times(environment, "PVMSOCK");
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        if (times(environment, always[i]) != 1)
            return false;
    return role == TICKET_DAEMON ? sockets == 0 : role == TICKET_AGENT ? sockets == 1 : sockets <= 1;
}

bool helpers_value_fits(const char *entry, const char *dir, const char *tmpdir)
{
    const char *value;
    if (variable_is_one_of(entry, unset))
        return false;
    if ((value = variable_value(entry, "PVM_WD")))
        return strcmp(value, dir) == 0;
    if ((value = variable_value(entry, "PVM_RSH")))
        return strcmp(value, "/bin/false") == 0;
    if ((value = variable_value(entry, "PVMSOCK"))) /* who listens there says what tasks do */
        return is_below(value, tmpdir);
    if ((value = variable_value(entry, "PVMDLOGMAX")))
        return *value && strspn(value, "0123456789") == strlen(value);
    return true;
}
