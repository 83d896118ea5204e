/* fuzz_agent.c - the agent of a virtual machine, whole: what the daemons of PVM send it, which are the user's, what its
 * supervisor says, hosts that do not join, a machine that goes. libpvm3 is replaced by this file, which unpacks as it
 * does: never more than the message has. A host is asked for only if it was named, and libpvm3 is let alone once it has
 * lost the machine. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pvm3.h>
#include <pvmproto.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "rsd/pvm/agent.h"
#include "tests/fuzz/world.h"

enum { MAX_TURNS = 200, MAX_MESSAGES = 20, MESSAGE = 512, HOSTS = 3, OUTPUT_TAG = 1, DAEMON = (int)0x80040000u };

static const struct agent_host hosts[HOSTS] = {{"ws2", NULL}, {"ws3", "10.0.0.3"}, {"ws4", NULL}};

static struct {
    int control_fd, pvm_fd;
    int (*on_start)(int buffer), (*on_output)(int buffer);
    bool gone, news;
    unsigned turns, messages;
    /* the message that is being unpacked */
    uint8_t bytes[MESSAGE];
    size_t size, at;
    int from;
} pvm;

int __wrap_setitimer(int which, const struct itimerval *value, struct itimerval *old);
int __wrap_setitimer(int which, const struct itimerval *value, struct itimerval *old)
{
    (void)which, (void)value, (void)old;
    return 0;
}

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    (void)number, (void)action, (void)old;
    return 0;
}

/* ---- libpvm3: messages ---- */

static void put_int(uint32_t number)
{
    for (int i = 3; i >= 0 && pvm.size < MESSAGE; i--)
        pvm.bytes[pvm.size++] = (uint8_t)(number >> 8 * i);
}

static void put_bytes(struct input *input, size_t size)
{
    for (size_t i = 0; i < size && pvm.size < MESSAGE; i++)
        pvm.bytes[pvm.size++] = input_byte(input);
}

static void put_text(const char *text)
{
    size_t size = strlen(text) + 1;

    put_int((uint32_t)size);
    for (size_t i = 0; i < size && pvm.size < MESSAGE; i++)
        pvm.bytes[pvm.size++] = (uint8_t)text[i];
}

int pvm_upkint(int *numbers, int count, int stride)
{
    (void)stride;
    FUZZ_CHECK(count == 1, "%d numbers", count);
    if (pvm.size - pvm.at < 4)
        return PvmNoData;
    *numbers = (int)((uint32_t)pvm.bytes[pvm.at] << 24 | (uint32_t)pvm.bytes[pvm.at + 1] << 16 |
                     (uint32_t)pvm.bytes[pvm.at + 2] << 8 | pvm.bytes[pvm.at + 3]);
    pvm.at += 4;
    return 0;
}

int pvm_upkbyte(char *bytes, int count, int stride)
{
    (void)stride;
    FUZZ_CHECK(count >= 0, "%d bytes", count);
    if (pvm.size - pvm.at < (size_t)count)
        return PvmNoData;
    memcpy(bytes, pvm.bytes + pvm.at, (size_t)count);
    pvm.at += (size_t)count;
    return 0;
}

int pvm_upkstr(char *text)
{
    int size, result = pvm_upkint(&size, 1, 1);

    if (result < 0)
        return result;
    if (size < 1)
        return PvmBadMsg;
    result = pvm_upkbyte(text, size, 1);
    if (result == 0)
        text[size - 1] = '\0';
    return result;
}

int pvm_bufinfo(int buffer, int *bytes, int *tag, int *from)
{
    (void)buffer;
    *bytes = (int)pvm.size;
    *tag = 0;
    *from = pvm.from;
    return 0;
}

int pvm_getminfo(int buffer, struct pvmminfo *info)
{
    (void)buffer;
    memset(info, 0, sizeof(*info));
    return 0;
}

int pvm_setminfo(int buffer, struct pvmminfo *info)
{
    (void)buffer, (void)info;
    return 0;
}

int pvm_getsbuf(void)
{
    return 1;
}

int pvm_initsend(int encoding)
{
    return encoding == PvmDataDefault ? 1 : PvmBadParam;
}

int pvm_pkint(int *numbers, int count, int stride)
{
    (void)numbers, (void)stride;
    return count == 1 ? 0 : PvmBadParam;
}

int pvm_pkstr(char *text)
{
    FUZZ_CHECK(strncmp(text, "ddpro<", 6) == 0 || strncmp(text, "Pvm", 3) == 0, "PVM is told \"%s\"", text);
    return 0;
}

int pvm_send(int to, int tag)
{
    FUZZ_CHECK(!pvm.gone && to == pvm.from && tag == SM_STHOSTACK, "%d to %x", tag, (unsigned)to);
    return 0;
}

/* ---- libpvm3: the machine ---- */

int pvm_errno;

char *pvm_strerror(void)
{
    static char text[] = "No such host";

    return text;
}

int pvm_setopt(int what, int value)
{
    (void)what;
    return value;
}

int pvm_mytid(void)
{
    return world_fails() ? PvmSysErr : 0x40001;
}

int pvm_newcontext(void)
{
    return world_fails() ? PvmSysErr : 7;
}

int pvm_addmhf(int from, int tag, int context, int (*handler)(int buffer))
{
    (void)from, (void)context;
    if (tag == OUTPUT_TAG)
        pvm.on_output = handler;
    else
        pvm.on_start = handler;
    return world_fails() ? PvmNoMem : 1;
}

int pvm_reg_tracer(int a, int b, int context, int tag, char *mask, int c, int d)
{
    (void)a, (void)b, (void)context, (void)tag, (void)mask, (void)c, (void)d;
    return world_fails() ? PvmSysErr : 0;
}

int pvm_reg_hoster(void)
{
    return world_fails() ? PvmAlready : 0;
}

int pvm_getfds(int **fds)
{
    FUZZ_CHECK(!pvm.gone, "asks a machine that is gone");
    *fds = &pvm.pvm_fd;
    pvm.gone = world_fails();
    return pvm.gone ? PvmSysErr : 1;
}

int pvm_halt(void)
{
    FUZZ_CHECK(!pvm.gone, "halts a machine that is gone");
    pvm.gone = true;
    return 0;
}

/* An entry as the daemons make them, or nearly. */
static void put_entry(struct input *input)
{
    static const char *const logins[] = {"ws2", "alice@10.0.0.3", "ws4", "ws9", "", "@", "a@b@ws2"};

    put_int(input_byte(input));
    put_text("");
    put_text(logins[input_below(input, sizeof(logins) / sizeof(*logins))]);
    put_text("pvmd -s -d0x0 -nws2 1 0a000001:8a2f 4080 2 0a000002:0000");
    put_text("");
    put_text("");
}

static void hear_request(struct input *input)
{
    uint8_t how = input_byte(input);
    size_t count = input_below(input, 4);

    put_int(how < 0xC0 ? (uint32_t)count : (uint32_t)input_number(input, UINT32_MAX));
    for (size_t i = 0; i < count; i++)
        put_entry(input);
    if (how >= 0x80)
        put_bytes(input, input_below(input, 64));
    if (how >= 0xE0 && pvm.size > 0)
        pvm.size = input_byte(input) % pvm.size;
    if (pvm.on_start)
        (void)pvm.on_start(1);
}

static void hear_output(struct input *input)
{
    uint8_t how = input_byte(input);
    size_t size = how & 0x1F;

    put_int(0x40000u | (uint32_t)input_below(input, 4));
    if (how < 0x80)
        put_int((uint32_t)size);
    else
        put_int((uint32_t) - (int)input_below(input, 5)); /* ends and beginnings */
    if (how >= 0xF0)
        put_int((uint32_t)input_number(input, UINT32_MAX));
    put_bytes(input, size);
    if (pvm.on_output)
        (void)pvm.on_output(1);
}

static void hear(struct input *input)
{
    uint8_t what = input_byte(input);

    pvm.size = pvm.at = 0;
    pvm.from = what & 1 ? 0x40002 : DAEMON;
    if (what < 0x60)
        hear_request(input);
    else
        hear_output(input);
}

int pvm_nrecv(int from, int tag)
{
    (void)from, (void)tag;
    FUZZ_CHECK(!pvm.gone, "reads from a machine that is gone");
    if (world_input()->left == 0 || ++pvm.messages % MAX_MESSAGES == 0)
        return 0;
    hear(world_input());
    pvm.gone = world_fails();
    return pvm.gone ? PvmSysErr : (int)input_below(world_input(), 2);
}

int pvm_addhosts(char **specifications, int count, int *codes)
{
    struct input *input = world_input();
    int joined = 0;

    FUZZ_CHECK(count == HOSTS, "%d hosts", count);
    for (int i = 0; i < count; i++)
        FUZZ_CHECK(strncmp(specifications[i], hosts[i].name, strlen(hosts[i].name)) == 0, "%s", specifications[i]);
    for (size_t i = input_below(input, 4); i > 0; i--)
        hear(input);
    if (world_fails())
        return PvmSysErr;
    for (int i = 0; i < count; i++) {
        codes[i] = input_byte(input) < 0xE0 ? i + 1 : -(int)input_below(input, 40);
        joined += codes[i] > 0;
    }
    return joined;
}

/* ---- what happens ---- */

static void from_supervisor(struct input *input)
{
    struct wire_message message;
    uint8_t what = input_byte(input);

    input_message(input, what < 0xC0 ? WIRE_agent_spawned : input_type(input, WIRE_FROM_SUPERVISOR), &message);
    if (message.type == WIRE_agent_spawned)
        message.u.agent_spawned.request = 1 + input_below(input, 6);
    world_feed_message(pvm.control_fd, &message);
    wire_message_fini(&message);
}

static void terminate(void)
{
    struct signalfd_siginfo info = {.ssi_signo = SIGTERM};

    world_feed(world_pick(WORLD_SIGNALS, 0), &info, sizeof(info));
}

static void happen(struct input *input, int timeout_ms)
{
    uint8_t what = input_byte(input);

    if (what < 0x70)
        from_supervisor(input);
    else if (what < 0xC0)
        pvm.news = true;
    else if (what < 0xE0)
        world_pass_ms(timeout_ms > 0 ? timeout_ms : 0);
    else if (what < 0xE8)
        world_pass_ms(input_byte(input));
    else if (what < 0xF0)
        world_feed(pvm.control_fd, "\0\0\0\2{}", 6);
    else if (what < 0xF8)
        world_clog(pvm.control_fd, input_byte(input) & 1);
    else if (what < 0xFC)
        terminate();
    else
        world_feed_end(pvm.control_fd);
}

int world_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    int ready = 0;

    pvm.news = false;
    if (world_input()->left > 0 && ++pvm.turns < MAX_TURNS) {
        happen(world_input(), timeout_ms);
    } else {
        world_feed_end(pvm.control_fd);
        world_pass_ms(timeout_ms > 0 ? timeout_ms : 0);
    }
    for (size_t i = 0; i < count; i++) {
        if (fds[i].fd >= 0 && (fds[i].events & POLLIN) &&
            (fds[i].fd == pvm.pvm_fd ? pvm.news : world_readable(fds[i].fd)))
            fds[i].revents |= POLLIN;
        if (fds[i].fd >= 0 && (fds[i].events & POLLOUT) && world_writable(fds[i].fd))
            fds[i].revents |= POLLOUT;
        ready += fds[i].revents != 0;
    }
    return ready;
}

void world_heard(int fd, const struct wire_message *message)
{
    bool known = false;

    (void)fd;
    if (message->type != WIRE_agent_spawn)
        return;
    for (size_t i = 0; i < HOSTS; i++)
        known = known || strcmp(hosts[i].name, message->u.agent_spawn.host) == 0;
    FUZZ_CHECK(known, "a daemon on %s", message->u.agent_spawn.host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int null_fd = -1;
    struct input input = {data, size};
    struct agent_options options = {.hosts = hosts, .count = HOSTS};
    enum agent_exit status;

    if (null_fd < 0)
        null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    memset(&pvm, 0, sizeof(pvm));
    world_begin(&input, WIRE_FROM_AGENT);
    options.output_fd = options.errors_fd = null_fd;
    options.dir = input_below(&input, 2) ? "/home/a b" : "/home/alice";
    options.control_fd = pvm.control_fd = world_open(WORLD_SOCKET);
    pvm.pvm_fd = world_open(WORLD_OTHER);
    status = agent_run(&options);
    FUZZ_CHECK(status >= AGENT_EXIT_DONE && status <= AGENT_EXIT_MACHINE_GONE && status != AGENT_EXIT_USAGE,
               "status %d", (int)status);
    (void)close(pvm.pvm_fd);
    world_end();
    return 0;
}
