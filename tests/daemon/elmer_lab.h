/* elmer_lab.h - the real elmer as a process in a directory of its own, and scripted rsds and clients that talk to it.
 * Every wait has a deadline and fails the test. */
#ifndef TESTS_DAEMON_ELMER_LAB_H
#define TESTS_DAEMON_ELMER_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

#include "lib/wire/channel.h"

enum { LAB_WAIT_MS = 60000 }; /* after a restart elmer waits 10 s for hosts that do not come back */

struct lab {
    char dir[64];
    char config[4096]; /* beyond the sockets and the store */
    pid_t pid;
    unsigned minor; /* that the fakes speak; WIRE_MINOR unless changed */
    /* Set before the start by tests with a bar for elmer's memory: an address sanitizer keeps 256 MB of what was freed,
     * to find its use; here 1 MB. */
    bool memory_counts;
};

/* Make the directory; config: more lines for elmer.conf (section [elmer] is open). */
void lab_create(struct lab *lab, const char *config);
void lab_configure(const struct lab *lab);            /* write its elmer.conf again */
void lab_start(struct lab *lab);                      /* returns when both sockets are there */
void lab_spawn(struct lab *lab);                      /* the same without waiting for them */
int lab_run(struct lab *lab, char *out, size_t size); /* until it ends by itself: its exit status; what it wrote */
void lab_stop(struct lab *lab, int signal);           /* and wait for its end */
void lab_destroy(struct lab *lab);
int lab_connect(const struct lab *lab, const char *socket); /* "elmer.sock", "host.sock": a bare descriptor */

/* An administrator's request on elmer's own socket, and its answer, of that type, which the caller frees. Where the
 * test is not root, who is one there, it is skipped. */
void lab_ask_as_root(const struct lab *lab, struct wire_message *request, enum wire_type type,
                     struct wire_message *answer);

struct backlog;

/* One end of a link: an rsd or a client. */
struct fake {
    struct channel channel;
    struct backlog *backlog; /* came, but nobody has asked for it yet */
    uint64_t ids;
    unsigned pings; /* that have come and been answered */
};
void fake_open(struct fake *fake, const struct lab *lab, const char *socket); /* hellos included */
void fake_close(struct fake *fake);
void fake_send(struct fake *fake, struct wire_message *message); /* with the next id, kept in message->id */
/* The next message of this type (order, ...), which the caller frees; pings are answered meanwhile. */
void fake_expect(struct fake *fake, enum wire_type type, struct wire_message *message);
bool fake_closed(struct fake *fake);     /* the other side closes it in time */
void fake_await_ping(struct fake *fake); /* another one has been answered */
/* Nothing of this type comes within ms. */
void fake_expect_none(struct fake *fake, enum wire_type type, int ms);

/* An rsd: hello with ncpus CPUs from 0 on; waits for the welcome. */
struct host_options {
    const char *boot;
    uint64_t generation;
    bool no_pvm;
    struct wire_holding *holdings;
    size_t nholdings;
    const char **lacks;
    size_t nlacks;
};
void host_open(struct fake *host, const struct lab *lab, const char *name, unsigned ncpus,
               const struct host_options *options);
void host_relay(struct fake *host, uint64_t client, uint32_t uid, const char *user, struct wire_message *message);
void host_expect_relayed(struct fake *host, uint64_t client, enum wire_type type, struct wire_message *message);
/* Either of the two: an error, or a message of that type. */
void host_expect_answer(struct fake *host, uint64_t client, enum wire_type type, struct wire_message *message);
void host_event(struct fake *host, enum wire_type type, uint64_t job, uint32_t attempt); /* opened pvm_ready ... */
void host_started(struct fake *host, uint64_t job, uint32_t attempt, uint64_t process);
void host_line(struct fake *host, uint64_t job, uint32_t attempt, uint64_t process, const char *line);
void host_exited(struct fake *host, uint64_t job, uint32_t attempt, uint64_t process, const char *role, int status,
                 int signal);
void host_empty(struct fake *host, uint64_t job, uint32_t attempt, double cpu_seconds);
void host_ordered(struct fake *host, uint64_t generation);

/* A submission with everything that is needed; change it before it is sent. */
struct wire_message lab_submission(const char *token, uint64_t nprocs);
/* Submit as alice (2001) through the host, and expect it to be taken; returns the id. */
uint64_t lab_submit(struct fake *host, struct wire_message *submission, char *state, size_t size);
/* The view of a job, as alice sees it. */
void lab_query(struct fake *host, uint64_t job, struct wire_message *message);
/* ... when it has this state. */
void lab_query_until(struct fake *host, uint64_t job, const char *state, struct wire_message *message);

#endif
