/* admit.h - may the user of a job run it on this host? Asked once, between looking him up and anything that is done for
 * him. Names are this host's: what the queue host or a submitting host calls a group does not matter. */
#ifndef RSD_SUP_ADMIT_H
#define RSD_SUP_ADMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "rsd/sup/user.h"

enum { ACCOUNT_MS = 15000 }; /* PAM has to have answered: a busy machine has taken 5 s */

/* The id of a name on this host: 0, -ENOENT, or another negative errno. */
typedef int (*admit_lookup)(const char *name, id_t *id);
/* What somebody of the lists reads, with his name or that of his group. */
#define ADMIT_DENIED_USER                                                                                              \
    "jobs of user %s from other hosts are refused (deny_users in rsd.conf): submit on the host that is to run them, "  \
    "or ask its administrator"
#define ADMIT_DENIED_GROUP                                                                                             \
    "jobs of group %s from other hosts are refused (deny_groups in rsd.conf): submit as a user without that group, "   \
    "or on the host that is to run them"
struct admit_lists {
    const char *users,
        *groups; /* names with a space between, NULL: none. Those that this host does not have are skipped */
    admit_lookup uid_of, gid_of;
};
/* By the user database of this host. */
int uid_here(const char *name, id_t *id);
int gid_here(const char *name, id_t *id);
/* 0; -EPERM: he is one of them, or in one, err says which; another one: it cannot be found out, err says why. */
int admit_judge(const struct user *user, const struct admit_lists *lists, struct err *err);

/* Let the program ask PAM; it is in a process of its own, which has not more CPU time than it needs and is killed when
 * it has not answered in time. 0; -EKEYREJECTED: PAM says no; another one: it did not say anything. */
int account_ask(const char *program, const struct user *user, bool rt, int64_t limit_ms, struct err *err);

/* Both, as the root half has asked for it: rsd/root/admission.h. Results as above. */
int admit(const struct user *user, bool rt, struct err *err);

#endif
