/* signal.c - a signal to each process of a job: for jobs whose supervisor is of an rsd that did that itself, and where
 * there is no cgroup.kill. A pid may be taken by another process between reading and signalling it: hold a handful,
 * look again, signal those that are still in. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/spawn/spawn.h"

enum { HANDFUL = 256, MOST = 32768 };

static size_t read_pids(int fd, int *pids)
{
    FILE *file = fdopen(dup(fd), "r");
    size_t count = 0;
    if (!file)
        return 0;
    rewind(file);
    while (count < MOST && fscanf(file, "%d", &pids[count]) == 1)
        count++;
    fclose(file);
    return count;
}

static void signal_some(int fd, const int *pids, size_t count, int number)
{
    static int now[MOST];
    int held[HANDFUL];
    size_t there;
    for (size_t i = 0; i < count; i++)
        held[i] = (int)syscall(SYS_pidfd_open, pids[i], 0U);
    there = read_pids(fd, now);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < there && held[i] >= 0; k++) {
            if (now[k] == pids[i])
                (void)syscall(SYS_pidfd_send_signal, held[i], number, NULL, 0U);
        }
        close(held[i]);
    }
}

int signal_all(int groups_fd, const struct spawn_request *request)
{
    static int pids[MOST];
    char name[48], path[80];
    size_t count;
    int fd;
    spawn_name(request, name, sizeof(name));
    snprintf(path, sizeof(path), "%s/%s/cgroup.procs", name, strcmp(request->text, "sup") == 0 ? "sup" : "job");
    fd = openat(groups_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    count = read_pids(fd, pids);
    for (size_t i = 0; i < count; i += HANDFUL)
        signal_some(fd, pids + i, count - i < HANDFUL ? count - i : HANDFUL, (int)request->signal);
    close(fd);
    return 0;
}
