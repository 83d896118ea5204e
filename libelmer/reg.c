#include "config.h"

#include "libelmer/elmer.h"
#include "libelmer/elmer_reg.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_MAX = 65536, NAME_MAX_BYTES = 253, ASK_MS = 5000 };

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

static int keep_list(const char *list)
{
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

/* ---- a program that was started by hand, without the job's environment, in a job of its user ---- */

/* The job's id, from a line "0::/elmer.slice/elmer-jobs.scope/JOB.ATTEMPT/job"; 0: none. */
static uint64_t job_of_line(const char *line)
{
    const char *jobs = strstr(line, "/elmer-jobs");
    const char *number = jobs ? strchr(jobs + 1, '/') : NULL;
    char *end;
    if (!number || number[1] < '1' || number[1] > '9')
        return 0;
    errno = 0;
    unsigned long long job = strtoull(number + 1, &end, 10);
    return errno == 0 && *end == '.' && job <= INT64_MAX ? job : 0;
}

static uint64_t own_job(void)
{
    FILE *groups = fopen("/proc/self/cgroup", "re");
    char line[4096];
    uint64_t job = 0;
    while (groups && job == 0 && fgets(line, sizeof(line), groups))
        job = job_of_line(line);
    if (groups)
        fclose(groups);
    return job;
}

/* Its hosts as in ELMER_HOSTS, malloc'd; NULL: errno says why. */
static char *list_of(const struct elmer_jobs *jobs)
{
    char *list = NULL;
    size_t size;
    FILE *out = jobs->count == 1 && jobs->items[0].nprocessors > 0 ? open_memstream(&list, &size) : NULL;
    if (!out) {
        errno = jobs->count == 1 && jobs->items[0].nprocessors > 0 ? ENOMEM : ENOENT;
        return NULL;
    }
    for (size_t i = 0; i < jobs->items[0].nprocessors; i++)
        fprintf(out, "%s%s", i ? ":" : "", jobs->items[0].processors[i].host);
    if (fclose(out) == 0)
        return list;
    free(list);
    errno = ENOMEM;
    return NULL;
}

static char *ask_elmer(uint64_t id)
{
    const char *socket = getenv("ELMER_SOCKET");
    const struct elmer_options options = {.socket = socket && *socket ? socket : NULL, .patience_ms = ASK_MS};
    struct elmer_jobs *jobs = NULL;
    struct elmer *elmer;
    char *list = NULL;
    int opened = elmer_open(&options, &elmer, NULL);
    if (opened != ELMER_OK) {
        errno = opened == ELMER_USAGE ? EINVAL : ENOMEM;
        return NULL;
    }
    if (elmer_query(elmer, false, false, &id, 1, ASK_MS, &jobs, NULL) == ELMER_OK)
        list = list_of(jobs);
    else
        errno = EAGAIN;
    int kept_errno = errno;
    elmer_jobs_free(jobs);
    elmer_close(elmer);
    errno = kept_errno;
    return list;
}

static int join_own_job(void)
{
    uint64_t job = own_job();
    char *list = job ? ask_elmer(job) : NULL;
    if (list) {
        int n = keep_list(list);
        free(list);
        return n;
    }
    if (job && errno != ENOENT)
        return -1;
    keep(NULL, 0);
    errno = ENOENT;
    return 0;
}

int elmer_register(void)
{
    const char *list = getenv("ELMER_HOSTS");
    return list ? keep_list(list) : join_own_job();
}

char **elmer_hosts(int *n)
{
    if (n)
        *n = nkept;
    return kept;
}
