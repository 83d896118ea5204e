/* waits.h - the page in which the processes of the job on this host say how they wait, and hear whether they are alone
 * (yield/page.h). */
#ifndef RSD_SUP_WAITS_H
#define RSD_SUP_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/wire.h"
#include "rsd/sup/user.h"
#include "yield/page.h"

#define WAITS_FILE "waits"

enum {
    WAITS_ROUNDS = 10000, /* without progress in a second, from which on a process that never sleeps is said to poll */
    WAITS_LOOK_MS = 500,  /* counts of less are taken together with the next ones */
    WAITS_TEXT = 1000
};

/* What a process had counted when it was looked at last. */
struct waits_seen {
    int32_t pid;
    uint64_t rounds, spun_ns;
};

struct waits {
    bool begun;
    int fd;            /* of the page; -1: there is none */
    char path[160];    /* for the environment of the job's processes */
    int64_t looked_ms; /* 0: never */
    uint64_t spun_us;  /* of all, as far as they can have spun so long */
    char polls[WAITS_TEXT + 1];
    struct waits_seen seen[PAGE_SLOTS];
};

/* Make the page, once, in the job's directory, as the user; own_uid is that of our files again then. Where it cannot
 * be, the job goes without: 0 or -errno. */
int waits_begin(struct waits *waits, const struct user *user, uid_t own_uid, const char *tmpdir);
void waits_fini(struct waits *waits);
/* Tell the processes; and count, if the last time is long enough ago. Returns false where there is no page. */
bool waits_look(struct waits *waits, bool alone, uint32_t processors, int64_t now_ms);

/* What is in the page after elapsed_ms, of which nothing is believed: added to spun_us, and who polls as ranges of
 * ranks, "0-3,5", into waits->polls. */
void waits_count(struct waits *waits, const struct page *page, uint32_t processors, int64_t elapsed_ms);

#endif
