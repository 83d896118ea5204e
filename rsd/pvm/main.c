/* elmer-pvm-agent - run by a job's supervisor as the user, on the first host of a job with PVM. Not for people.
 * usage: elmer-pvm-agent [--wd DIR] [NAME[=IP]]...
 * The names are the job's other hosts. Environment: PVMSOCK and PVM_TMP of the running master daemon. stdout: the job's
 * output file, opened to append; stderr: its error file; descriptor 3: the link to the supervisor. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/options/options.h"
#include "rsd/pvm/agent.h"
#include "rsd/pvm/machine.h"

enum { CONTROL_FD = 3 };

enum { OPTION_DIR = OPTION_FIRST_FREE };
static const struct option_row rows[] = {
    {OPTION_DIR, "wd", "DIR", "the working directory of what the user's tasks start"},
    OPTION_ROWS_END,
};
static const struct command command = {"elmer-pvm-agent",
                                       "Usage: elmer-pvm-agent [--wd DIR] [NAME[=IP]]...\n"
                                       "Bring up the virtual machine of a job with PVM. Run by Elmer's supervisor.\n"
                                       "\n",
                                       rows, NULL};

static int usage(const char *what, const char *value)
{
    fprintf(stderr,
            "elmer-pvm-agent: %s%s\nusage: elmer-pvm-agent [--wd DIR] [NAME[=IP]]..., run by Elmer's supervisor\n",
            what, value);
    return AGENT_EXIT_USAGE;
}

/* Split NAME[=IP] in place and check both: they become part of a line that PVM parses. */
static int parse_host(char *text, struct agent_host *host)
{
    struct in_addr address;
    char *equals = strchr(text, '=');
    if (equals)
        *equals = '\0';
    host->name = text;
    host->address = equals ? equals + 1 : NULL;
    if (!str_valid_hostname(host->name))
        return -EINVAL;
    return host->address && inet_pton(AF_INET, host->address, &address) != 1 ? -EINVAL : 0;
}

/* libpvm3 writes what it thinks to stderr; the job's error file is not the place for it. Returns the real stderr. */
static int divert_stderr(void)
{
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, CONTROL_FD + 1);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (kept < 0 || null < 0 || dup2(null, STDERR_FILENO) < 0)
        return STDERR_FILENO;
    close(null);
    return kept;
}

int main(int argc, char **argv)
{
    struct agent_options options = {.output_fd = STDOUT_FILENO, .control_fd = CONTROL_FD};

    for (int c; (c = options_next(argc, argv, "+", rows)) != -1;) {
        if (c != OPTION_DIR)
            return options_common(&command, c, argv, AGENT_EXIT_USAGE);
        options.dir = optarg;
    }
    int count = argc - optind;
    if (count > MACHINE_HOSTS_MAX)
        return usage("too many hosts", "");
    struct agent_host *hosts = calloc((size_t)count + 1, sizeof(*hosts));
    if (!hosts)
        return usage("no memory", "");
    for (int i = 0; i < count; i++)
        if (parse_host(argv[optind + i], &hosts[i]))
            return usage("not a host NAME[=IPv4]: ", argv[optind + i]);
    if (!getenv("PVMSOCK") || !getenv("PVM_TMP"))
        return usage("PVMSOCK and PVM_TMP must name the master daemon's socket and directory", "");

    options.hosts = hosts;
    options.count = (size_t)count;
    signal(SIGPIPE, SIG_IGN);
    options.errors_fd = divert_stderr();
    enum agent_exit status = agent_run(&options);
    free(hosts);
    return status;
}
