/* bed.h - the room hosts over a fake engine and fake links; rooms above it that write down what they are told. */
#ifndef TESTS_UNIT_ELMER_HOSTS_BED_H
#define TESTS_UNIT_ELMER_HOSTS_BED_H

#include "elmer/hosts/hosts.h"
#include "tests/unit/elmer/fakes/fake_engine.h"
#include "tests/unit/elmer/fakes/fake_time.h"
#include "tests/unit/elmer/fakes/heard.h"

enum { QUEUE, WS1, WS2 }; /* the hosts; elmer runs on "queue" */
enum { HOST_UID = 1 };    /* of the user of rsd's network half */
enum { LISTENER_UNIX, LISTENER_TCP };
enum { BEAT_MS = 1000, TIMEOUT_MS = 5000 };

extern struct bed {
    struct hosts *hosts;
    struct host_settings configured[3];
    struct hosts_settings settings;
    char log[1000];    /* what the rooms above were told */
    struct peer *peer; /* of the last on_certificate */
    bool keep;         /* the process message of the last on_process was ... */
    struct wire_message message;
} bed;

int bed_setup(void **state); /* with hosts_create() */
int bed_teardown(void **state);
/* What was told since the last time: "up ws1", "cut ws1", "opened...": "ws1 started", "relay ws1", "shown AB",
 * "join", "renew ws1", "gone". */
void bed_expect(const char *log);

struct greeting { /* of a host_hello; zeros are filled in: 2 CPUs, boot "b1", mode rt */
    const char *host, *boot, *certificate, *serial;
    unsigned minor;
    uint64_t ncpus, generation;
    const struct wire_holding *holdings;
    size_t nholdings;
    bool joiner, local;
    uid_t uid; /* of a local one: 0 or HOST_UID */
};
/* A link that is accepted, and silent. */
int bed_link(const struct greeting *greeting);
void bed_hello(int link, const struct greeting *greeting);
/* Both; the welcome has been heard, EVENT_HOST_UP has been seen, and the log is empty. */
int bed_up(const struct greeting *greeting);
int bed_ws1_up(void);
/* Job 7, attempt 2, with two processors of ws1 and one of ws2, as the engine knows it. */
struct fake_job *job_on_both(void);
void bed_pong(int link);
const char *bed_state_of(int host); /* as hosts_view() shows it */

#endif
