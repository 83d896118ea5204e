/* pass.h - a process of a job shows to one on another host of the job that it is one.
 *
 * elmer-tickets makes a pass for whoever the kernel says is asking, if that process is in the control group of a job,
 * with a public key that the process has made and whose other half nobody else has. What both ends of a connection
 * agree upon by these keys (lib/run/seal.h) is known to them alone; so a pass may be read by everybody, and is worth
 * nothing to who repeats it. Which job it is says the group, never the process. No clock counts: the key dies with its
 * process.
 *
 * Who wants to see the terminal of a job (eattach) is no process of it. He has a pass of another kind: it says who he
 * is, by the kernel's word, and which job he means. It is good for that terminal alone, if the job is his.
 *
 * As bytes, in hexadecimal in messages; numbers and texts as in a ticket (ticket.h):
 *
 *   "elmer pass 1\n"     so that what is signed is nothing else; "elmer look 1\n": of who wants to see its terminal
 *   host                 that has signed
 *   job       8 bytes, attempt 4 bytes; 0: of who wants to see its terminal
 *   uid       4 bytes    and user
 *   public   32 bytes    of the process, X25519
 *   key, certificate, signature  as in a ticket */
#ifndef LIB_TICKET_PASS_H
#define LIB_TICKET_PASS_H

#include "lib/ticket/ticket.h"

enum {
    PASS_KEY_BYTES = 32,
    PASS_BYTES_MAX = 640,
    PASS_TEXT_MAX = 2 * PASS_BYTES_MAX /* without the NUL; less than in lib/wire/messages.def */
};

struct pass {
    bool looks; /* of who wants to see the terminal of the job; else of a process of it */
    char host[TICKET_HOST_MAX + 1];
    uint64_t job;
    uint32_t attempt, uid;
    char user[TICKET_USER_MAX + 1];
    uint8_t public_key[PASS_KEY_BYTES];
    uint8_t key[TICKET_KEY_BYTES];
    uint8_t certificate[TICKET_SIGNATURE_BYTES];
    uint8_t signature[TICKET_SIGNATURE_BYTES];
};

/* Fills in key and signature: host, certificate and what it says are there. False: no memory. */
bool pass_sign(struct pass *pass, const uint8_t key[TICKET_KEY_BYTES], const uint8_t secret[TICKET_KEY_BYTES]);
/* out has PASS_TEXT_MAX + 1 bytes. */
void pass_encode(const struct pass *pass, char *out);
/* Strict: exactly what pass_encode() makes. */
bool pass_decode(const char *text, struct pass *pass);
/* What is signed of it: how many of the PASS_BYTES_MAX bytes of out. */
size_t pass_signed_bytes(const struct pass *pass, uint8_t *out);
/* From its signature to the CA, or to this host: TICKET_GOOD, TICKET_OTHER_CLUSTER, TICKET_FORGED. */
enum ticket_refusal pass_check_chain(const struct pass *pass, struct ticket_trust *trust);

/* It is of a process of the same job, attempt and user, as own is. A user is his uid and his name: `vouch_users` of a
 * host knows names, so a host that is believed about one user could sign his name beside the uid of another. */
bool pass_is_of_job(const struct pass *pass, const struct pass *own);
/* Of the user of this process of a job, who wants to see the terminal of that job. */
bool pass_may_look(const struct pass *pass, const struct pass *process);

/* The job whose processes are in a group of that path: ".../JOB.ATTEMPT/job". False: it has no such name. Whether the
 * group is one of Elmer's is for the caller to see: anybody may make one with that name. */
bool pass_job_of_group(const char *group, uint64_t *job, uint32_t *attempt);

#endif
