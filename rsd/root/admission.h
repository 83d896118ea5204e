/* admission.h - who may run jobs here: what a supervisor has to look at for its user, and what it has found out.
 *
 * deny_users and deny_groups hold for jobs that were submitted on another host; a job of which elmer does not say where
 * it was is one. PAM is asked about everybody. Name services and PAM take longer than a supervisor's birth, so what
 * they have said is kept for a while; of refusals those of PAM. */
#ifndef RSD_ADMISSION_H
#define RSD_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rsd/config.h"

enum { ADMISSION_KEPT_MS = 60000, ADMISSION_USERS = 64 };

struct verdict;
struct admission {
    struct verdict *verdicts; /* the latest first */
};
void admission_fini(struct admission *admission);

bool admission_is_local(const struct rsd_config *config, const char *submit_host);
struct admission_known {
    const char *account; /* by PAM: NULL: not known; "": he may; else why not. Valid until something is kept */
    bool lists;          /* he is on none of them */
};
struct admission_known admission_recall(const struct admission *admission, const char *user, uid_t uid, int64_t now_ms);
/* refusal: "": he may. Of so many users the one of whom something was kept first is forgotten. */
void admission_keep_account(struct admission *admission, const char *user, uid_t uid, const char *refusal,
                            int64_t now_ms);
void admission_keep_lists(struct admission *admission, const char *user, uid_t uid, int64_t now_ms);

/* Variables for a supervisor, what is behind the `=` within the config. An older supervisor does not know them. */
struct admission_words {
    char users[sizeof((struct rsd_config *)0)->deny_users + 24],
        groups[sizeof((struct rsd_config *)0)->deny_groups + 24], account[sizeof((struct rsd_config *)0)->account + 24];
    char *items[3]; /* of these */
    size_t count;
};
void admission_tell(struct admission_words *words, const struct rsd_config *config, bool lists, bool account);

#endif
