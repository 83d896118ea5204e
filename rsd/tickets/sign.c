/* sign.c - from a submission to its ticket. What the submission says was decoded by the table of messages: texts are
 * UTF-8 without NUL, within their limits. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/job/lines.h"
#include "lib/job/variables.h"
#include "lib/ticket/warrant.h"
#include "rsd/tickets/desk.h"

/* The digests of so many lines take as long as a ticket. */
enum { LINES_OF_A_TICKET = 100 };

static bool copy(char *out, size_t size, const char *text, const char *what, struct err *err)
{
    if (strlen(text) >= size) {
        err_set(err, -EINVAL, "its %s is longer than %zu bytes", what, size - 1);
        return false;
    }
    snprintf(out, size, "%s", text);
    return true;
}

static struct ticket_list list_of(const struct wire_strs *strs)
{
    return (struct ticket_list){(const char *const *)strs->items, strs->count};
}

/* On this socket the tasks of an array are a variable, because it speaks as it did before there were arrays: what it
 * says is Elmer's, and no variable of the job. "": it is no array. -EINVAL: they cannot be. */
static int take_tasks(const struct wire_submit *submit, struct ticket *t, struct err *err)
{
    static struct tasks tasks;
    char why[TASKS_WHY];
    for (size_t i = 0; i < submit->environment.count; i++) {
        const char *entry = submit->environment.items[i];
        if (strncmp(entry, TASKS_VARIABLE "=", sizeof(TASKS_VARIABLE)) != 0)
            continue;
        entry += sizeof(TASKS_VARIABLE);
        if (*t->tasks || tasks_parse(entry, true, &tasks, why) < 0)
            return err_set(err, -EINVAL, "its tasks: %s", *t->tasks ? "there are two lists of them" : why);
        snprintf(t->tasks, sizeof(t->tasks), "%s", entry);
        t->ntasks = tasks.count;
    }
    return 0;
}

/* Their text; "": there is none. */
static const char *lines_of(const struct wire_submit *submit)
{
    for (size_t i = 0; i < submit->environment.count; i++)
        if (strncmp(submit->environment.items[i], LINES_VARIABLE "=", sizeof(LINES_VARIABLE)) == 0)
            return submit->environment.items[i] + sizeof(LINES_VARIABLE);
    return "";
}

/* The lines of the tasks come in the same way, and of them their root is signed. Whether a task can have such a line is
 * not judged here: who asks may have what he likes signed, for himself. */
static int take_lines(const struct wire_submit *submit, struct ticket *t, struct err *err)
{
    const char *text = lines_of(submit);
    uint32_t count = lines_count(text);
    struct tree *tree;
    if (count == 0)
        return 0;
    if (count != t->ntasks)
        return err_set(err, -EINVAL, "it has %u tasks and %u lines: it is one for each", t->ntasks, count);
    tree = tree_create(text);
    if (!tree)
        return err_set(err, -ENOMEM, "there is no memory for its lines");
    t->has_lines = true;
    tree_root(tree, t->lines);
    tree_destroy(tree);
    return 0;
}

/* In the same way: bytes for each processor. */
static int take_memory(const struct wire_submit *submit, struct ticket *t, struct err *err)
{
    for (size_t i = 0; i < submit->environment.count; i++) {
        const char *entry = submit->environment.items[i];
        if (strncmp(entry, MEMORY_VARIABLE "=", sizeof(MEMORY_VARIABLE)) != 0)
            continue;
        if (t->memory_bytes > 0 || !str_to_u64(entry + sizeof(MEMORY_VARIABLE), &t->memory_bytes) ||
            t->memory_bytes == 0)
            return err_set(err, -EINVAL, "its memory is no number of bytes, or said twice");
    }
    return 0;
}

uint32_t desk_cost(const struct wire_submit *submit)
{
    static struct ticket t;
    struct err none = ERR_INIT;
    t.tasks[0] = 0;
    t.ntasks = 0;
    return (take_tasks(submit, &t, &none) == 0 ? ticket_numbers_of(t.ntasks) : 1) +
           lines_count(lines_of(submit)) / LINES_OF_A_TICKET;
}

int desk_sign(const struct ticket_keys *keys, struct ticket_counter *counter, const struct wire_submit *submit,
              uint32_t uid, const char *user, char *out, struct err *err)
{
    struct ticket t = {.uid = uid,
                       .nprocs = (uint32_t)submit->nprocs,
                       .each = submit->each,
                       .helpers = submit->pvm,
                       .requeue = submit->requeue};
    int result;
    if (submit->nprocs == 0 || submit->nprocs > UINT32_MAX || submit->command.count == 0) {
        return err_set(err, -EINVAL, "it has no command, or no number of processors");
    }
    if (!copy(t.host, sizeof(t.host), keys->host, "host", err) || !copy(t.user, sizeof(t.user), user, "user", err) ||
        !copy(t.name, sizeof(t.name), submit->name, "name", err) ||
        !copy(t.token, sizeof(t.token), submit->token, "token", err) ||
        !copy(t.output, sizeof(t.output), submit->output, "output", err) ||
        !copy(t.errors, sizeof(t.errors), submit->errors, "error output", err))
        return -EINVAL;
    result = take_tasks(submit, &t, err);
    if (result == 0)
        result = take_lines(submit, &t, err);
    if (result == 0)
        result = take_memory(submit, &t, err);
    if (result == 0 && !ticket_has_room(&t))
        result = err_set(err, -EINVAL, "its tasks and the names of its files are too long together: shorten them");
    if (result < 0)
        return result;
    memcpy(t.certificate, keys->certificate, sizeof(t.certificate));
    result = ticket_counter_next(keys, counter, ticket_numbers_of(t.ntasks), &t.counter, err);
    if (result < 0)
        return result == -EINVAL ? -EIO : result;
    if (!ticket_digest(&t, list_of(&submit->command), list_of(&submit->environment), submit->dir,
                       (uint32_t)submit->umask) ||
        !(keys->signer ? ticket_sign_by(&t, keys->key, keys->signer) : ticket_sign(&t, keys->secret))) {
        return err_set(err, -EIO, "the signature cannot be made");
    }
    ticket_encode(&t, out);
    return 0;
}

/* What is asked is not judged here: elmer does what this user may do. Without the CA's word for the key it would not
 * believe it. */
int desk_warrant(const struct ticket_keys *keys, const struct wire_warrant_ask *ask, uint32_t uid, const char *user,
                 char *out, struct err *err)
{
    struct warrant warrant = {.uid = uid};
    if (!keys->certified)
        return err_set(err, -EINVAL,
                       "the key of this host's tickets is not certified: let it join again (rsd --join), on the queue "
                       "host eadmin init");
    if (!hex_read(ask->challenge, warrant.challenge, sizeof(warrant.challenge)))
        return err_set(err, -EINVAL, "elmer's challenge is none");
    snprintf(warrant.host, sizeof(warrant.host), "%s", keys->host);
    snprintf(warrant.user, sizeof(warrant.user), "%s", user);
    memcpy(warrant.certificate, keys->certificate, sizeof(warrant.certificate));
    if (!ticket_digest_text(ask->request, warrant.request) || !warrant_sign(&warrant, keys->key, keys->secret))
        return err_set(err, -EIO, "the signature cannot be made");
    warrant_encode(&warrant, out);
    return 0;
}
