#include "config.h"

#include "elmer/settings_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/memory/mem.h"
#include "lib/config/ini.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "lib/wire/wire.h"

#ifndef ELMER_RSD_RUNDIR
#define ELMER_RSD_RUNDIR "/run/elmer-rsd"
#endif

enum { LEASE_MS = 120000, LEASE_BEATS = 3, MIN_LEASE_MS = 5000 };
enum { MAX_PATH = 4000 };

void settings_replace(char **text, const char *value)
{
    char *copy = mem_strdup(value);
    free(*text);
    *text = copy;
}

/* ---- values ---- */

#define LONG_KEY(key, member, parser, min, max)                                                                        \
    static int set_##key(void *config, const char *sub, const char *value, struct err *err)                            \
    {                                                                                                                  \
        struct settings *s = config;                                                                                   \
        (void)sub;                                                                                                     \
        return parser(value, min, max, &s->member, err);                                                               \
    }
LONG_KEY(report_interval, report_ms, ini_parse_duration_ms, 100, 3600000)
LONG_KEY(heartbeat, heartbeat_ms, ini_parse_duration_ms, 100, 3600000)
LONG_KEY(host_timeout, host_timeout_ms, ini_parse_duration_ms, 500, 86400000)
LONG_KEY(kill_grace, kill_grace_ms, ini_parse_duration_ms, 0, 3600000)
LONG_KEY(fresh_intervals, fresh_intervals, ini_parse_int, 1, 1000)
LONG_KEY(max_nprocs, max_nprocs, ini_parse_int, 1, 65536)
LONG_KEY(history_jobs, history_jobs, ini_parse_int, 0, 1000000000)
LONG_KEY(history_age, history_age_ms, ini_parse_duration_ms, 0, 3153600000000)
LONG_KEY(minimum_uid, minimum_uid, ini_parse_int, 0, 4294967294)
LONG_KEY(user_queued, user_queued, ini_parse_int, 1, 100000000)
LONG_KEY(user_memory, user_memory, ini_parse_int, 1, 1048576)
LONG_KEY(user_connections, user_connections, ini_parse_int, 1, 1000000)
LONG_KEY(user_request_bytes, user_request_bytes, ini_parse_int, 4096, WIRE_MAX_FRAME)
LONG_KEY(user_requests, user_requests, ini_parse_int, 1, 1000000)
LONG_KEY(user_requests_burst, user_requests_burst, ini_parse_int, 10, 100000000)
LONG_KEY(host_messages, host_messages, ini_parse_int, 100, 1000000)
LONG_KEY(host_messages_burst, host_messages_burst, ini_parse_int, 1000, 100000000)

#define CORE_MS_KEY(key, min, max)                                                                                     \
    static int set_##key(void *config, const char *sub, const char *value, struct err *err)                            \
    {                                                                                                                  \
        struct settings *s = config;                                                                                   \
        long ms;                                                                                                       \
        (void)sub;                                                                                                     \
        int result = ini_parse_duration_ms(value, min, max, &ms, err);                                                 \
        if (!result)                                                                                                   \
            s->core.key##_ms = ms;                                                                                     \
        return result;                                                                                                 \
    }
CORE_MS_KEY(settle, 0, 3600000)
CORE_MS_KEY(start_timeout, 100, 86400000)
CORE_MS_KEY(resend, 50, 3600000)
CORE_MS_KEY(lease, MIN_LEASE_MS, 86400000)

static int set_user_running(void *config, const char *sub, const char *value, struct err *err)
{
    long count;
    (void)sub;
    int result = ini_parse_int(value, 0, 1000000, &count, err);
    if (!result)
        ((struct settings *)config)->core.user_running = (uint32_t)count;
    return result;
}

#define PATH_KEY(key)                                                                                                  \
    static int set_##key(void *config, const char *sub, const char *value, struct err *err)                            \
    {                                                                                                                  \
        struct settings *s = config;                                                                                   \
        (void)sub;                                                                                                     \
        if (*value != '/' || strlen(value) > MAX_PATH)                                                                 \
            return err_set(err, -EINVAL, "a path must begin with '/' and have at most %d bytes", MAX_PATH);            \
        settings_replace(&s->key, value);                                                                              \
        return 0;                                                                                                      \
    }
PATH_KEY(store)
PATH_KEY(jobs_dir)
PATH_KEY(pki)

static int set_socket_path(char **path, const char *value, struct err *err)
{
    if (*value != '/' || strlen(value) > 107)
        return err_set(err, -EINVAL, "the path of a socket must begin with '/' and have at most 107 bytes");
    settings_replace(path, value);
    return 0;
}

#define SOCKET_KEY(key)                                                                                                \
    static int set_##key(void *config, const char *sub, const char *value, struct err *err)                            \
    {                                                                                                                  \
        (void)sub;                                                                                                     \
        return set_socket_path(&((struct settings *)config)->key, value, err);                                         \
    }
SOCKET_KEY(socket)
SOCKET_KEY(signer)
SOCKET_KEY(host_socket)

static int set_word(char **word, const char *value, const char *what, struct err *err)
{
    if (!*value || strlen(value) > 255 || strpbrk(value, " \t:/"))
        return err_set(err, -EINVAL, "%s is one word", what);
    settings_replace(word, value);
    return 0;
}

static int set_host_user(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    return set_word(&((struct settings *)config)->host_user, value, "the name of a user", err);
}

static int set_admin_group(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    return set_word(&((struct settings *)config)->admin_group, value, "the name of a group", err);
}

static int set_name(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    if (!str_valid_hostname(value))
        return err_set(err, -EINVAL, "not the name of a host: letters, digits, '-' and '.'");
    settings_replace(&((struct settings *)config)->name, value);
    return 0;
}

static int set_listen(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    const char *colon = strrchr(value, ':');
    uint64_t port;
    if (!colon || colon == value || strlen(value) > 300 || !str_to_u64(colon + 1, &port) || port < 1 || port > 65535)
        return err_set(err, -EINVAL, "want HOST:PORT, for example listen = *:7110");
    struct address address;
    if (address_parse(value, &address, err) < 0)
        return -EINVAL;
    settings_replace(&((struct settings *)config)->listen, value);
    return 0;
}

/* For files of before. */
static int set_transport(void *config, const char *sub, const char *value, struct err *err)
{
    (void)config, (void)sub, (void)value;
    return err_set(err, -EINVAL,
                   "all links have TLS now: take this line out, then as root \"eadmin init\", and for each host "
                   "\"eadmin token\" here and \"rsd --join\" there");
}

/* What people write, as days are in all of its defaults. */
static int set_history_days(void *config, const char *sub, const char *value, struct err *err)
{
    (void)config, (void)sub;
    uint64_t days;
    bool number = str_to_u64(value, &days);
    return err_set(err, -EINVAL, "the key is called history_age, and takes a unit: write history_age = %" PRIu64 "d",
                   number ? days : 365);
}

static int set_levels(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    long levels;
    int result = ini_parse_int(value, 1, CORE_MAX_LEVELS, &levels, err);
    if (!result)
        ((struct settings *)config)->core.levels = (int)levels;
    return result;
}

static int set_allocator(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    int allocator = core_allocator_by_name(value);
    if (allocator < 0)
        return err_set(err, -EINVAL, "unknown allocator; known are: %s", core_allocator_names());
    ((struct settings *)config)->core.allocator = (enum core_allocator)allocator;
    return 0;
}

static int set_topology(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    if (strcmp(value, "none") != 0 && strcmp(value, "cube") != 0)
        return err_set(err, -EINVAL, "unknown topology; known are: none cube");
    ((struct settings *)config)->core.topology = *value == 'c' ? TOPOLOGY_CUBE : TOPOLOGY_NONE;
    return 0;
}

static int set_policy(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    int policy = core_policy_by_name(value);
    if (policy < 0)
        return err_set(err, -EINVAL, "unknown policy; known are: %s", core_policy_names());
    ((struct settings *)config)->core.policy = (enum core_policy)policy;
    return 0;
}

static int set_threshold(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    return ini_parse_double(value, 0, 1, &((struct settings *)config)->core.threshold, err);
}

static int set_private_jobs(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    int yes;
    int result = ini_parse_bool(value, &yes, err);
    if (!result)
        ((struct settings *)config)->private_jobs = yes;
    return result;
}

static int set_seed(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    if (!str_to_u64(value, &((struct settings *)config)->core.seed))
        return err_set(err, -EINVAL, "want a number from 0 to 2^64-1; 0 takes another one at each start");
    return 0;
}

/* ---- defaults that follow from others ---- */

static const struct settings *whole(const void *config)
{
    return config;
}

static char *made_hosts(const void *config)
{
    if (whole(config)->configured)
        return mem_strdup(whole(config)->configured);
    char *names = mem_strdup("");
    for (size_t i = 0; i < whole(config)->nhosts; i++) {
        char *longer = mem_format("%s%s%s", names, *names ? " " : "", whole(config)->hosts[i].name);
        free(names);
        names = longer;
    }
    return names;
}

static char *made_name(const void *config)
{
    return mem_strdup(whole(config)->name);
}

static char *made_levels(const void *config)
{
    return mem_format("%d", whole(config)->core.levels);
}

static char *made_allocator(const void *config)
{
    return mem_strdup(core_allocator_name(whole(config)->core.allocator));
}

static char *made_lease(const void *config)
{
    long ms = (long)whole(config)->core.lease_ms;
    return ms % 1000 ? mem_format("%ldms", ms) : mem_format("%lds", ms / 1000);
}

/* ---- the table ---- */

#define ROW(name, set, normal)                                                                                         \
    {                                                                                                                  \
        "elmer", name, set, normal, 0, NULL                                                                            \
    }
#define KEY(name, normal) ROW(#name, set_##name, normal)
#define LIVE_KEY(name, normal)                                                                                         \
    {                                                                                                                  \
        "elmer", #name, set_##name, normal, INI_LIVE, NULL                                                             \
    }
#define BUILT_KEY(name, normal)                                                                                        \
    {                                                                                                                  \
        "elmer", #name, set_##name, normal, INI_BUILT, NULL                                                            \
    }
#define MADE_KEY(section, name, set, normal, made)                                                                     \
    {                                                                                                                  \
        section, name, set, normal, INI_MADE | INI_WORDS, made                                                         \
    }
const struct ini_key settings_keys[] = {
    MADE_KEY("elmer", "listen", set_listen, "none", NULL),
    KEY(transport, NULL),
    BUILT_KEY(pki, ELMER_STATEDIR "/pki"),
    {"elmer", "hosts", settings_set_hosts, "the local host", INI_MADE | INI_WORDS | INI_LIVE_ELSEWHERE, made_hosts},
    MADE_KEY("elmer", "name", set_name, "the host name up to the first dot", made_name),
    {"elmer", "levels", set_levels, "3", INI_MADE | INI_LIVE, made_levels},
    {"elmer", "allocator", set_allocator, "v2", INI_MADE | INI_LIVE, made_allocator},
    LIVE_KEY(policy, "fcfs"),
    KEY(topology, "none"),
    LIVE_KEY(threshold, "0.75"),
    LIVE_KEY(report_interval, "2s"),
    LIVE_KEY(fresh_intervals, "3"),
    LIVE_KEY(settle, "2s"),
    LIVE_KEY(start_timeout, "30s"),
    LIVE_KEY(resend, "2s"),
    LIVE_KEY(kill_grace, "500ms"),
    LIVE_KEY(host_timeout, "30s"),
    {"elmer", "lease", set_lease, "120s", INI_MADE | INI_LIVE, made_lease},
    LIVE_KEY(heartbeat, "5s"),
    LIVE_KEY(minimum_uid, "1000"),
    LIVE_KEY(max_nprocs, "65536"),
    LIVE_KEY(history_jobs, "100000"),
    LIVE_KEY(history_age, "365d"),
    KEY(history_days, NULL),
    LIVE_KEY(private_jobs, "yes"),
    LIVE_KEY(user_running, "0"),
    LIVE_KEY(user_queued, "200000"),
    LIVE_KEY(user_memory, "256"),
    LIVE_KEY(user_connections, "1024"),
    LIVE_KEY(user_request_bytes, "786432"), /* as much as a relayed one may have */
    LIVE_KEY(user_requests, "2000"),
    LIVE_KEY(user_requests_burst, "100000"),
    LIVE_KEY(host_messages, "10000"),
    LIVE_KEY(host_messages_burst,
             "200000"), /* more than one user's burst of requests, and all that a full host says anew */
    KEY(seed, "0"),
    BUILT_KEY(store, ELMER_STATEDIR "/elmer.db"),
    BUILT_KEY(socket, ELMER_RUNDIR "/elmer.sock"),
    BUILT_KEY(host_socket, ELMER_RUNDIR "/elmer-host.sock"),
    KEY(signer, "/run/elmer-ca/sign.sock"),
    KEY(host_user, "elmer-rsd"),
    KEY(admin_group, "elmer-admin"),
    {"elmer", "admin_hosts", settings_set_admin_hosts, "none", INI_MADE | INI_WORDS | INI_LIVE_ELSEWHERE, NULL},
    BUILT_KEY(jobs_dir, ELMER_RSD_RUNDIR "/jobs"),
    MADE_KEY("host *", "cpus", settings_set_host_cpus, "those that its rsd(8) may use", NULL),
    MADE_KEY("host *", "address", settings_set_host_address, "what it has on its link to elmer", NULL),
    INI_END,
};

/* ---- the whole ---- */

static int set_defaults(struct settings *s, struct err *err)
{
    char name[256] = "";
    core_options_default(&s->core);
    s->core.lease_ms = s->core.levels = 0; /* check_times(), and the next */
    s->core.allocator = ALLOCATOR_COUNT;
    if (gethostname(name, sizeof(name) - 1))
        return err_set(err, -errno, "this host has no name: %s", strerror(errno));
    name[strcspn(name, ".")] = 0;
    settings_replace(&s->name, name);
    return ini_defaults(settings_keys, s, err);
}

static void use_local_host(struct loading *loading, struct ini_reading *reading)
{
    struct settings *s = &loading->settings;
    if (!str_valid_hostname(s->name))
        ini_problem(reading, "elmer", "name",
                    "the name of this host, \"%s\", cannot be used: set \"name = ...\" in section [elmer]", s->name);
    settings_add_host(s, s->name);
}

/* In a cube each host has one level, and a job is a mesh. */
static void check_topology(struct settings *s, struct ini_reading *reading)
{
    struct core_options defaults;
    bool cube = s->core.topology == TOPOLOGY_CUBE, sure = !ini_refused(reading, "elmer", "topology");
    core_options_default(&defaults);
    if (!s->core.levels)
        s->core.levels = cube ? 1 : defaults.levels;
    if (s->core.allocator == ALLOCATOR_COUNT)
        s->core.allocator = cube ? ALLOCATOR_CUBE_AFL : defaults.allocator;
    if (sure && !cube && core_allocator_in_cube(s->core.allocator))
        ini_problem(reading, "elmer", "allocator",
                    "allocator = %s places meshes in a hypercube: it needs topology = cube",
                    core_allocator_name(s->core.allocator));
    if (cube && s->core.levels != 1)
        ini_problem(reading, "elmer", "levels", "with topology = cube a processor has one job: levels must be 1");
    if (cube && !ini_refused(reading, "elmer", "hosts") &&
        (s->nhosts > CORE_CUBE_HOSTS || (s->nhosts & (s->nhosts - 1))))
        ini_problem(reading, "elmer", ini_given(reading, "elmer", "hosts") ? "hosts" : "topology",
                    "topology = cube needs a power of two of hosts, at most %d, in the order of their addresses; "
                    "there are %zu",
                    CORE_CUBE_HOSTS, s->nhosts);
}

static void check_times(struct settings *s, struct ini_reading *reading)
{
    bool sure = !ini_refused(reading, "elmer", "heartbeat");
    if (sure && !ini_refused(reading, "elmer", "host_timeout") && s->host_timeout_ms < 2 * s->heartbeat_ms)
        ini_problem(reading, "elmer", ini_given(reading, "elmer", "host_timeout") ? "host_timeout" : "heartbeat",
                    "host_timeout (%ld ms) must be at least twice the heartbeat (%ld ms)", s->host_timeout_ms,
                    s->heartbeat_ms);
    if (!s->core.lease_ms)
        s->core.lease_ms = s->heartbeat_ms > LEASE_MS / LEASE_BEATS ? s->heartbeat_ms * LEASE_BEATS : LEASE_MS;
    if (sure && s->core.lease_ms < LEASE_BEATS * s->heartbeat_ms)
        ini_problem(reading, "elmer", ini_given(reading, "elmer", "lease") ? "lease" : "heartbeat",
                    "lease (%ld ms) must be at least three times the heartbeat (%ld ms)", (long)s->core.lease_ms,
                    s->heartbeat_ms);
    s->core.fresh_ms = (int64_t)s->fresh_intervals * s->report_ms;
}

/* The checks that need more than one key. */
static void check_whole(void *config, struct ini_reading *reading)
{
    struct loading *loading = config;
    if (!loading->hosts_given)
        use_local_host(loading, reading);
    settings_merge_sections(loading, reading);
    settings_mark_admin_hosts(loading, reading);
    check_topology(&loading->settings, reading);
    check_times(&loading->settings, reading);
}

struct relay {
    struct settings *settings;
    const struct ini_watch *watch; /* the caller's, or NULL */
};

static void on_problem(const char *text, void *data)
{
    const struct relay *relay = data;
    relay->watch->problem(text, relay->watch->data);
}

static void on_fault(const char *text, void *data)
{
    const struct relay *relay = data;
    relay->watch->fault(text, relay->watch->data);
}

static void on_given(const struct ini_value *value, void *data)
{
    const struct relay *relay = data;
    if (!value->refused)
        settings_remember(relay->settings, value->key, value->subsection, value->value);
    if (relay->watch && relay->watch->given)
        relay->watch->given(value, relay->watch->data);
}

int settings_load_watched(struct settings *settings, const char *path, bool required, const struct ini_watch *watch,
                          struct err *err)
{
    struct loading loading = {0};
    struct relay relay = {&loading.settings, watch};
    const struct ini_watch through = {.problem = watch && watch->problem ? on_problem : NULL,
                                      .fault = watch && watch->fault ? on_fault : NULL,
                                      .given = on_given,
                                      .data = &relay};
    int result = set_defaults(&loading.settings, err);
    if (!result)
        result = ini_read_all(path, required, settings_keys, check_whole, &loading, &through, err);
    settings_replace(&loading.settings.path, path);
    loading.settings.required = required;
    loading.settings.configured = made_hosts(&loading.settings);
    settings_fini(&loading.sections);
    free(loading.admin_hosts);
    if (result && !(watch && watch->problem))
        settings_fini(&loading.settings);
    else
        *settings = loading.settings;
    return result;
}

int settings_load(struct settings *settings, const char *path, bool required, struct err *err)
{
    return settings_load_watched(settings, path, required, NULL, err);
}

void settings_fini(struct settings *s)
{
    settings_forget_hosts(s, 0);
    free(s->hosts);
    settings_forget_given(s);
    char **texts[] = {&s->path,   &s->listen,      &s->pki,       &s->name,        &s->store,    &s->socket,
                      &s->signer, &s->host_socket, &s->host_user, &s->admin_group, &s->jobs_dir, &s->configured};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        free(*texts[i]);
    *s = (struct settings){0};
}
