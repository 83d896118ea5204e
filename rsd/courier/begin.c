/* begin.c - what a courier and the holder of a terminal have from their begin on: a pass of their job, and a port. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "rsd/courier/courier.h"

extern char **environ;

enum { HOSTS_BYTES = 16 << 20, BACKLOG = 1024, DESK_MS = 9000, DESK_AGAIN_MS = 100 };

/* rsd may be starting again just now. */
static int get_pass(struct courier *courier, struct err *err)
{
    int64_t deadline = mono_ms(mono_now()) + DESK_MS;
    if (!seal_key_make(&courier->key))
        return err_set(err, -EIO, "a key cannot be made");
    for (;;) {
        struct run_desk desk;
        int result;
        *err = (struct err)ERR_INIT;
        result = run_desk_ask_pass(&desk, courier->key.public_key, err);
        if (result == 0)
            result = run_desk_wait(&desk, courier->text, deadline, err);
        if (result == 0)
            return pass_decode(courier->text, &courier->pass) ? 0 : err_set(err, -EPROTO, "its pass is none");
        if (result == -EACCES || mono_ms(mono_now()) + DESK_AGAIN_MS >= deadline)
            return result;
        poll(NULL, 0, DESK_AGAIN_MS);
    }
}

/* By both protocols, or by IPv4 alone where there is no IPv6. */
static int listen_anywhere(uint16_t *port)
{
    const int off = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    socklen_t length = sizeof(six);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0 ||
                    bind(fd, (struct sockaddr *)&six, sizeof(six)) < 0)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&four, sizeof(four)) < 0)
            return -1;
    }
    if (listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&six, &length) < 0)
        return -1;
    *port = ntohs(six.sin6_port); /* where it is in both */
    return fd;
}

/* As many for us as there may be; children get what we were given. */
static void take_files(struct courier *courier)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &courier->files) < 0)
        return;
    limit = courier->files;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

bool courier_say(const char *line)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    size_t length = strlen(line);
    bool said = write(STDOUT_FILENO, line, length) == (ssize_t)length;
    bool closed = null >= 0 && dup2(null, STDOUT_FILENO) >= 0;
    if (null >= 0)
        close(null);
    return said && closed;
}

/* The file is there from before the first process of the job on; what its user makes of it later, he does to himself.
 */
void courier_read_hosts(struct courier *courier)
{
    const char *hosts = getenv("ELMER_HOSTS"), *file = getenv("ELMER_HOSTFILE");
    struct err none = ERR_INIT;
    courier->between = hosts ? ':' : '\n';
    courier->hosts = hosts ? strdup(hosts) : NULL;
    if (!hosts && file && file_read(AT_FDCWD, file, HOSTS_BYTES, &courier->hosts, &none) < 0)
        courier->hosts = NULL;
}

int courier_begin(struct courier *courier, int *listener, struct err *err)
{
    char line[16];
    uint16_t port = 0;
    int result;
    take_files(courier);
    if (sched_getaffinity(0, sizeof(courier->cpus), &courier->cpus) < 0)
        return err_set(err, -errno, "its processors cannot be read: %s", strerror(errno));
    result = get_pass(courier, err);
    if (result < 0)
        return result;
    *listener = listen_anywhere(&port);
    if (*listener < 0)
        return err_set(err, -errno, "it cannot listen: %s", strerror(errno));
    snprintf(line, sizeof(line), "%u\n", (unsigned)port);
    return courier_say(line) ? 0 : err_set(err, -EIO, "where it listens cannot be said: %s", strerror(errno));
}

bool accept_fails(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

int courier_poll(struct pollfd *fds, struct pollfd *others, size_t count, int timeout)
{
    size_t used = 0;
    int result;
    for (size_t i = 0; i < count; i++)
        if (fds[i].fd >= 0)
            others[used++] = fds[i];
    result = poll(others, used, timeout);
    used = 0;
    for (size_t i = 0; i < count; i++)
        fds[i].revents = (short)(fds[i].fd >= 0 ? others[used++].revents : 0);
    return result;
}

struct run_strings courier_environment(const char *name)
{
    struct run_strings list = {NULL, 0};
    size_t count = 0, length = strlen(name);
    while (environ[count])
        count++;
    list.items = calloc(count + 1, sizeof(*list.items));
    for (size_t i = 0; list.items && i < count; i++)
        if (strncmp(environ[i], name, length) != 0 || environ[i][length] != '=')
            list.items[list.count++] = environ[i];
    return list;
}
