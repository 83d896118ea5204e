/* config.c - the keys of rsd.conf. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/config/ini.h"
#include "lib/base/str.h"
#include "rsd/config.h"

/* RUNDIR/jobs/JOB.ATTEMPT is PVM_TMP, which may have 92 bytes. */
enum { RUNDIR_MAX = 55 };

/* Less than 1 % is less than a login takes; a piece of less than 10 ms lets nothing be done in it. */
enum { RESERVE_MIN = 1, RESERVE_MAX = 20, RESERVE_MS_MIN = 10, RESERVE_MS_MAX = 1000 };

/* More would leave the host without memory for anything else. */
enum { TMPDIR_PERCENT_MAX = 50 };

/* Who is in one of these can become root on this host, or read what others may not. */
#define DENY_GROUPS "sudo wheel docker lxd disk libvirt adm"
enum { NAME_BYTES = 255 };

static const char *const mode_names[RSD_MODE_COUNT] = {"auto", "rt", "idle", "none"};

const char *rsd_mode_name(enum rsd_mode mode)
{
    return mode < RSD_MODE_COUNT ? mode_names[mode] : "?";
}

void rsd_config_helpers(const struct rsd_config *config, char text[RSD_HELPERS][RSD_HELPER_BYTES])
{
    snprintf(text[0], sizeof(text[0]), "ELMER_PVMD=%s", config->pvmd);
    snprintf(text[1], sizeof(text[1]), "ELMER_PVM_AGENT=%s", config->agent);
}

static int set_text(char *out, size_t size, const char *value, struct err *err)
{
    if (!value[0])
        return err_set(err, -EINVAL, "it is empty: give it a value or leave the line out");
    if (strlen(value) >= size)
        return err_set(err, -EINVAL, "it is longer than %zu bytes", size - 1);
    snprintf(out, size, "%s", value);
    return 0;
}

static int set_path(char *out, size_t size, const char *value, struct err *err)
{
    if (value[0] != '/')
        return err_set(err, -EINVAL, "a path that begins with / is needed");
    return set_text(out, size, value, err);
}

static bool names_port(const char *address)
{
    const char *colon = strrchr(address, ':');
    uint64_t port;
    return colon && colon != address && str_to_u64(colon + 1, &port) && port > 0 && port <= 65535;
}

/* HOST:PORT (also [ADDRESS]:PORT), several of them with blanks or commas between, or /path. */
static int set_elmer(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    char words[sizeof(config->elmer)], kept[sizeof(config->elmer)] = "", *rest = words;
    size_t count = 0, length = 0;
    int result = set_text(words, sizeof(words), value, err);
    (void)subsection;
    if (result == 0 && value[0] == '/')
        return set_text(config->elmer, sizeof(config->elmer), value, err);
    for (char *word; result == 0 && (word = strsep(&rest, ", \t"));) {
        if (!*word)
            continue;
        if (!names_port(word))
            result = err_set(err, -EINVAL, "HOST:PORT of the queue daemon is needed, or the path of its socket");
        else if (count++ == RSD_ELMER_MAX)
            result = err_set(err, -EINVAL, "at most %d addresses can be given", RSD_ELMER_MAX);
        else /* it is no longer than value */
            length += (size_t)snprintf(kept + length, sizeof(kept) - length, "%s%s", length ? " " : "", word);
    }
    return result < 0 ? result : set_text(config->elmer, sizeof(config->elmer), kept, err);
}

bool rsd_config_has_elmer(const struct rsd_config *config, const char *address)
{
    size_t length = strlen(address);
    for (const char *at = config->elmer; (at = strstr(at, address)); at += length)
        if ((at == config->elmer || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* For files of before. */
static int set_transport(void *data, const char *subsection, const char *value, struct err *err)
{
    (void)data, (void)subsection, (void)value;
    return err_set(err, -EINVAL,
                   "all links have TLS now: take this line out, then \"eadmin token\" on the queue host and \"rsd "
                   "--join\" here; on the queue host itself take \"elmer\" out instead of joining");
}

static int set_name(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    if (!str_valid_hostname(value))
        return err_set(err, -EINVAL, "a host name is needed: letters, digits, '-' and '.'");
    return set_text(config->name, sizeof(config->name), value, err);
}

static int set_mode(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    for (int i = 0; i < RSD_MODE_COUNT; i++) {
        if (strcmp(value, mode_names[i]) == 0) {
            config->mode = (enum rsd_mode)i;
            return 0;
        }
    }
    return err_set(err, -EINVAL, "auto, rt, idle or none is needed");
}

/* 5%, or 5% of 100ms. */
static int set_rt_reserve(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    unsigned percent = 0, ms = 0;
    int share = 0, whole = 0, length = (int)strlen(value);
    bool read;
    (void)subsection;
    read = strspn(value, "0123456789") > 0 &&
           sscanf(value, "%3u %%%n of %4u ms%n", &percent, &share, &ms, &whole) >= 1 &&
           (share == length || whole == length);
    if (!read || percent < RESERVE_MIN || percent > RESERVE_MAX)
        return err_set(err, -EINVAL,
                       "a share of %d%% to %d%% is needed, such as 5%%, or 5%% of 100ms; leave the line out to leave "
                       "the kernel as it is",
                       RESERVE_MIN, RESERVE_MAX);
    if (whole == length && (ms < RESERVE_MS_MIN || ms > RESERVE_MS_MAX))
        return err_set(err, -EINVAL, "the share can be one of %dms to %dms", RESERVE_MS_MIN, RESERVE_MS_MAX);
    config->rt_reserve = percent;
    config->rt_reserve_ms = whole == length ? ms : 0;
    return 0;
}

/* 10%, 500M, 4G or none. */
static int set_tmpdir_size(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    unsigned long long number = 0;
    char unit = 0, more;
    bool none = strcmp(value, "none") == 0;
    (void)subsection;
    if (!none && (strspn(value, "0123456789") == 0 || sscanf(value, "%7llu%c%c", &number, &unit, &more) != 2 ||
                  number == 0 || !strchr("%MG", unit) || (unit == '%' && number > TMPDIR_PERCENT_MAX)))
        return err_set(err, -EINVAL, "a part of the memory up to %d%% is needed, or a size such as 500M or 4G, or none",
                       TMPDIR_PERCENT_MAX);
    config->tmpdir_percent = unit == '%' ? (unsigned)number : 0;
    config->tmpdir_bytes = unit == 'M' ? number << 20 : unit == 'G' ? number << 30 : 0;
    return 0;
}

/* 80%, 500M, 6G or all. */
static int set_memory(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    unsigned long long number = 100;
    char unit = '%', more;
    (void)subsection;
    if (strcmp(value, "all") != 0 &&
        (strspn(value, "0123456789") == 0 || sscanf(value, "%7llu%c%c", &number, &unit, &more) != 2 || number == 0 ||
         !strchr("%MG", unit) || (unit == '%' && number > 100)))
        return err_set(err, -EINVAL,
                       "a part of the memory up to 100%% is needed, or a size such as 500M or 6G, or all");
    config->memory_percent = unit == '%' ? (unsigned)number : 0;
    config->memory_bytes = unit == 'M' ? number << 20 : unit == 'G' ? number << 30 : 0;
    return 0;
}

static int set_minimum_uid(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    long number = 0;
    int result = ini_parse_int(value, 0, UINT32_MAX - 1, &number, err);
    (void)subsection;
    if (result == 0)
        config->minimum_uid = (uint32_t)number;
    return result;
}

/* Names with commas or blanks between, or none. They go into the environment of supervisors. */
static int set_names(char *out, size_t size, const char *value, struct err *err)
{
    size_t used = 0;
    if (strlen(value) >= size)
        return err_set(err, -EINVAL, "it is longer than %zu bytes", size - 1);
    for (const char *at = value, *end; *at; at = end) {
        size_t length = strcspn(at, " \t,");
        end = at + length + strspn(at + length, " \t,");
        if (length == 0)
            continue;
        if (length > NAME_BYTES || memchr(at, ':', length) || memchr(at, '/', length) || *at == '-')
            return err_set(err, -EINVAL, "\"%.*s\" can be no name", (int)(length < 80 ? length : 80), at);
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? " " : "", (int)length, at);
    }
    if (used == 0)
        return err_set(err, -EINVAL, "names are needed, with blanks or commas between, or none");
    if (strcmp(out, "none") == 0)
        out[0] = 0;
    return 0;
}

static int set_deny_users(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_names(config->deny_users, sizeof(config->deny_users), value, err);
}

static int set_deny_groups(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_names(config->deny_groups, sizeof(config->deny_groups), value, err);
}

static int set_vouch(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_names(config->vouch, sizeof(config->vouch), value, err);
}

static int set_vouch_users(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_names(config->vouch_users, sizeof(config->vouch_users), value, err);
}

#define LIMIT_KEY(key, min, max)                                                                                       \
    static int set_##key(void *data, const char *subsection, const char *value, struct err *err)                       \
    {                                                                                                                  \
        struct rsd_config *config = data;                                                                              \
        (void)subsection;                                                                                              \
        return ini_parse_int(value, min, max, &config->key, err);                                                      \
    }
LIMIT_KEY(user_connections, 1, 1000000)
LIMIT_KEY(user_requests, 1, 1000000)
LIMIT_KEY(user_requests_burst, 10, 100000000)

static int set_cgroup_root(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->cgroup_root, sizeof(config->cgroup_root), value, err);
}

static int set_user_slice(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->user_slice, sizeof(config->user_slice), value, err);
}

static int set_user(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_text(config->user, sizeof(config->user), value, err);
}

static int set_rundir(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    if (strlen(value) > RUNDIR_MAX)
        return err_set(err, -EINVAL, "at most %d bytes are possible: the paths of sockets below it are limited",
                       RUNDIR_MAX);
    return set_path(config->rundir, sizeof(config->rundir), value, err);
}

static int set_proc_stat(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->proc_stat, sizeof(config->proc_stat), value, err);
}

static int set_pki(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->pki, sizeof(config->pki), value, err);
}

static int set_tickets(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    bool require = strcmp(value, "require") == 0;
    (void)subsection;
    if (!require && strcmp(value, "accept") != 0)
        return err_set(err, -EINVAL,
                       "require is needed, or accept, which runs jobs without ticket too until all hosts have a ticket "
                       "key");
    config->tickets_required = require;
    return 0;
}

static int set_ticket_dir(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->ticket_dir, sizeof(config->ticket_dir), value, err);
}

static int set_ticket_program(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->ticket_program, sizeof(config->ticket_program), value, err);
}

static int set_supervisor(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->supervisor, sizeof(config->supervisor), value, err);
}

static int set_network(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->network, sizeof(config->network), value, err);
}

static int set_spawn(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->spawn, sizeof(config->spawn), value, err);
}

static int set_escapes(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->escapes, sizeof(config->escapes), value, err);
}

static int set_pvmd(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->pvmd, sizeof(config->pvmd), value, err);
}

static int set_agent(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    return set_path(config->agent, sizeof(config->agent), value, err);
}

static int set_account(void *data, const char *subsection, const char *value, struct err *err)
{
    struct rsd_config *config = data;
    (void)subsection;
    if (strcmp(value, "none") != 0)
        return set_path(config->account, sizeof(config->account), value, err);
    config->account[0] = 0;
    return 0;
}

#ifdef HAVE_PAM
#define ACCOUNT ELMER_LIBEXECDIR "/elmer-account"
#else
#define ACCOUNT "none"
#endif

static char *made_name(const void *config)
{
    return strdup(((const struct rsd_config *)config)->name);
}

#define KEY(name, normal, flags)                                                                                       \
    {                                                                                                                  \
        "rsd", #name, set_##name, normal, flags, NULL                                                                  \
    }
const struct ini_key rsd_config_keys[] = {
    KEY(elmer, ELMER_RUNDIR "/elmer-host.sock", INI_BUILT),
    KEY(transport, NULL, 0),
    KEY(pki, ELMER_RSD_STATEDIR "/pki", INI_BUILT),
    {"rsd", "name", set_name, "the host name up to the first dot", INI_MADE | INI_WORDS, made_name},
    KEY(mode, "auto", 0),
    KEY(rt_reserve, "the kernel is left as it is", INI_MADE | INI_WORDS),
    KEY(memory, "all", 0),
    KEY(tmpdir_size, "10%", 0),
    KEY(minimum_uid, "1000", 0),
    KEY(deny_users, "none", 0),
    KEY(deny_groups, DENY_GROUPS, 0),
    KEY(user_connections, "1024", 0),
    KEY(user_requests, "2000", 0),
    KEY(user_requests_burst, "100000", 0),
    KEY(cgroup_root, "found", INI_MADE | INI_WORDS),
    KEY(user_slice, "found", INI_MADE | INI_WORDS),
    KEY(user, "elmer-rsd", 0),
    KEY(rundir, ELMER_RSD_RUNDIR, INI_BUILT),
    KEY(proc_stat, "/proc/stat", 0),
    KEY(tickets, "require", 0),
    KEY(vouch, "all", 0),
    KEY(vouch_users, "all", 0),
    KEY(ticket_dir, ELMER_TICKET_DIR, INI_BUILT),
    KEY(ticket_program, ELMER_LIBEXECDIR "/elmer-tickets", INI_BUILT | INI_PROGRAM),
    KEY(supervisor, ELMER_LIBEXECDIR "/elmer-supervisor", INI_BUILT | INI_PROGRAM),
    KEY(network, ELMER_LIBEXECDIR "/elmer-rsd-net", INI_BUILT | INI_PROGRAM),
    KEY(spawn, ELMER_LIBEXECDIR "/elmer-spawn", INI_BUILT | INI_PROGRAM),
    KEY(escapes, ELMER_LIBEXECDIR "/elmer-escapes", INI_BUILT | INI_PROGRAM),
    KEY(pvmd, ELMER_PVMD, INI_BUILT | INI_HELPER),
    KEY(agent, ELMER_LIBEXECDIR "/elmer-pvm-agent", INI_BUILT | INI_HELPER),
    KEY(account, ACCOUNT, INI_BUILT | INI_PROGRAM),
    INI_END,
};

void rsd_config_default(struct rsd_config *config)
{
    /* Of no users, until main() has looked for elmer-sup and elmer-jobs. */
    *config = (struct rsd_config){.supervisor_uid = 65533, .jobs_uid = 65531, .jobs_gid = 65531};
    if (gethostname(config->name, sizeof(config->name)) < 0)
        config->name[0] = 0;
    config->name[sizeof(config->name) - 1] = 0;
    config->name[strcspn(config->name, ".")] = 0;
    if (ini_defaults(rsd_config_keys, config, NULL) < 0)
        abort(); /* whoever has built it has chosen a path that is too long */
}

/* The check that needs more than a value. */
static void check_whole(void *data, struct ini_reading *reading)
{
    const struct rsd_config *config = data;
    if (!str_valid_hostname(config->name))
        ini_problem(reading, "rsd", "name", "this host has no usable name: say name = ...");
}

int rsd_config_read(struct rsd_config *config, const char *path, bool missing_ok, const struct ini_watch *watch,
                    struct err *err)
{
    return ini_read_all(path, !missing_ok, rsd_config_keys, check_whole, config, watch, err);
}
