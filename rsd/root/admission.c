#include "config.h"

#include "rsd/root/admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verdict {
    struct verdict *next;
    uid_t uid;
    int64_t account_until_ms, lists_until_ms;
    char user[256], refusal[1024];
};

void admission_fini(struct admission *admission)
{
    for (struct verdict *verdict = admission->verdicts, *next; verdict; verdict = next) {
        next = verdict->next;
        free(verdict);
    }
    admission->verdicts = NULL;
}

bool admission_is_local(const struct rsd_config *config, const char *submit_host)
{
    return submit_host[0] && strcmp(submit_host, config->name) == 0;
}

static bool is_about(const struct verdict *verdict, const char *user, uid_t uid)
{
    return verdict->uid == uid && strcmp(verdict->user, user) == 0;
}

struct admission_known admission_recall(const struct admission *admission, const char *user, uid_t uid, int64_t now_ms)
{
    for (const struct verdict *verdict = admission->verdicts; verdict; verdict = verdict->next) {
        if (is_about(verdict, user, uid))
            return (struct admission_known){.account = now_ms < verdict->account_until_ms ? verdict->refusal : NULL,
                                            .lists = now_ms < verdict->lists_until_ms};
    }
    return (struct admission_known){0};
}

/* Out of the list: the one about him, or the last where there are so many; NULL: neither. */
static struct verdict *take(struct admission *admission, const char *user, uid_t uid)
{
    struct verdict **at = &admission->verdicts, *taken;
    for (size_t i = 1; *at && !is_about(*at, user, uid); i++) {
        if (!(*at)->next && i < ADMISSION_USERS)
            return NULL;
        if (!(*at)->next)
            break;
        at = &(*at)->next;
    }
    taken = *at;
    if (taken)
        *at = taken->next;
    return taken;
}

/* The one about him, at the front; NULL: no memory, so he is asked about again. */
static struct verdict *about(struct admission *admission, const char *user, uid_t uid)
{
    struct verdict *verdict = take(admission, user, uid);
    if (!verdict)
        verdict = calloc(1, sizeof(*verdict));
    if (!verdict)
        return NULL;
    if (!is_about(verdict, user, uid)) {
        *verdict = (struct verdict){.uid = uid};
        snprintf(verdict->user, sizeof(verdict->user), "%s", user);
    }
    verdict->next = admission->verdicts;
    admission->verdicts = verdict;
    return verdict;
}

void admission_keep_account(struct admission *admission, const char *user, uid_t uid, const char *refusal,
                            int64_t now_ms)
{
    struct verdict *verdict = about(admission, user, uid);
    if (!verdict)
        return;
    verdict->account_until_ms = now_ms + ADMISSION_KEPT_MS;
    snprintf(verdict->refusal, sizeof(verdict->refusal), "%s", refusal);
}

void admission_keep_lists(struct admission *admission, const char *user, uid_t uid, int64_t now_ms)
{
    struct verdict *verdict = about(admission, user, uid);
    if (verdict)
        verdict->lists_until_ms = now_ms + ADMISSION_KEPT_MS;
}

void admission_tell(struct admission_words *words, const struct rsd_config *config, bool lists, bool account)
{
    words->count = 0;
    snprintf(words->users, sizeof(words->users), "ELMER_DENY_USERS=%s", config->deny_users);
    snprintf(words->groups, sizeof(words->groups), "ELMER_DENY_GROUPS=%s", config->deny_groups);
    snprintf(words->account, sizeof(words->account), "ELMER_ACCOUNT=%s", config->account);
    if (lists && config->deny_users[0])
        words->items[words->count++] = words->users;
    if (lists && config->deny_groups[0])
        words->items[words->count++] = words->groups;
    if (account && config->account[0])
        words->items[words->count++] = words->account;
}
