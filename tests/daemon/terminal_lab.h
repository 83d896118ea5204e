/* terminal_lab.h - a job's terminal without Elmer around it: the real elmer-courier holds it, and in place of
 * elmer-tickets a process of the test signs passes and says that they are good. */
#ifndef TESTS_DAEMON_TERMINAL_LAB_H
#define TESTS_DAEMON_TERMINAL_LAB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/run/link.h"
#include "lib/run/look.h"

enum { LAB_JOB = 7, LAB_UID = 1000, LAB_WAIT_MS = 20000 };
#define LAB_USER "alice"
#define LAB_HOST "ws1"

struct terminal_lab {
    char dir[64];
    pid_t desk, holder;
    uint16_t port;
};
/* The desk alone, beside DIR/elmer.sock. While DIR/deny is there no pass is good. */
void terminal_desk_up(struct terminal_lab *lab, const char *dir);
void terminal_desk_down(struct terminal_lab *lab);
/* mode: pty or keep. Its standard error goes to DIR/unseen. */
void terminal_up(struct terminal_lab *lab, const char *mode, const char *const *argv);
/* Its status, of waitpid(2); it must end in LAB_WAIT_MS. */
int terminal_end(struct terminal_lab *lab);
void terminal_down(struct terminal_lab *lab); /* whatever is still there */

/* Who looks, or claims to. */
struct claim {
    bool is_process; /* a pass of a process of the job, not of somebody who looks */
    uint64_t job;
    uint32_t uid;
    const char *user;
};
#define LAB_CLAIM ((struct claim){.job = LAB_JOB, .uid = LAB_UID, .user = LAB_USER})
/* A connection that shows such a pass; true: it is open. */
bool terminal_connect(struct terminal_lab *lab, const struct claim *claim, struct run_link *link);

/* In the place of the holder's port: a process that passes on what is said, for one connection at a time. While
 * DIR/hold is there only the first frame of the holder goes on, and DIR/held says that there is more; DIR/cut ends it.
 * DIR/said has what who has dialled has said. */
pid_t terminal_proxy_up(struct terminal_lab *lab);
bool terminal_has(const struct terminal_lab *lab, const char *name); /* DIR/NAME */

#endif
