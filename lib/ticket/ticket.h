/* ticket.h - what a user has asked for, signed on the host where he has asked, checked on the host that does it.
 *
 * The program elmer-tickets of a host makes a ticket for whoever submits a job there and signs it with a key that
 * nobody else on the host can read (keys.h). It goes with the submission to elmer, and with the job to its hosts. It is
 * checked there before anything runs. So elmer and the network halves decide when and where, not what and as whom, but
 * for what helpers start. No clock counts. Why, and what stays possible: doc/05-security.md.
 *
 * As bytes, in this order; numbers have their high byte first, a text has its length before it (2 bytes) and no NUL:
 *
 *   "elmer ticket 1\n"   so that what is signed is nothing else
 *   host                 that has signed
 *   counter   8 bytes    of its tickets; an array has several (ticket_numbers_of()), and this is the first
 *   uid       4 bytes    and user: who has asked
 *   name, token          of the submission
 *   nprocs    4 bytes
 *   flags     1 byte     1 each, 2 with helpers, 4 requeue, 8 an array, 16 with lines, 32 with memory
 *   tasks                of an array only: its indices, as submitted (lib/job/tasks.h)
 *   lines    32 bytes    of one with lines only: the root of their tree (lib/digest/tree.h)
 *   memory    8 bytes    of one with memory only: bytes for each processor, not 0
 *   command  32 bytes    SHA-256 of the number of arguments and of each with its length (4 bytes)
 *   environment 32 bytes the same of the variables, without those that Elmer sets (lib/job/variables.h)
 *   place    32 bytes    the same of the directory and the umask, in octal
 *   output, errors       patterns, as submitted
 *   key      32 bytes    of the host's tickets
 *   certificate 64 bytes the CA's signature of "elmer ticket key 1\n", host and key; zeros: it has none
 *   signature 64 bytes   the key's, of all before
 *
 * In messages it is hexadecimal. Behind that of an array stands which of its tasks is meant, /1 for the first: nobody
 * has signed that, but there are no others than those of the range that is signed, and each is used once, as a ticket
 * of its own or as one of a sheet of them (window.h). Of one with lines the proof of the task's line is behind that,
 * /1/ and the digests in hexadecimal. Keys and signatures are Ed25519. */
#ifndef LIB_TICKET_TICKET_H
#define LIB_TICKET_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/digest/tree.h"
#include "lib/job/tasks.h"
#include "lib/ticket/program.h"

enum {
    TICKET_KEY_BYTES = 32, /* private and public */
    TICKET_SIGNATURE_BYTES = 64,
    TICKET_DIGEST_BYTES = 32,
    TICKET_HOST_MAX = 64,
    TICKET_USER_MAX = 255,
    TICKET_NAME_MAX = 64, /* also of token */
    TICKET_PATH_MAX = 4095,
    TICKET_BYTES_MAX = 9216,
    TICKET_TEXT_MAX = 2 * TICKET_BYTES_MAX /* without the NUL; also in lib/job/job.def and lib/wire/messages.def */
};

struct ticket {
    char host[TICKET_HOST_MAX + 1];
    uint64_t counter;
    uint32_t uid;
    char user[TICKET_USER_MAX + 1];
    char name[TICKET_NAME_MAX + 1], token[TICKET_NAME_MAX + 1];
    uint32_t nprocs;
    bool each, helpers, requeue;
    char tasks[TASKS_TEXT_MAX + 1]; /* "": it is no array */
    uint32_t ntasks;                /* of these; 0 */
    uint32_t task;                  /* which one is meant: 1..ntasks; 0: none */
    uint64_t memory_bytes;          /* for each processor; 0: none is asked for */
    bool has_lines;
    uint8_t lines[TREE_DIGEST_BYTES];
    uint8_t proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES]; /* of the line of the one that is meant */
    uint32_t nproof;
    uint8_t command[TICKET_DIGEST_BYTES], environment[TICKET_DIGEST_BYTES], place[TICKET_DIGEST_BYTES];
    char output[TICKET_PATH_MAX + 1], errors[TICKET_PATH_MAX + 1];
    uint8_t key[TICKET_KEY_BYTES];
    uint8_t certificate[TICKET_SIGNATURE_BYTES];
    uint8_t signature[TICKET_SIGNATURE_BYTES];
};

/* Why a ticket is not good. Each has a sentence that names the check. */
enum ticket_refusal {
    TICKET_GOOD,
    TICKET_MISSING,
    TICKET_GARBLED,
    TICKET_OTHER_CLUSTER,
    TICKET_FORGED,
    TICKET_NOT_VOUCHED,
    TICKET_OTHER_USER,
    TICKET_OTHER_LAUNCHER,
    TICKET_TOO_MANY_PROCESSORS,
    TICKET_OTHER_MEMORY,
    TICKET_OTHER_COMMAND,
    TICKET_OTHER_ENVIRONMENT,
    TICKET_ADDED_VARIABLE,
    TICKET_OTHER_PLACE,
    TICKET_OTHER_OUTPUT,
    TICKET_NO_SUCH_RANK,
    TICKET_NO_SUCH_TASK,
    TICKET_OTHER_LINE,
    TICKET_OTHER_HELPER,
    TICKET_USED,
    TICKET_TOO_OLD,
    TICKET_TOO_OFTEN,
    TICKET_NOT_RECORDED,
    TICKET_REFUSAL_COUNT
};
const char *ticket_refusal_name(enum ticket_refusal why); /* "other-command" */
const char *ticket_refusal_text(enum ticket_refusal why); /* "its command is not the one that its ticket was .." */

/* ---- ticket.c ---- */

/* The signed bytes of a ticket have room; its texts are within their bounds each, but not all of them together. */
bool ticket_has_room(const struct ticket *ticket);
/* How many numbers it takes, with so many tasks (0: it is no array): one each; above this many, one for a sheet. */
enum { TICKET_SHEET_TASKS = 484 };
uint32_t ticket_numbers_of(uint32_t ntasks);
/* Its number in the window. */
uint64_t ticket_counter_of(const struct ticket *ticket);
/* out has TICKET_TEXT_MAX + 1 bytes; all texts of the ticket must be within their bounds. */
void ticket_encode(const struct ticket *ticket, char *out);
/* Strict: exactly what ticket_encode() makes. TICKET_GOOD, TICKET_MISSING for "", TICKET_GARBLED. */
enum ticket_refusal ticket_decode(const char *text, struct ticket *ticket);
/* Which host says that it has signed it: for elmer, which reads no more of a ticket, so that hosts may sign what is
 * newer than elmer. False: that cannot be read, and then ticket_decode() reads nothing either. */
bool ticket_host(const char *text, char host[TICKET_HOST_MAX + 1]);
/* What its signature is for; out has TICKET_BYTES_MAX bytes. Returns how many there are. */
size_t ticket_signed_bytes(const struct ticket *ticket, uint8_t *out);
/* The same for a certificate; out has TICKET_BYTES_MAX bytes. */
size_t ticket_certified_bytes(const char *host, const uint8_t key[TICKET_KEY_BYTES], uint8_t *out);

/* ---- sign.c: the only user of OpenSSL here ---- */

struct ticket_list {
    const char *const *items;
    size_t count;
};
/* What is asked for, beside what struct ticket says itself. False: no memory. */
bool ticket_digest(struct ticket *ticket, struct ticket_list command, struct ticket_list environment, const char *dir,
                   uint32_t mask);
/* SHA-256 of a text. */
bool ticket_digest_text(const char *text, uint8_t digest[TICKET_DIGEST_BYTES]);
bool ticket_key_create(uint8_t secret[TICKET_KEY_BYTES], uint8_t key[TICKET_KEY_BYTES]);
bool ticket_key_of(const uint8_t secret[TICKET_KEY_BYTES], uint8_t key[TICKET_KEY_BYTES]);
/* Fills in key and signature; counter, host and certificate are there. */
bool ticket_sign(struct ticket *ticket, const uint8_t secret[TICKET_KEY_BYTES]);
/* For many: a secret that is made ready takes a third of the time. NULL: no memory. It belongs to the caller. */
struct evp_pkey_st;
struct evp_pkey_st *ticket_signer_create(const uint8_t secret[TICKET_KEY_BYTES]);
void ticket_signer_destroy(struct evp_pkey_st *signer); /* NULL: nothing */
/* key: the public one of the signer. */
bool ticket_sign_by(struct ticket *ticket, const uint8_t key[TICKET_KEY_BYTES], struct evp_pkey_st *signer);
bool ticket_sign_bytes(const uint8_t secret[TICKET_KEY_BYTES], const uint8_t *bytes, size_t size,
                       uint8_t signature[TICKET_SIGNATURE_BYTES]);
bool ticket_signature_holds(const uint8_t key[TICKET_KEY_BYTES], const uint8_t *bytes, size_t size,
                            const uint8_t signature[TICKET_SIGNATURE_BYTES]);

/* Whom this host believes: keys that the CA has certified, and its own. */
enum { TICKET_TRUST_KEPT = 32, TICKET_TRUST_HELD = 4 };
struct ticket_trust {
    bool has_authority;                  /* else only this host's own tickets are good */
    uint8_t authority[TICKET_KEY_BYTES]; /* of the CA */
    uint8_t own[TICKET_KEY_BYTES];
    char own_host[TICKET_HOST_MAX + 1];
    struct { /* certificates that were good, so that a host's costs once */
        char host[TICKET_HOST_MAX + 1];
        uint8_t key[TICKET_KEY_BYTES];
    } kept[TICKET_TRUST_KEPT];
    size_t next_kept;
    struct { /* tickets whose signature was good, byte for byte: thousands of tasks have the same one */
        size_t size;
        uint8_t bytes[TICKET_BYTES_MAX];
        uint8_t signature[TICKET_SIGNATURE_BYTES];
    } held[TICKET_TRUST_HELD];
    size_t next_held;
};
bool ticket_key_is_known(const struct ticket *ticket, struct ticket_trust *trust);
/* Of anything that a host has signed, size bytes: from the signature to the CA, or to this host. TICKET_GOOD,
 * TICKET_OTHER_CLUSTER, TICKET_FORGED. */
enum ticket_refusal ticket_check_signer(const char *host, const uint8_t key[TICKET_KEY_BYTES],
                                        const uint8_t certificate[TICKET_SIGNATURE_BYTES], const uint8_t *bytes,
                                        size_t size, const uint8_t signature[TICKET_SIGNATURE_BYTES],
                                        struct ticket_trust *trust);
/* The chain: from the ticket's signature to the CA, or to this host. */
enum ticket_refusal ticket_check_chain(const struct ticket *ticket, struct ticket_trust *trust);

/* ---- check.c ---- */

/* Words with a blank between: a name, "all", "!NAME" for all but that one. */
bool ticket_is_among(const char *words, const char *name);

/* A job that is to be opened. */
enum ticket_refusal ticket_check_open(const struct ticket *ticket, uint64_t uid, const char *user, bool helpers,
                                      size_t processors, uint64_t memory_bytes);

struct ticket_start { /* a process of it that is to be started */
    uint64_t job;
    enum ticket_role role;
    uint64_t process;
    struct ticket_list argv, environment;
    const char *dir, *output, *errors;
    uint32_t umask;
    bool truncate, capture;
    const char *tmpdir; /* of the job on this host */
};
enum ticket_refusal ticket_check_start(const struct ticket *ticket, const struct ticket_start *start);
/* A variable (NAME=VALUE) that Elmer sets for such a job. */
bool ticket_variable_is_ours(const char *entry, bool helpers);

#endif
