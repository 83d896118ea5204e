/* users.h - who a uid is on this host, and whether an administrator. Name services may be slow: they are asked in a
 * worker thread, one question at a time, and answers are kept for a minute. */
#ifndef ELMER_DAEMON_USERS_H
#define ELMER_DAEMON_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct user {
    uint32_t uid;
    char name[256]; /* "": this host knows no such user */
    bool admin;     /* member of the group of administrators */
};

struct users;
struct users *users_create(uv_loop_t *loop, const char *admin_group);
void users_destroy(struct users *users); /* questions that have not been answered never are */
typedef void (*users_answer)(const struct user *user, void *data);
/* answer is called at once when it is known, else later; for one uid in the order of the questions. */
void users_ask(struct users *users, uint32_t uid, users_answer answer, void *data);

#endif
