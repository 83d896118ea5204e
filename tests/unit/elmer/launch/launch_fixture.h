/* launch_fixture.h - the room elmer/launch between fakes of the engine and of the hosts, which write down what it does:
 * no process, no socket, no core; time passes when a test says so. */
#ifndef TESTS_UNIT_ELMER_LAUNCH_LAUNCH_FIXTURE_H
#define TESTS_UNIT_ELMER_LAUNCH_LAUNCH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "elmer/engine/launchers.h"
#include "elmer/launch/launch.h"
#include "tests/unit/elmer/fakes/fake_time.h"

enum { HOSTS = 3, RANKS_MAX = 8 };

/* Hosts are ws0, ws1, ws2; ws0 is the queue host, with an rsd on a unix socket. Jobs have the id 7, and end in the core
 * as soon as they fail or their last rank has exited. */
struct fixture {
    struct launches *launches;
    const struct engine_launch *engine; /* what the room has connected to it */
    void *data;
    struct host_facts facts[HOSTS];
    const char *local_address; /* elmer's own, as seen by the others */
    bool linked[HOSTS];
    unsigned minor[HOSTS];
    struct engine_job job;
    struct core_job state;
    struct core_processor processors[RANKS_MAX];
    uint8_t exited[1];
    bool known; /* the job, to the core */
    bool held;  /* what is put is not on disk: what waits for that waits */
    uint32_t exits;
    char log[8192];         /* what has been sent to hosts and told to the engine since the last expect() */
    char environment[4096]; /* of the last start, a variable a line */
};
extern struct fixture f;

/* cmocka's setup and teardown of each test. */
int setup(void **state);
int teardown(void **state);

/* A job that has a processor for each letter of hosts, on ws0 for '0' and so on; CPUs of a host are 0, 1, ... */
void make_job(const char *hosts, const char *const *environment, size_t count);
void begin(void);   /* all its hosts have opened */
void restart(void); /* elmer ends and starts again, and the job is running; exited ranks are in f.exited */
void end(void);     /* it does not run any more */
void commit(void);  /* what is put is on disk */

/* What has happened since the last time is this, line by line. */
void expect(const char *lines);
/* The variable in the last start; NULL: not set. */
const char *variable(const char *name);

/* Hosts say ... */
void say(int host, enum wire_type type, uint32_t process, const char *text); /* started start_failed line */
void say_exited(int host, uint32_t process, const char *role, int status, int signal);
void say_spawn(int host, uint32_t request, const char *name, const char *command);
void say_pvm(int host, enum wire_type type, const char *reason); /* pvm_ready pvm_failed */
void say_empty(int host);

#endif
