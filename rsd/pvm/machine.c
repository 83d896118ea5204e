/* How PVM talks to a hoster and to a collector (not in its manual):
 *   SM_STHOST     master daemon -> hoster: { int n; { int tid; str options, login@host, command, wincommand, vmid } [n]
 * } SM_STHOSTACK  the answer, with the same wait id: { int n; { int tid; str line } [n] } output        daemon ->
 * collector, in a context of our own: { int tid; int n; char text[n] }; n is TO_EOF at the end, TO_NEW or TO_SPAWN at
 * the start Both come as messages with a handler, which libpvm3 calls whenever it reads from the daemon: so the request
 * that our own pvm_addhosts() causes is served while we are blocked in it. What is sent in a handler leaves when the
 * handler returns.
 */
#include "config.h"

#include "rsd/pvm/machine.h"

#include <errno.h>
#include <pvm3.h>
#include <pvmproto.h>
#include <pvmtev.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_TAG = 1, TASK_EVENT_BYTES = 8, ENTRY_BYTES_MIN = 24, DISCARD_MAX = 256 };
#define DAEMON_BIT 0x80000000u /* TIDPVMD, in no installed header */

extern int pvm_errno; /* of libpvm3, in no installed header */

static struct machine_handlers handlers;
static int output_context;

const char *machine_error(int code)
{
    pvm_errno = code;
    return pvm_strerror();
}

const char *machine_advice(int code)
{
    switch (code) {
    case PvmNoHost:
        return "its name must be known to the first host: see /etc/hosts there, or name its address in elmer.conf";
    case PvmDupHost:
        return "each host may be in a job's machine once: see that no two hosts have the same address";
    case PvmIPLoopback:
        return "the first host takes its own name for a loopback address: give it its network address in /etc/hosts";
    case PvmBadVersion:
        return "install the same version of PVM on all hosts";
    case PvmCantStart:
    case PvmDSysErr:
        return "see that the package pvm is installed there, and the log of rsd on that host";
    default:
        return "see that UDP passes between the hosts, and the log pvml.UID in the job's PVM_TMP";
    }
}

/* An entry of a request, with its strings in one block of our own. */
struct entry {
    int tid;
    char *options, *login, *command, *windows_command, *vmid;
    char *block;
};

/* No string can be longer than the message, so five buffers of its size are safe whatever the lengths inside say. */
static int unpack_entry(struct entry *entry, size_t bytes)
{
    size_t size = bytes + 1;
    entry->block = malloc(5 * size);
    if (!entry->block)
        return -ENOMEM;
    entry->options = entry->block;
    entry->login = entry->options + size;
    entry->command = entry->login + size;
    entry->windows_command = entry->command + size;
    entry->vmid = entry->windows_command + size;
    if (pvm_upkint(&entry->tid, 1, 1) < 0 || pvm_upkstr(entry->options) < 0 || pvm_upkstr(entry->login) < 0 ||
        pvm_upkstr(entry->command) < 0 || pvm_upkstr(entry->windows_command) < 0 || pvm_upkstr(entry->vmid) < 0)
        return -EBADMSG;
    return 0;
}

static void pack_answers(const struct entry *entries, struct machine_spawn *spawns, int n)
{
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&n, 1, 1);
    for (int i = 0; i < n; i++) {
        int tid = entries[i].tid;
        pvm_pkint(&tid, 1, 1);
        pvm_pkstr(spawns[i].answer);
    }
}

/* Send what is packed as the answer to a request: PVM matches them by the wait id. */
static void send_answer(int to, int wait_id)
{
    struct pvmminfo info;
    pvm_getminfo(pvm_getsbuf(), &info);
    info.wid = wait_id;
    pvm_setminfo(pvm_getsbuf(), &info);
    pvm_send(to, SM_STHOSTACK);
}

static const char *host_of(const char *login)
{
    const char *at = strchr(login, '@');
    return at ? at + 1 : login;
}

/* Unpack n entries, have them served, answer. PVM asks, and waits, also when it has found itself that no host is good.
 * A malformed request, or one without memory, goes without an answer of ours: the daemon that sends such a thing is
 * broken. */
static void serve_request(int from, int wait_id, int n, size_t bytes)
{
    struct entry *entries = calloc((size_t)n + 1, sizeof(*entries));
    struct machine_spawn *spawns = calloc((size_t)n + 1, sizeof(*spawns));
    int unpacked = 0, result = entries && spawns ? 0 : -ENOMEM;

    while (!result && unpacked < n)
        result = unpack_entry(&entries[unpacked++], bytes);
    if (!result) {
        for (int i = 0; i < n; i++) {
            spawns[i].host = host_of(entries[i].login);
            spawns[i].command = entries[i].command;
        }
        if (n > 0)
            handlers.spawn(handlers.context, spawns, (size_t)n);
        pack_answers(entries, spawns, n);
        send_answer(from, wait_id);
    }
    for (int i = 0; i < unpacked; i++)
        free(entries[i].block);
    free(entries);
    free(spawns);
}

static int on_start_hosts(int buffer)
{
    int bytes, tag, from, n;
    struct pvmminfo info;

    if (pvm_bufinfo(buffer, &bytes, &tag, &from) < 0 || pvm_getminfo(buffer, &info) < 0)
        return 0;
    if (!((unsigned)from & DAEMON_BIT)) /* tasks may not ask */
        return 0;
    if (pvm_upkint(&n, 1, 1) < 0 || n < 0 || n > MACHINE_HOSTS_MAX || n > bytes / ENTRY_BYTES_MIN)
        return 0;
    serve_request(from, info.wid, n, (size_t)bytes);
    return 0;
}

static void pass_text(int tid, int n, int bytes)
{
    if (n > bytes - TASK_EVENT_BYTES)
        return;
    char *text = malloc((size_t)n);
    if (text && pvm_upkbyte(text, n, 1) >= 0)
        handlers.task_output(handlers.context, tid, text, (size_t)n);
    free(text);
}

static int on_output(int buffer)
{
    int bytes, tag, from, tid, n;

    if (pvm_bufinfo(buffer, &bytes, &tag, &from) < 0 || !((unsigned)from & DAEMON_BIT))
        return 0;
    if (pvm_upkint(&tid, 1, 1) < 0 || pvm_upkint(&n, 1, 1) < 0)
        return 0;
    if (n == TO_NEW || n == TO_SPAWN)
        handlers.task_began(handlers.context, tid);
    else if (n == TO_EOF)
        handlers.task_ended(handlers.context, tid);
    else if (n > 0)
        pass_text(tid, n, bytes);
    return 0;
}

/* Output first: a daemon learns of the collector when it joins. */
static int register_services(struct err *err)
{
    Pvmtmask no_traces;
    TEV_MASK_INIT(no_traces);
    int result = output_context = pvm_newcontext();
    if (result >= 0)
        result = pvm_addmhf(-1, OUTPUT_TAG, output_context, on_output);
    if (result >= 0)
        result = pvm_reg_tracer(0, 0, output_context, OUTPUT_TAG, no_traces, 0, 0);
    if (result < 0)
        return err_set(err, -EPROTO, "PVM does not let the job's agent collect output: %s", machine_error(result));
    result = pvm_addmhf(-1, SM_STHOST, -1, on_start_hosts);
    if (result >= 0)
        result = pvm_reg_hoster();
    if (result < 0)
        return err_set(err, -EPROTO, "PVM does not let the job's agent start daemons: %s", machine_error(result));
    return 0;
}

int machine_enrol(const struct machine_handlers *wanted, struct err *err)
{
    handlers = *wanted;
    pvm_setopt(PvmAutoErr, 0);
    pvm_setopt(PvmResvTids, 1); /* or the answers to daemons could not be sent */
    int result = pvm_mytid();
    if (result < 0)
        return err_set(err, -EPROTO, "PVM's master daemon does not answer: %s", machine_error(result));
    pvm_setopt(PvmNoReset, 1); /* the console's reset kills tasks, not us */
    return register_services(err);
}

int machine_add_hosts(char **specifications, size_t count, int *codes, struct err *err)
{
    int joined = pvm_addhosts(specifications, (int)count, codes);
    if (joined < 0)
        return err_set(err, -EPROTO, "PVM refuses to add hosts: %s", machine_error(joined));
    return joined;
}

int machine_descriptors(const int **descriptors)
{
    int *fds;
    int n = pvm_getfds(&fds);
    if (n < 0)
        return -EPIPE;
    *descriptors = fds;
    return n;
}

int machine_receive(void)
{
    /* The handlers take what is meant for us; a message that some task has sent here must not pile up. */
    for (int i = 0; i < DISCARD_MAX; i++) {
        int buffer = pvm_nrecv(-1, -1);
        if (buffer < 0)
            return -EPIPE;
        if (buffer == 0)
            break;
    }
    return 0;
}

void machine_halt(void)
{
    pvm_halt();
}
