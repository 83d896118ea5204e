/* parameters.c - files in which users and administrators set what Open MPI reads.
 *
 * The environment goes over them. For all but the network that is as it should be, since a job has hosts and a launcher
 * of its own. But an interface that somebody has excluded in a file, the usual cure where there is a bridge of
 * containers, cannot stand beside ours: Open MPI then takes neither ("mutually-exclusive"). So who says anything of the
 * interfaces there chooses them.
 *
 * The process looks itself, as the user, at its own rank: a home directory may be slow, or not answer.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/variable.h"
#include "rsd/sup/parameters.h"

enum { PARAMETERS_FILE = 65536 /* bytes of a file that are read */ };

static const struct {
    const char *variable, *parameter; /* ours; without "include" or "exclude" */
} networks[] = {{"OMPI_MCA_btl_tcp_if_include", "btl_tcp_if_"},
                {"OMPI_MCA_oob_tcp_if_include", "oob_tcp_if_"},
                {"PRTE_MCA_prte_if_include", "oob_tcp_if_"}, /* Open MPI 5 knows it by both */
                {"PRTE_MCA_prte_if_include", "prte_if_"}};
enum { NETWORKS = sizeof(networks) / sizeof(networks[0]) };

/* [*text], without what does not fit; what is no file, or not for the user, is empty. */
static void read_file(const char *path, char *text, size_t size)
{
    struct stat st;
    size_t used = 0;
    ssize_t got;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        while (used < size - 1 && (got = read(fd, text + used, size - 1 - used)) > 0)
            used += (size_t)got;
    text[used] = '\0';
    if (fd >= 0)
        close(fd);
}

/* NAME = VALUE, where NAME begins so. */
static bool sets_network(const char *line, const char *parameter)
{
    size_t length = strlen(parameter);
    line += strspn(line, " \t");
    if (strncmp(line, parameter, length) != 0)
        return false;
    line += length;
    if (strncmp(line, "include", 7) != 0 && strncmp(line, "exclude", 7) != 0)
        return false;
    return line[7] == ' ' || line[7] == '\t' || line[7] == '=';
}

static void look_at(const char *path, bool set[NETWORKS])
{
    static char text[PARAMETERS_FILE];
    read_file(path, text, sizeof(text));
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < NETWORKS; i++)
            set[i] = set[i] || sets_network(line, networks[i].parameter);
    }
}

static void take_out(char **environment, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; environment[i]; i++) {
        if (!variable_value(environment[i], name))
            environment[kept++] = environment[i];
    }
    environment[kept] = NULL;
}

void parameters_obey(char **environment, const struct wire_strs *given, const char *home)
{
    static const char *const of_hosts[] = {"/etc/openmpi/openmpi-mca-params.conf",        /* Debian's */
                                           "/etc/openmpi-x86_64/openmpi-mca-params.conf", /* Fedora's */
                                           "/etc/openmpi-aarch64/openmpi-mca-params.conf", "/etc/prte-mca-params.conf"};
    static const char *const of_user[] = {".openmpi", ".prte"};
    bool set[NETWORKS] = {false};
    char path[4096];
    for (size_t i = 0; i < sizeof(of_user) / sizeof(of_user[0]); i++) {
        if (snprintf(path, sizeof(path), "%s/%s/mca-params.conf", home, of_user[i]) < (int)sizeof(path))
            look_at(path, set);
    }
    for (size_t i = 0; i < sizeof(of_hosts) / sizeof(of_hosts[0]); i++)
        look_at(of_hosts[i], set);
    for (size_t i = 0; i < NETWORKS; i++) {
        if (set[i] && !environment_value(given, networks[i].variable))
            take_out(environment, networks[i].variable);
    }
}
