#include "config.h"

#include "libelmer/elmer_reg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_MAX = 65536, NAME_MAX_BYTES = 253 };

/* One block: the array, then a copy of the variable in which every ':' has become the end of a name. */
static char **kept;
static int nkept;

static int name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
}

/* Count the names of a well-formed list; -1 for any other. */
static int count_names(const char *list)
{
    int n = 0;
    for (;;) {
        size_t length = 0;
        while (name_character(list[length]))
            length++;
        if (length == 0 || length > NAME_MAX_BYTES || n == HOSTS_MAX)
            return -1;
        n++;
        list += length;
        if (*list == '\0')
            return n;
        if (*list++ != ':')
            return -1;
    }
}

static char **split(const char *list, int n)
{
    size_t array_bytes = ((size_t)n + 1) * sizeof(char *);
    size_t text_bytes = strlen(list) + 1;
    char **names = malloc(array_bytes + text_bytes);
    if (!names)
        return NULL;
    char *text = (char *)names + array_bytes;
    memcpy(text, list, text_bytes);
    for (int i = 0; i < n; i++) {
        names[i] = text;
        text += strcspn(text, ":");
        *text++ = '\0';
    }
    names[n] = NULL;
    return names;
}

static void keep(char **names, int n)
{
    free(kept);
    kept = names;
    nkept = n;
}

int elmer_register(void)
{
    const char *list = getenv("ELMER_HOSTS");
    if (!list) {
        keep(NULL, 0);
        return 0;
    }
    int n = count_names(list);
    if (n < 0) {
        errno = EINVAL;
        return -1;
    }
    char **names = split(list, n);
    if (!names) {
        errno = ENOMEM;
        return -1;
    }
    keep(names, n);
    return n;
}

char **elmer_hosts(int *n)
{
    if (n)
        *n = nkept;
    return kept;
}
