/* doctor.h - eadmin doctor: what was found, and what is judged without asking anybody. */
#ifndef CLIENT_DOCTOR_H
#define CLIENT_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libelmer/client.h"

enum finding_level { FINDING_GOOD, FINDING_WARNING, FINDING_BAD };

struct finding {
    enum finding_level level;
    char *host; /* "": of the cluster */
    const char *check;
    char *text; /* what is so; and what to do, unless it is good */
};
struct findings {
    struct finding *items;
    size_t count;
};

void findings_fini(struct findings *findings);
/* check is static: a word for programs. */
void finding_add(struct findings *findings, enum finding_level level, const char *host, const char *check,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* width: of the terminal, 0: there is none. */
void findings_print(const struct findings *findings, size_t width);
void findings_print_json(const struct findings *findings);
/* EXIT_REFUSED if something is bad; warnings are none. */
int findings_code(const struct findings *findings);

/* What this machine knows of the name of a host (own: it is this machine's). */
void doctor_judge_name(struct findings *findings, const char *host, bool own);
/* Who has the address for the hosts' links, where the elmer of that socket runs here; else nothing. listen may be NULL.
 */
void doctor_judge_listen(struct findings *findings, const char *listen, const char *socket_path);
/* Bytes of a file system and what is free of them. */
void doctor_judge_disk(struct findings *findings, const char *host, const char *check, const char *path, uint64_t free,
                       uint64_t size);
/* How much time is left of a certificate that should have been renewed: of one that is good for so long. */
int64_t doctor_late_ms(int64_t valid_ms);
/* Until when elmer's own certificate is good. */
void doctor_judge_own_certificate(struct findings *findings, int64_t until_ms, int64_t now_ms, int64_t late_ms);
/* What elmer says of a host. Returns whether a job can be tried there. */
bool doctor_judge_view(struct findings *findings, const struct wire_host_view *view, int64_t now_ms, int64_t late_ms);

/* What a trial job has said of its host, in lines "WORD VALUE". */
struct doctor_facts {
    const char *user; /* who has submitted it, and his number */
    uint32_t uid;
    const char *version;       /* of this program */
    const char *running;       /* the version of the rsd that runs there; "": not known */
    int64_t before_s, after_s; /* the time here, before it was submitted and when its word was there */
};
void doctor_judge_facts(struct findings *findings, const char *host, const char *said, const struct doctor_facts *here);
/* The value of such a line; false: there is none. */
enum { DOCTOR_VALUE_BYTES = 300 };
bool doctor_find(const char *said, const char *word, char value[DOCTOR_VALUE_BYTES]);

/* A job of so many hosts that was tried. It has ended, or has not in so many seconds; the reason may be empty. */
struct doctor_trial {
    const char *state, *reason;
    size_t hosts;
    bool ended;
    int exit_status;
    long seconds;
};
void doctor_judge_trial(struct findings *findings, const char *where, const char *check,
                        const struct doctor_trial *trial);

/* Jobs on these hosts: one on each, which tells of it, and one with a virtual machine of PVM over all, and by mpirun
 * or mpiexec, where these are there. They are of whoever calls it, who is not root. */
struct doctor_host {
    const char *name;
    const char *version; /* of the rsd that runs there; "": not known */
};
void doctor_try(struct findings *findings, struct elmer *elmer, const struct doctor_host *hosts, size_t count);

#endif
