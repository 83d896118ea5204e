#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/clock.h"
#include "lib/pki/x509.h"
#include "tests/unit/client/config_bed.h"
#include "tests/unit/scratch.h"

struct bed bed;

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list);
int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);
FILE *__real_popen(const char *command, const char *mode);
FILE *__wrap_popen(const char *command, const char *mode);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
    struct addrinfo numeric = *hints;

    for (size_t i = 0; i < sizeof(bed.names) / sizeof(*bed.names) && bed.names[i][0]; i++)
        if (!(hints->ai_flags & AI_NUMERICHOST) && strcmp(node, bed.names[i][0]) == 0)
            node = bed.names[i][1];
    numeric.ai_flags |= AI_NUMERICHOST;
    return __real_getaddrinfo(node, service, &numeric, list);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
    if (address->sa_family == AF_UNIX)
        return __real_bind(fd, address, size);
    errno = bed.bind_error;
    return bed.bind_error ? -1 : 0;
}

/* An interface beside the loopback. */
int __wrap_getifaddrs(struct ifaddrs **list)
{
    static char name[] = "eth0";
    static struct sockaddr_in address = {.sin_family = AF_INET};
    static struct ifaddrs item = {.ifa_name = name, .ifa_flags = IFF_UP, .ifa_addr = (struct sockaddr *)&address};

    assert_int_equal(inet_pton(AF_INET, bed.own ? bed.own : "192.0.2.1", &address.sin_addr), 1);
    *list = &item;
    return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

/* systemctl show: what the test has put into the file "unit"; without it there is no such unit. */
FILE *__wrap_popen(const char *command, const char *mode)
{
    char answer[120];

    assert_memory_equal(command, "timeout 10 systemctl show -p ", 29);
    snprintf(answer, sizeof(answer), "cat %s/unit 2>/dev/null", bed.dir);
    return __real_popen(answer, mode);
}

void bed_begin(void)
{
    static const struct command command = {.name = "eadmin", .help = ""};
    const struct passwd *user = getpwuid(geteuid());

    command_begin(&command);
    memset(&bed, 0, sizeof(bed));
    snprintf(bed.dir, sizeof(bed.dir), "/tmp/elmer-config-XXXXXX");
    assert_non_null(scratch_dir(bed.dir));
    assert_int_equal(chmod(bed.dir, 0755), 0);
    snprintf(bed.conf, sizeof(bed.conf), "%s/a.conf", bed.dir);
    snprintf(bed.pki, sizeof(bed.pki), "%s/pki", bed.dir);
    assert_non_null(user);
    bed.user = strcmp(user->pw_name, "root") == 0 ? "root" : strdup(user->pw_name);
    bed.own = "192.0.2.1";
    bed.names[0][0] = "ws1", bed.names[0][1] = "192.0.2.1";
    bed.names[1][0] = "ws2", bed.names[1][1] = "192.0.2.2";
    bed.names[2][0] = "ws3", bed.names[2][1] = "192.0.2.3";
}

void bed_put(const char *name, const char *text)
{
    assert_true(scratch_put(bed.dir, name, text));
}

void bed_put_f(const char *name, const char *format, ...)
{
    static char text[BED_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    bed_put(name, text);
}

void bed_make_pki(bool server, const char *name, const char *more, int days)
{
    char *ca_key = NULL, *ca = NULL, *key = NULL, *request = NULL, *certificate = NULL, path[120];
    const char *names[] = {name, more};
    int64_t now_s = wall_now().ms / 1000, end_s = now_s + days * 86400L;
    struct pki_terms terms = {.server = server,
                              .names = names,
                              .count = more ? 2 : 1,
                              .begin_s = (days < 0 ? end_s : now_s) - 86400L,
                              .end_s = end_s,
                              .counter = server ? 1 : 0};
    int64_t ca_end_s = now_s + (bed.ca_days ? bed.ca_days : 4000) * 86400L;

    assert_int_equal(pki_ca_create("test", now_s - 400 * 86400L, ca_end_s, &ca_key, &ca, NULL), 0);
    assert_int_equal(pki_key_create(&key, NULL), 0);
    assert_int_equal(pki_request_create(key, name, &request, NULL), 0);
    assert_int_equal(pki_issue(ca_key, ca, request, &terms, &certificate, NULL), 0);
    assert_true(scratch_mkdir(bed.dir, "pki") || access(bed.pki, F_OK) == 0);
    bed_put("pki/ca.crt", ca);
    bed_put("pki/host.crt", certificate);
    bed_put("pki/host.key", key);
    snprintf(path, sizeof(path), "%s/host.key", bed.pki);
    assert_int_equal(chmod(path, 0600), 0);
    pki_key_free(ca_key);
    pki_key_free(key);
    free(ca);
    free(request);
    free(certificate);
}

/* ---- who listens ---- */

int bed_serve(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", bed.dir);
    assert_true(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0);
    return fd;
}

int bed_listen(const char *host, uid_t user, unsigned *port)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    bool six = inet_pton(AF_INET6, host, &in6.sin6_addr) == 1;
    struct sockaddr *address = six ? (struct sockaddr *)&in6 : (struct sockaddr *)&in4;
    socklen_t size = six ? sizeof(in6) : sizeof(in4);
    uid_t own = geteuid();
    int fd;

    assert_true(six || inet_pton(AF_INET, host, &in4.sin_addr) == 1);
    assert_int_equal(seteuid(user), 0);
    fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(seteuid(own), 0);
    assert_int_equal(__real_bind(fd, address, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, address, &size), 0);
    *port = ntohs(six ? in6.sin6_port : in4.sin_port);
    return fd;
}

/* ---- running ---- */

static int kept[2];

static void catch_output(void)
{
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        char path[120];
        int fd;

        snprintf(path, sizeof(path), "%s/output.%d", bed.dir, i);
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        kept[i] = dup(i + 1);
        assert_true(fd >= 0 && kept[i] >= 0 && dup2(fd, i + 1) >= 0);
        close(fd);
    }
}

static void release_output(void)
{
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        char path[120], *text = i ? bed.err : bed.out;
        FILE *file;
        size_t size;

        snprintf(path, sizeof(path), "%s/output.%d", bed.dir, i);
        dup2(kept[i], i + 1);
        close(kept[i]);
        file = fopen(path, "re");
        assert_non_null(file);
        size = fread(text, 1, BED_TEXT - 1, file);
        text[size] = 0;
        fclose(file);
    }
}

int bed_run(int (*call)(const char *path, bool required, const char *user), const char *user)
{
    int result;

    catch_output();
    result = call(bed.conf, true, user);
    release_output();
    return result;
}

int bed_show(int (*call)(const char *path, bool required, bool defaults), bool defaults)
{
    int result;

    catch_output();
    result = call(bed.conf, true, defaults);
    release_output();
    return result;
}

void bed_said(const char *words)
{
    if (!strstr(bed.err, words))
        fail_msg("\"%s\" does not say \"%s\"", bed.err, words);
}

void bed_said_not(const char *words)
{
    if (strstr(bed.err, words) || strstr(bed.out, words))
        fail_msg("\"%s%s\" says \"%s\"", bed.out, bed.err, words);
}

int bed_lines(void)
{
    int lines = 0;

    for (const char *at = bed.err; (at = strchr(at, '\n')); at++)
        lines++;
    return lines;
}
