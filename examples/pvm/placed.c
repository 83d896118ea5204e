/* placed - a program that places its tasks itself: one on each processor of the job, by elmer_register().
 *
 * elmer_hosts() names a host once for each processor of the job there, in the order of the ranks, and pvm_spawn() takes
 * these names with PvmTaskHost. Outside Elmer elmer_register() returns 0, whatever virtual machine there is; then this
 * program asks PVM for its hosts and starts one task on each. Each task says where it is; the master compares that with
 * where it wanted it.
 */
#include "common.h"

#include <elmer_reg.h>
#include <errno.h>
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_HERE = 1, TAG_RELEASE, NAME_BYTES = 256 };

static int task(void)
{
    char name[NAME_BYTES] = "";
    int from, bytes, parent = example_check(pvm_parent(), "pvm_parent");
    example_check(pvm_notify(PvmTaskExit, EXAMPLE_TAG_GONE, 1, &parent), "pvm_notify");
    gethostname(name, sizeof(name) - 1);
    pvm_initsend(PvmDataDefault);
    example_check(pvm_pkstr(name), "pvm_pkstr");
    example_check(pvm_send(parent, TAG_HERE), "pvm_send");
    example_receive_tag(TAG_RELEASE, &from, &bytes); /* an end before all are heard would be a failure */
    pvm_exit();
    return 0;
}

/* The hosts of the virtual machine, for want of a job; they live as long as the program. */
static char **hosts_of_pvm(int *n)
{
    struct pvmhostinfo *info;
    example_check(pvm_config(n, NULL, &info), "pvm_config");
    char **names = calloc((size_t)*n + 1, sizeof(*names));
    for (int i = 0; names && i < *n; i++)
        names[i] = strdup(info[i].hi_name);
    if (!names)
        example_die("no memory");
    return names;
}

static char **hosts(int *n, const char **whose)
{
    int registered = elmer_register();
    if (registered < 0)
        example_die("elmer_register: %s", strerror(errno));
    *whose = registered > 0 ? "the job" : "PVM, outside Elmer";
    return registered > 0 ? elmer_hosts(n) : hosts_of_pvm(n);
}

/* Is the task where it was wanted? PVM knows the host of a task by a number, and its name by that. */
static int is_on(int tid, const char *name)
{
    struct pvmhostinfo *info;
    int count, at = example_check(pvm_tidtohost(tid), "pvm_tidtohost");
    example_check(pvm_config(&count, NULL, &info), "pvm_config");
    for (int i = 0; i < count; i++)
        if (info[i].hi_tid == at)
            return strcmp(info[i].hi_name, name) == 0;
    return 0;
}

static int master(void)
{
    static int tids[EXAMPLE_TASKS_MAX];
    const char *whose;
    char **names;
    int n, good = 0;
    names = hosts(&n, &whose);
    if (n > EXAMPLE_TASKS_MAX)
        example_die("%d processors, and it can use at most %d", n, EXAMPLE_TASKS_MAX);
    for (int i = 0; i < n; i++)
        tids[i] = example_spawn_on(names[i]);
    for (int i = 0; i < n; i++) {
        char said[NAME_BYTES];
        int from, bytes;
        if (example_receive_tag(TAG_HERE, &from, &bytes) != TAG_HERE || bytes > NAME_BYTES || pvm_upkstr(said) < 0)
            example_die("a task ended before it said where it is");
        for (int k = 0; k < n; k++) {
            if (tids[k] == from) {
                good += is_on(from, names[k]);
                printf("task %d: wanted on %s, says %s\n", k, names[k], said);
            }
        }
    }
    example_release();
    pvm_initsend(PvmDataDefault);
    example_check(pvm_mcast(tids, n, TAG_RELEASE), "pvm_mcast");
    pvm_exit();
    printf("placed: %s tasks=%d hosts_of=%s\n", good == n ? "verified" : "NOT verified", n, whose);
    return good == n && fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    example_name("placed");
    if (argc > 2 || (argc == 2 && strcmp(argv[1], EXAMPLE_TASK) != 0)) {
        fputs("usage: placed    (in a job: esubmit --pvm N placed)\n", stderr);
        return 2;
    }
    example_enrol();
    return argc == 2 ? task() : master();
}
