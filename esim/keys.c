#include "config.h"

#include "esim/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esim/decimal.h"
#include "esim/swf.h"
#include "lib/base/bytes.h"
#include "lib/memory/mem.h"

void keys_default(struct config *config)
{
    *config = (struct config){.precision = 0.02, .jobs_max = 2000000, .effort_max = 1.3e9 /* minutes */, .cube = -1};
    core_options_default(&config->world.core);
    config->world.core.levels = 0; /* keys_complete() */
    config->world.core.allocator = ALLOCATOR_COUNT;
    config->world.core.policy = POLICY_COUNT;
    config->world.report_ms = 2000;
    workload_default(&config->workload); /* and keys_complete() */
}

/* unit: what may stand behind it, '%', 's' or nothing, '\0'. */
static bool number(const char *value, char unit, double least, double most, double *out)
{
    char *end;

    errno = 0;
    *out = decimal(value, &end);
    if (unit != '\0' && *end == unit) {
        *out /= unit == '%' ? 100 : 1;
        end++;
    }
    return end != value && *end == '\0' && errno == 0 && *out >= least && *out <= most;
}

static bool whole_number(const char *value, double least, double most, double *out)
{
    return number(value, '\0', least, most, out) && *out == floor(*out);
}

/* "1x8,0.5x4,2": of the first eight hosts, the next four, all others. Spaces do as well as commas, which separate the
 * values of a comparison. */
static bool parse_speeds(struct world_settings *w, const char *text)
{
    w->nspeeds = 0;
    while (w->nspeeds < SPEEDS_MAX) {
        struct speeds *speeds = &w->speeds[w->nspeeds++];
        char *end;
        double hosts = 1;
        speeds->speed = decimal(text, &end);
        if (end == text || !(speeds->speed >= 0.001 && speeds->speed <= 1000))
            return false;
        if (*end == 'x') {
            text = end + 1;
            hosts = decimal(text, &end);
            if (end == text || !(hosts >= 1 && hosts <= 65536) || hosts != floor(hosts))
                return false;
        }
        speeds->hosts = (int)hosts;
        if (*end == '\0')
            return true;
        if (*end != ',' && *end != ' ')
            return false;
        text = end + 1;
    }
    return false;
}

static bool set_word(struct config *c, const char *key, const char *value, bool *known)
{
    struct core_options *core = &c->world.core;
    int found;

    *known = true;
    if (strcmp(key, "allocator") == 0) {
        found = core_allocator_by_name(value);
        core->allocator = (enum core_allocator)(found < 0 ? 0 : found);
        return found >= 0;
    }
    if (strcmp(key, "policy") == 0) {
        found = core_policy_by_name(value);
        core->policy = (enum core_policy)(found < 0 ? 0 : found);
        return found >= 0;
    }
    if (strcmp(key, "model") == 0) {
        c->world.model = strcmp(value, "shared") == 0 ? MODEL_SHARED : MODEL_SPACE;
        c->model_said = true;
        return strcmp(value, "shared") == 0 || strcmp(value, "space") == 0;
    }
    if (strcmp(key, "steps") == 0) {
        c->world.by_itself = strcmp(value, "each") == 0;
        return c->world.by_itself || strcmp(value, "together") == 0;
    }
    if (strcmp(key, "arrivals") == 0 || strcmp(key, "service") == 0) {
        bool constant = strcmp(value, "constant") == 0;
        *(key[0] == 'a' ? &c->workload.constant_arrivals : &c->workload.constant_service) = constant;
        return constant || strcmp(value, key[0] == 'a' ? "poisson" : "exponential") == 0;
    }
    if (strcmp(key, "workload") == 0) {
        snprintf(c->workload_name, sizeof(c->workload_name), "%s", value);
        return workload_parse(&c->workload, value);
    }
    if (strcmp(key, "trace") == 0) {
        c->trace = value;
        snprintf(c->workload_name, sizeof(c->workload_name), "%s", value);
        c->whole = c->exactly = true;
        return true;
    }
    if (strcmp(key, "feedback") == 0) {
        c->no_feedback = strcmp(value, "no") == 0;
        return c->no_feedback || strcmp(value, "yes") == 0;
    }
    if (strcmp(key, "memory") == 0)
        return bytes_parse(value, &c->world.memory_bytes);
    if (strcmp(key, "job-memory") == 0)
        return bytes_parse(value, &c->workload.memory_bytes);
    if (strcmp(key, "speeds") == 0)
        return parse_speeds(&c->world, value);
    if (strcmp(key, "without-user") == 0) {
        c->without = strcmp(value, "-") == 0 ? NULL : value;
        return true;
    }
    *known = false;
    return false;
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; length > 0 && !strchr(word, ' ') && (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

bool keys_is_whole(const char *key)
{
    return has_word("levels hosts cpus cube add-hosts user-running seed explain jobs jobs-max", key);
}

static bool set_number(struct config *c, const char *key, const char *value, bool *known)
{
    double n;

    *known = true;
    if (strcmp(key, "load") == 0)
        return number(value, '%', 1e-6, 1e6, &c->workload.load);
    if (strcmp(key, "share") == 0)
        return number(value, '%', 0.001, 1, &c->workload.share);
    if (strcmp(key, "threshold") == 0)
        return number(value, '%', 0.001, 0.999, &c->world.core.threshold);
    if (strcmp(key, "mean-service") == 0)
        return number(value, 's', 0.01, 1e7, &c->workload.mean_service_s); /* times are whole ms */
    if (strcmp(key, "precision") == 0) {
        c->precision_said = true;
        return number(value, '%', 1e-5, 1, &c->precision);
    }
    if (strcmp(key, "period") == 0 && number(value, 's', 0, 1e6, &n) && (n == 0 || n >= 0.001))
        c->world.period_ms = (int64_t)(n * 1000);
    else if (strcmp(key, "levels") == 0 && whole_number(value, 1, CORE_MAX_LEVELS, &n))
        c->world.core.levels = (int)n;
    else if (strcmp(key, "hosts") == 0 && whole_number(value, 1, 65536, &n))
        c->world.nhosts = (int)n;
    else if (strcmp(key, "cpus") == 0 && whole_number(value, 1, CORE_MAX_CPUS, &n))
        c->world.ncpus = (int)n;
    else if (strcmp(key, "cube") == 0 && whole_number(value, 0, 16, &n)) {
        c->world.core.topology = TOPOLOGY_CUBE;
        c->cube = (int)n;
    } else if (strcmp(key, "add-hosts") == 0 && whole_number(value, 0, 65535, &n))
        c->more_hosts = (int)n;
    else if (strcmp(key, "user-running") == 0 && whole_number(value, 0, 1e6, &n))
        c->world.core.user_running = (uint32_t)n;
    else if (strcmp(key, "seed") == 0 && whole_number(value, 0, 9e15, &n))
        c->workload.seed = c->world.core.seed = (uint64_t)n;
    else if (strcmp(key, "explain") == 0 && whole_number(value, 1, 9e15, &n))
        c->world.explain = (uint64_t)n;
    else if (strcmp(key, "jobs-max") == 0 && whole_number(value, 1, 1e9, &n)) {
        c->jobs_max = (uint64_t)n;
        c->jobs_said = true;
    } else if (strcmp(key, "jobs") == 0 && whole_number(value, 1, 1e9, &n)) {
        c->jobs_max = (uint64_t)n;
        c->exactly = c->jobs_said = true;
    } else {
        *known = has_word(keys_names(), key);
        return false;
    }
    return true;
}

const char *keys_names(void)
{
    return "allocator policy model steps arrivals service workload trace load share threshold mean-service precision "
           "period levels hosts add-hosts cpus memory job-memory speeds cube without-user feedback user-running seed "
           "explain jobs "
           "jobs-max";
}

static void note(const char **said, const char *key, const char *const *of)
{
    for (; *of; of++)
        if (strcmp(key, *of) == 0)
            *said = *of;
}

/* Of the keys that have a meaning in some simulations only. */
static void note_all(struct config *config, const char *key)
{
    note(&config->drawn_said, key,
         (const char *const[]){"workload", "load", "arrivals", "service", "mean-service", "share", "job-memory", NULL});
    note(&config->times_said, key, (const char *const[]){"load", "arrivals", NULL});
    note(&config->shared_said, key, (const char *const[]){"steps", "period", NULL});
    note(&config->threshold_said, key, (const char *const[]){"threshold", NULL});
    note(&config->feedback_said, key, (const char *const[]){"feedback", NULL});
    note(&config->max_said, key, (const char *const[]){"jobs-max", NULL});
}

bool keys_set(struct config *config, const char *key, const char *value, char *fault, size_t size)
{
    bool known, good = set_word(config, key, value, &known);

    note_all(config, key);
    if (!known)
        good = set_number(config, key, value, &known);
    if (!known)
        snprintf(fault, size, "there is no '%s'; known are: %s", key, keys_names());
    else if (!good)
        snprintf(fault, size, "%s: '%s' cannot be understood, or is out of range", key, value);
    return good;
}

static bool hosts_of_trace(struct config *c, int64_t procs, char *fault, size_t size)
{
    int64_t hosts = procs / c->world.ncpus;

    if (procs % c->world.ncpus != 0 || hosts > 65536) {
        snprintf(fault, size, "cpus: %" PRId64 " processors of the trace (MaxProcs) are no hosts of %d: say --hosts",
                 procs, c->world.ncpus);
        return false;
    }
    c->world.nhosts = (int)hosts;
    return true;
}

/* Hosts that are as large as the trace says, or else as large as can be. */
static void split_processors(struct config *c, int64_t procs, int64_t nodes)
{
    bool said = nodes > 0 && nodes <= 65536 && procs % nodes == 0 && procs / nodes <= CORE_MAX_CPUS;

    c->world.nhosts = said ? (int)nodes : 1;
    while (procs / c->world.nhosts > CORE_MAX_CPUS || procs % c->world.nhosts != 0)
        c->world.nhosts++;
    c->world.ncpus = (int)(procs / c->world.nhosts);
}

/* As many processors as the trace says. */
static bool machine_of_trace(struct config *c, char *fault, size_t size)
{
    struct swf *swf = swf_open(c->trace, true);
    const int64_t most = 65536LL * CORE_MAX_CPUS;
    int64_t procs, nodes;

    c->failed = !swf || swf_fault(swf);
    if (!swf) {
        snprintf(fault, size, "%.150s: %s", c->trace, strerror(errno));
        return false;
    }
    nodes = swf_header(swf)->max_nodes;
    procs = swf_header(swf)->max_procs > 0 ? swf_header(swf)->max_procs : nodes;
    if (swf_fault(swf))
        snprintf(fault, size, "%s", swf_fault(swf));
    else if (procs <= 0 || procs > most)
        snprintf(fault, size, "%.150s %s: say --hosts and --cpus", c->trace,
                 procs <= 0 ? "does not say how large its machine is (MaxProcs)"
                            : "says that its machine is larger than one can be here (MaxProcs)");
    swf_source(swf)->destroy(swf_source(swf));
    if (fault[0] != '\0')
        return false;
    if (c->world.ncpus > 0)
        return hosts_of_trace(c, procs, fault, size);
    split_processors(c, procs, nodes);
    return true;
}

/* How many processors most of the hosts have: so will new ones. */
static int usual_cpus(const struct history *h)
{
    int *counts = mem_array(UINT16_MAX + 2, sizeof(*counts)), best = 0; /* CPUs of the store have 16 bits */

    for (int i = 0; i < h->nhosts; i++)
        counts[h->cpus[i]]++;
    for (int i = 0; i < h->nhosts; i++)
        if (counts[h->cpus[i]] > counts[best])
            best = h->cpus[i];
    free(counts);
    return best;
}

/* The machine and the settings that the history came from, where nothing else is said. */
static bool complete_history(struct config *c, char *fault, size_t size)
{
    const struct history *h = c->history;
    struct core_options *core = &c->world.core;

    if (c->without && !history_has_user(h, c->without)) {
        snprintf(fault, size, "without-user: the history has no job of '%.60s'", c->without);
        return false;
    }
    if (c->world.nhosts == 0)
        c->world.nhosts = h->nhosts;
    if (c->world.ncpus == 0) {
        c->world.known = h->cpus;
        c->world.nknown = h->nhosts;
        c->world.names = h->hosts;
        c->world.cpus_more = usual_cpus(h);
        for (int i = 0; i < h->nhosts; i++)
            c->world.ncpus = h->cpus[i] > c->world.ncpus ? h->cpus[i] : c->world.ncpus;
    }
    if (core->levels == 0)
        core->levels = core->topology == TOPOLOGY_CUBE ? 1 : h->levels;
    if (core->allocator == ALLOCATOR_COUNT)
        core->allocator = h->allocator != ALLOCATOR_COUNT   ? h->allocator
                          : core->topology == TOPOLOGY_CUBE ? ALLOCATOR_CUBE_AFL
                                                            : ALLOCATOR_V2;
    if (core->policy == POLICY_COUNT)
        core->policy = h->policy;
    if (!c->model_said)
        c->world.model = MODEL_SHARED;
    return true;
}

/* It has another value in another simulation beside this one, so that an option may be for that. */
static bool varied(const struct config *c, const char *key)
{
    return (c->swept && strcmp(c->swept, key) == 0) || (c->compared && strcmp(c->compared, key) == 0);
}

/* What would be taken, and make no difference. NULL: nothing. */
static const char *idle_option(const struct config *c)
{
    bool drawn = !c->trace && !c->history;

    if (c->world.saturated && c->history)
        return "saturated: jobs of a history have their times of submission";
    if (c->world.saturated && drawn && c->times_said)
        return "saturated: the next job comes when nobody waits, without load and arrivals";
    if (c->shared_said && c->world.model != MODEL_SHARED && !varied(c, "model"))
        return c->shared_said[0] == 's' ? "steps: that is for the model shared"
                                        : "period: that is for the model shared";
    if (c->threshold_said && c->world.core.allocator != ALLOCATOR_V2 && !varied(c, "allocator"))
        return "threshold: that is for the allocator v2";
    if (c->workload.memory_bytes > 0 && c->world.memory_bytes == 0 && !varied(c, "memory"))
        return "job-memory: this needs memory, what each host has of it";
    if (drawn && c->world.memory_bytes > 0 && c->workload.memory_bytes == 0 && !varied(c, "job-memory"))
        return "memory: jobs that are drawn ask for none without job-memory";
    if (c->feedback_said && !c->trace)
        return "feedback: jobs that follow others are those of a trace";
    if (c->precision_said && !drawn)
        return "precision: a trace or a history is as long as it is";
    if (drawn && c->exactly && c->max_said)
        return "jobs and jobs-max: one of them";
    if (drawn && c->exactly && c->precision_said && (c->records_said || c->world.explain != 0))
        return "records and explain are of one run: jobs and a precision make several, so say one of them";
    return NULL;
}

/* Meshes are of a cube: most of them would be too large for the hosts that there are else. */
static void complete_workload(struct config *c, bool cube)
{
    const char *name = cube ? "rect [1,16]" : "procs [1,8]";

    if (c->workload_name[0] != '\0')
        return;
    workload_parse(&c->workload, name);
    snprintf(c->workload_name, sizeof(c->workload_name), "%s", name);
}

bool keys_complete(struct config *c, char *fault, size_t size)
{
    struct core_options *core = &c->world.core;
    bool cube = core->topology == TOPOLOGY_CUBE;

    fault[0] = '\0';
    complete_workload(c, cube);
    if (c->drawn_said && (c->trace || c->history)) {
        snprintf(fault, size, "%s: that is for jobs that are drawn, not for a trace or a history", c->drawn_said);
        return false;
    }
    if (c->cube >= 0 && (c->world.nhosts > 0 || c->world.ncpus > 0)) {
        snprintf(fault, size, "cube: its hosts are 2^%d, with a processor each; without hosts and cpus", c->cube);
        return false;
    }
    if (c->cube >= 0) {
        c->world.nhosts = 1 << c->cube;
        c->world.ncpus = 1;
        c->cube = -1;
    }
    if (c->trace && !c->jobs_said)
        c->jobs_max = UINT64_MAX;
    if (c->history && !complete_history(c, fault, size))
        return false;
    if (!c->history && c->without) {
        snprintf(fault, size, "without-user: this needs --history");
        return false;
    }
    if (cube && c->history && c->world.naway > 0) {
        snprintf(fault, size, "away: not in a cube: the history does not say which of its nodes a host was");
        return false;
    }
    if (cube && c->more_hosts > 0) {
        snprintf(fault, size, "add-hosts: not to a cube");
        return false;
    }
    if (c->world.nhosts == 0 && c->trace && !machine_of_trace(c, fault, size))
        return false;
    if (c->world.nhosts == 0)
        c->world.nhosts = 16;
    if (c->world.ncpus == 0)
        c->world.ncpus = 1;
    c->world.nhosts += c->more_hosts;
    if (core->policy == POLICY_COUNT)
        core->policy = POLICY_FCFS;
    if (core->levels == 0)
        core->levels = cube || c->world.model == MODEL_SPACE ? 1 : 3;
    if (core->allocator == ALLOCATOR_COUNT)
        core->allocator = cube ? ALLOCATOR_CUBE_AFL : ALLOCATOR_V1;
    if (!cube && (core->allocator == ALLOCATOR_CUBE_FL || core->allocator == ALLOCATOR_CUBE_AFL)) {
        snprintf(fault, size, "allocator: %s places meshes in a hypercube: say cube, its size; 10 is 1024 hosts",
                 core_allocator_name(core->allocator));
        return false;
    }
    if (cube && core->levels > 1) {
        snprintf(fault, size, "levels: in a cube a processor has one job, so there is one level");
        return false;
    }
    if (idle_option(c)) {
        snprintf(fault, size, "%s", idle_option(c));
        return false;
    }
    if (core->allocator != ALLOCATOR_V2 && core->allocator != ALLOCATOR_SPREAD)
        c->world.report_ms = 0;
    if (c->world.saturated)
        c->workload.load = 0;
    if ((double)c->world.nhosts * c->world.ncpus > 16e6) {
        snprintf(fault, size, "the machine is too large");
        return false;
    }
    return true;
}
