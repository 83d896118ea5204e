/* barrier - the program of Turner's dissertation that waits much: phases of computation with a barrier after each.
 *
 * The master spawns P slaves, sends each its orders and sleeps in pvm_recv. A slave computes its share of w iterations,
 * sends a token of t bytes to slave 0 and waits for the answer; slave 0 answers when it has computed too and holds the
 * tokens of all. After p phases each slave reports to the master, which releases them when it has all reports. So slave
 * 0 is almost always busy and the others wait; the smaller w is, the more they wait. Version 4 is ours: the slaves
 * compute in turn, one in each phase, so that each of P processors is idle for about (P-1)/P of the time whatever
 * messages cost.
 *
 * What is verified: slave 0 sees exactly one token of each slave in each phase, with the right phase in it, and each
 * slave gets one answer per phase; the iterations are steps of a generator whose state after n steps the master can
 * compute directly, so that nobody can have skipped one. If a task dies, the others are told by PVM and end.
 */
#include "barrier.h"
#include "common.h"

#include <math.h>
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct version {
    int64_t iterations, phases, turns;
} versions[] = {{1350000, 830, 0}, {890000, 1250, 0}, {445000, 2500, 0}, {445000, 2500, 1}};

#define MULTIPLIER UINT64_C(6364136223846793005)
#define INCREMENT  UINT64_C(1442695040888963407)

static uint64_t seed_of(int index)
{
    return (uint64_t)index * 0x9e3779b97f4a7c15u + 1;
}

/* n dependent steps of a linear congruential generator: one multiplication and one addition each. */
static uint64_t compute(uint64_t state, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        state = state * MULTIPLIER + INCREMENT;
    return state;
}

/* The same in log2(n) steps, by squaring the map x -> mul * x + add. */
static uint64_t compute_directly(uint64_t state, uint64_t n)
{
    uint64_t mul = MULTIPLIER, add = INCREMENT;
    for (; n; n >>= 1) {
        if (n & 1)
            state = state * mul + add;
        add *= mul + 1;
        mul *= mul;
    }
    return state;
}

static void send_bytes(int tid, int tag, const void *data, int64_t bytes)
{
    char *in = (char *)(uintptr_t)data; /* pvm_pkbyte reads only */
    pvm_initsend(PvmDataRaw);
    example_check(pvm_pkbyte(in, (int)bytes, 1), "pvm_pkbyte");
    example_check(pvm_send(tid, tag), "pvm_send");
}

/* Receive a message of this tag and size; give up when a peer ends. */
static void receive_bytes(int tag, void *data, int64_t bytes)
{
    int from, length;
    if (example_receive_tag(tag, &from, &length) == EXAMPLE_TAG_GONE)
        example_die("a task of the program ended too early");
    if (length != bytes)
        example_die("message %d of %d bytes from t%x, expected %lld", tag, length, (unsigned)from, (long long)bytes);
    example_check(pvm_upkbyte(data, (int)bytes, 1), "pvm_upkbyte");
}

/* Slave 0: collect one token of each other slave, then answer all. Returns how many tokens were good. */
static int64_t hold_barrier(const struct orders *o, const int *tids, int64_t phase, char *buffer, char *seen)
{
    int64_t good = 0;
    memset(seen, 0, (size_t)o->slaves);
    for (int i = 1; i < o->slaves; i++) {
        struct token token;
        receive_bytes(TAG_TOKEN, buffer, o->token_bytes);
        memcpy(&token, buffer, sizeof(token));
        if (token.phase != phase || token.index < 1 || token.index >= o->slaves || seen[token.index])
            continue;
        seen[token.index] = 1;
        good++;
    }
    struct token answer = {.index = 0, .phase = phase};
    memcpy(buffer, &answer, sizeof(answer));
    for (int i = 1; i < o->slaves; i++)
        send_bytes(tids[i], TAG_ANSWER, buffer, o->token_bytes);
    return good;
}

/* What the slave has to compute in this phase. */
static int64_t work_of(const struct orders *o, int64_t phase)
{
    return !o->turns || phase % o->slaves == o->index ? o->iterations : 0;
}

/* The other slaves: send the token and sleep until the answer. Returns 1 if it was a good one. */
static int64_t wait_barrier(const struct orders *o, int64_t phase, char *buffer)
{
    struct token token = {.index = o->index, .phase = phase};
    memcpy(buffer, &token, sizeof(token));
    send_bytes(o->barrier_tid, TAG_TOKEN, buffer, o->token_bytes);
    receive_bytes(TAG_ANSWER, buffer, o->token_bytes);
    memcpy(&token, buffer, sizeof(token));
    return token.index == 0 && token.phase == phase;
}

/* A report takes the direct route and the notice of an end does not: so nobody ends before the master has all reports.
 */
static void await_release(void)
{
    int from, bytes;
    int tag = example_receive(&from, &bytes);
    if (tag != TAG_RELEASE && tag != EXAMPLE_TAG_GONE)
        example_die("message %d from t%x instead of the release", tag, (unsigned)from);
}

static int slave(void)
{
    struct orders o;
    static int tids[EXAMPLE_TASKS_MAX];
    static char seen[EXAMPLE_TASKS_MAX];
    int parent = example_check(pvm_parent(), "pvm_parent");

    pvm_setopt(PvmRoute, PvmRouteDirect);
    example_check(pvm_notify(PvmTaskExit, EXAMPLE_TAG_GONE, 1, &parent), "pvm_notify");
    receive_bytes(TAG_ORDERS, &o, sizeof(o));
    if (o.slaves < 1 || o.slaves > EXAMPLE_TASKS_MAX)
        example_die("orders for %d slaves", o.slaves);
    receive_bytes(TAG_ORDERS, tids, (int64_t)sizeof(*tids) * o.slaves);
    char *buffer = calloc(1, (size_t)o.token_bytes);
    if (!buffer)
        example_die("no memory for a token of %lld bytes", (long long)o.token_bytes);

    struct report r = {.index = o.index, .state = seed_of(o.index)};
    gethostname(r.host, sizeof(r.host) - 1);
    double begin = example_now();
    for (int64_t phase = 0; phase < o.phases; phase++) {
        r.state = compute(r.state, work_of(&o, phase));
        r.tokens += o.index == 0 ? hold_barrier(&o, tids, phase, buffer, seen) : wait_barrier(&o, phase, buffer);
    }
    r.seconds = example_now() - begin;
    r.cpu_seconds = example_cpu_seconds();
    free(buffer);
    send_bytes(parent, TAG_REPORT, &r, sizeof(r));
    await_release();
    pvm_exit();
    return 0;
}

struct options {
    int slaves, barrier;
    int64_t iterations, phases, turns, token_bytes;
    double factor;
};

static int64_t share(const struct options *opt, int index)
{
    if (opt->turns)
        return opt->iterations;
    return opt->iterations / opt->slaves + (index < opt->iterations % opt->slaves);
}

/* The phases in which the slave computes. */
static int64_t phases_of(const struct options *opt, int index)
{
    return opt->turns ? opt->phases / opt->slaves + (index < opt->phases % opt->slaves) : opt->phases;
}

/* Is the report of a slave what it must be? Says on stderr what is wrong. */
static int report_good(const struct options *opt, const struct report *r)
{
    uint64_t steps = (uint64_t)share(opt, r->index) * (uint64_t)phases_of(opt, r->index);
    int64_t tokens = opt->phases * (r->index == 0 ? opt->slaves - 1 : 1);
    if (r->tokens != tokens) {
        fprintf(stderr, "barrier: slave %d counted %lld tokens, expected %lld\n", r->index, (long long)r->tokens,
                (long long)tokens);
        return 0;
    }
    if (r->state != compute_directly(seed_of(r->index), steps)) {
        fprintf(stderr, "barrier: slave %d has not computed its iterations\n", r->index);
        return 0;
    }
    return 1;
}

/* Sleep until every slave has reported. Returns the number of good reports, fills times of slave 0 and CPU of all. */
static int collect_reports(const struct options *opt, double *seconds, double *cpu_seconds, char *host)
{
    static char reported[EXAMPLE_TASKS_MAX];
    int good = 0;
    for (int n = 0; n < opt->slaves;) {
        int from, bytes;
        struct report r;
        int tag = example_receive(&from, &bytes);
        if (tag == EXAMPLE_TAG_GONE) {
            int tid = 0;
            pvm_upkint(&tid, 1, 1);
            example_die("slave t%x ended after %d of %d reports", (unsigned)tid, n, opt->slaves);
        }
        if (tag != TAG_REPORT || bytes != (int)sizeof(r) || pvm_upkbyte((char *)&r, sizeof(r), 1) < 0 || r.index < 0 ||
            r.index >= opt->slaves || reported[r.index])
            example_die("message %d of %d bytes from t%x instead of a report", tag, bytes, (unsigned)from);
        reported[r.index] = 1;
        good += report_good(opt, &r);
        *cpu_seconds += r.cpu_seconds;
        if (r.index == 0) {
            *seconds = r.seconds;
            memcpy(host, r.host, sizeof(r.host));
        }
        n++;
    }
    return good;
}

static int master(const struct options *opt)
{
    static int spawned[EXAMPLE_TASKS_MAX], tids[EXAMPLE_TASKS_MAX];
    double begin = example_now(), seconds = 0, cpu_seconds = 0;
    char host[sizeof((struct report *)NULL)->host] = "";

    example_spawn(opt->slaves, spawned);
    for (int i = 0; i < opt->slaves; i++)
        tids[i] = spawned[(i + opt->barrier) % opt->slaves];
    for (int i = 0; i < opt->slaves; i++) {
        struct orders o = {.index = i,
                           .slaves = opt->slaves,
                           .iterations = share(opt, i),
                           .phases = opt->phases,
                           .turns = opt->turns,
                           .token_bytes = opt->token_bytes,
                           .barrier_tid = tids[0]};
        send_bytes(tids[i], TAG_ORDERS, &o, sizeof(o));
        send_bytes(tids[i], TAG_ORDERS, tids, (int64_t)sizeof(*tids) * opt->slaves);
    }
    int good = collect_reports(opt, &seconds, &cpu_seconds, host);
    for (int i = 0; i < opt->slaves; i++)
        send_bytes(tids[i], TAG_RELEASE, "", 1);
    example_release();
    pvm_exit();
    int verified = good == opt->slaves;
    printf("barrier: %s slaves=%d iterations=%lld phases=%lld token_bytes=%lld tokens=%lld cpu_seconds=%.3f "
           "seconds=%.3f elapsed=%.3f barrier_host=%s\n",
           verified ? "verified" : "NOT verified", opt->slaves, (long long)opt->iterations, (long long)opt->phases,
           (long long)opt->token_bytes, (long long)opt->phases * (opt->slaves - 1), cpu_seconds, seconds,
           example_now() - begin, host);
    return verified && fflush(stdout) == 0 ? 0 : 1;
}

static void usage(void)
{
    fputs("usage: barrier [-P slaves] [-v 1|2|3|4] [-b task] [-f factor] [-w iterations] [-p phases] [-t token_bytes]\n"
          "  -v 1: w=1350000 p=830   -v 2: w=890000 p=1250   -v 3 (default): w=445000 p=2500   t=800\n"
          "  -v 4: as 3, but in each phase one slave computes all of w, in turn, and the others wait for it\n"
          "  -b: which of the spawned tasks, from 0, is slave 0, which implements the barrier\n"
          "  -f makes it longer or shorter (more or fewer phases); -P is 2 unless ELMER_NPROCS says otherwise\n",
          stderr);
    exit(2);
}

static void parse(int argc, char **argv, struct options *opt)
{
    const struct version *v = &versions[2];
    int64_t iterations = 0, phases = 0;
    const char *nprocs = getenv("ELMER_NPROCS");
    *opt = (struct options){.slaves = nprocs ? (int)example_integer('P', nprocs, 1, EXAMPLE_TASKS_MAX) : 2,
                            .token_bytes = 800,
                            .factor = 1};
    for (int c; (c = getopt(argc, argv, "P:v:b:f:w:p:t:")) != -1;) {
        switch (c) {
        case 'P':
            opt->slaves = (int)example_integer('P', optarg, 1, EXAMPLE_TASKS_MAX);
            break;
        case 'v':
            v = &versions[example_integer('v', optarg, 1, 4) - 1];
            break;
        case 'b':
            opt->barrier = (int)example_integer('b', optarg, 0, EXAMPLE_TASKS_MAX - 1);
            break;
        case 'f':
            opt->factor = example_real('f', optarg, 1e-6, 1e6);
            break;
        case 'w':
            iterations = example_integer('w', optarg, 1, 1000000000000);
            break;
        case 'p':
            phases = example_integer('p', optarg, 1, 1000000000);
            break;
        case 't':
            opt->token_bytes = example_integer('t', optarg, sizeof(struct token), 1 << 24);
            break;
        default:
            usage();
        }
    }
    if (optind != argc)
        usage();
    opt->iterations = iterations ? iterations : v->iterations;
    opt->turns = v->turns;
    opt->phases = llround((double)(phases ? phases : v->phases) * opt->factor);
    if (opt->phases < 1)
        opt->phases = 1;
}

int main(int argc, char **argv)
{
    struct options opt;
    if (argc == 2 && strcmp(argv[1], EXAMPLE_TASK) == 0) {
        example_name("barrier slave");
        example_enrol();
        return slave();
    }
    example_name("barrier");
    parse(argc, argv, &opt);
    example_enrol();
    return master(&opt);
}
