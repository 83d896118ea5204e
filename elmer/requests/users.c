#include "config.h"

#include "elmer/requests/users.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory/map.h"
#include "lib/memory/mem.h"
#include "lib/base/clock.h"

enum { KEEP_MS = 60000, MAX_KEPT = 4096, MAX_ASKED_OF_HOST = 64, MAX_GROUPS = 65536 };

struct question {
    struct question *next;
    users_answer answer;
    void *data;
};

struct entry {
    struct request_user user;
    int64_t until_ms; /* 0: not asked yet */
    struct question *questions, **last;
    int host;           /* the one that made it be asked */
    struct entry *next; /* of those to be asked */
};

struct users {
    uv_loop_t *loop;
    char *group;
    struct map entries;           /* by uid */
    struct entry *asking, **last; /* the first is being asked */
    uv_work_t work;
    struct request_user result;
    bool forgot; /* all that can be, and no lookup has ended since */
    bool closing;
};

struct users *users_create(uv_loop_t *loop, const char *admin_group)
{
    struct users *users = mem_zalloc(sizeof(*users));
    users->loop = loop;
    users->group = mem_strdup(admin_group);
    users->last = &users->asking;
    users->work.data = users;
    return users;
}

static void entry_free(struct entry *entry)
{
    for (struct question *q = entry->questions, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    free(entry);
}

static void users_free(struct users *users)
{
    size_t cursor = 0;
    for (struct entry *entry; (entry = map_next(&users->entries, &cursor));)
        entry_free(entry);
    map_fini(&users->entries);
    free(users->group);
    free(users);
}

void users_destroy(struct users *users)
{
    if (!users)
        return;
    users->closing = true;
    if (!users->asking)
        users_free(users);
}

/* ---- in the worker thread ---- */

static bool in_group(const struct passwd *passwd, const char *group)
{
    char buffer[65536];
    struct group found, *result = NULL;
    gid_t *groups = NULL;
    int count = 64;
    bool member = false;
    if (getgrnam_r(group, &found, buffer, sizeof(buffer), &result) || !result)
        return false;
    for (int tried = 0; tried < 2 && count <= MAX_GROUPS; tried++) {
        free(groups);
        groups = mem_array((size_t)count, sizeof(*groups));
        if (getgrouplist(passwd->pw_name, passwd->pw_gid, groups, &count) >= 0)
            break;
        if (tried)
            count = 0;
    }
    for (int i = 0; i < count && count <= MAX_GROUPS; i++)
        member = member || groups[i] == found.gr_gid;
    free(groups);
    return member;
}

static void ask(uv_work_t *work)
{
    struct users *users = work->data;
    char buffer[16384];
    struct passwd passwd, *found = NULL;
    users->result.name[0] = 0;
    users->result.admin = users->result.another = false;
    if (getpwuid_r(users->result.uid, &passwd, buffer, sizeof(buffer), &found) || !found ||
        strlen(passwd.pw_name) >= sizeof(users->result.name)) {
        if (*users->result.vouched)
            users->result.another =
                !getpwnam_r(users->result.vouched, &passwd, buffer, sizeof(buffer), &found) && found;
        return;
    }
    memcpy(users->result.name, passwd.pw_name, strlen(passwd.pw_name) + 1);
    users->result.admin = in_group(&passwd, users->group);
}

/* ---- in the loop ---- */

static void asked(uv_work_t *work, int status);

static void ask_next(struct users *users)
{
    if (!users->asking)
        return;
    users->result = users->asking->user;
    uv_queue_work(users->loop, &users->work, ask, asked);
}

static void asked(uv_work_t *work, int status)
{
    struct users *users = work->data;
    struct entry *entry = users->asking;
    (void)status;
    users->asking = entry->next;
    if (!users->asking)
        users->last = &users->asking;
    if (users->closing) {
        users_free(users);
        return;
    }
    entry->next = NULL;
    users->forgot = false;
    entry->user = users->result;
    entry->until_ms = mono_ms(mono_now()) + KEEP_MS;
    ask_next(users);
    struct request_user user = entry->user;
    struct question *questions = entry->questions;
    entry->questions = NULL;
    for (struct question *q = questions, *next; q; q = next) {
        next = q->next;
        q->answer(&user, q->data);
        free(q);
    }
}

/* Not who is known as an administrator: others may ask in the name of thousands of uids to have that forgotten. */
static void forget_idle(struct users *users)
{
    struct map kept = {0};
    size_t cursor = 0;
    for (struct entry *entry; (entry = map_next(&users->entries, &cursor));) {
        if (entry->questions || entry->user.admin)
            map_put(&kept, entry->user.uid, entry);
        else
            entry_free(entry);
    }
    map_fini(&users->entries);
    users->entries = kept;
    users->forgot = true;
}

/* What is kept answers it: for a uid that is known here any name will do. */
static bool is_answer(const struct entry *entry, const char *vouched)
{
    return !entry->questions && mono_ms(mono_now()) < entry->until_ms &&
           (!*vouched || *entry->user.name || strcmp(entry->user.vouched, vouched) == 0);
}

bool users_known_admin(const struct users *users, uint32_t uid)
{
    const struct entry *entry = map_get(&users->entries, uid);
    return entry && entry->user.admin;
}

const char *users_conflict(const struct request_user *user, const char *name, const char *host, char *text, size_t size)
{
    static const char advice[] = "make the users of the hosts and of the queue host agree";
    if (*user->name && strcmp(user->name, name) != 0)
        snprintf(text, size, "user %s has uid %" PRIu32 " on %s, which is the uid of %s on the queue host: %s", name,
                 user->uid, host, user->name, advice);
    else if (!*user->name && user->another && strcmp(user->vouched, name) == 0)
        snprintf(text, size, "user %s has uid %" PRIu32 " on %s, and another one on the queue host: %s", name,
                 user->uid, host, advice);
    else
        return NULL;
    return text;
}

/* A host may name as many uids as it likes, and all wait for the lookups of each other. */
static bool has_too_many(const struct users *users, int host)
{
    unsigned count = 0;
    for (const struct entry *entry = users->asking; entry && host >= 0; entry = entry->next)
        count += entry->host == host;
    return count >= MAX_ASKED_OF_HOST;
}

bool users_ask(struct users *users, uint32_t uid, int host, const char *vouched, users_answer answer, void *data)
{
    struct entry *entry = map_get(&users->entries, uid);
    if (entry && is_answer(entry, vouched)) {
        struct request_user user = entry->user;
        answer(&user, data);
        return true;
    }
    bool first = !entry || !entry->questions;
    if (first && has_too_many(users, host))
        return false;
    if (!entry) {
        if (users->entries.count >= MAX_KEPT && !users->forgot)
            forget_idle(users);
        entry = mem_zalloc(sizeof(*entry));
        entry->user.uid = uid;
        map_put(&users->entries, uid, entry);
    }
    if (first) {
        entry->host = host;
        entry->last = &entry->questions;
        snprintf(entry->user.vouched, sizeof(entry->user.vouched), "%s", vouched);
    }
    struct question *question = mem_zalloc(sizeof(*question));
    *question = (struct question){.answer = answer, .data = data};
    *entry->last = question;
    entry->last = &question->next;
    if (!first)
        return true;
    bool idle = !users->asking;
    *users->last = entry;
    users->last = &entry->next;
    if (idle)
        ask_next(users);
    return true;
}
