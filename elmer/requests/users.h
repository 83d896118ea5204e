/* users.h - who a uid is on this host, and whether an administrator. Name services may be slow: they are asked in a
 * worker thread, one question at a time, and answers are kept for a minute. */
#ifndef ELMER_REQUESTS_USERS_H
#define ELMER_REQUESTS_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct request_user {
    uint32_t uid;
    char name[256]; /* "": this host knows no such user */
    bool admin;     /* member of the group of administrators */
    /* the name that was asked for with the uid, and whether it belongs to another uid here */
    char vouched[256];
    bool another;
};

struct users;
struct users *users_create(uv_loop_t *loop, const char *admin_group);
void users_destroy(struct users *users); /* questions that have not been answered never are */
typedef void (*users_answer)(const struct request_user *user, void *data);
/* vouched: the name that this host gives to the uid, "": none. host: -1: somebody on the queue host. answer is called
 * at once when it is known, else later; for one uid in the order of the questions. False: too many uids of this host
 * wait to be looked up, and answer is never called. */
bool users_ask(struct users *users, uint32_t uid, int host, const char *vouched, users_answer answer, void *data);
/* An administrator, as far as is known without asking. */
bool users_known_admin(const struct users *users, uint32_t uid);
/* Why the name and the uid of the user of a host do not belong together here, for people; NULL: nothing is wrong, also
 * when this host knows neither. */
const char *users_conflict(const struct request_user *user, const char *name, const char *host, char *text,
                           size_t size);

#endif
