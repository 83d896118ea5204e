/* settings_hosts.c - what elmer.conf says of hosts: "hosts" in section [elmer], and the sections [host NAME]. */
#include "config.h"

#include "elmer/settings_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/memory/mem.h"

enum { MAX_HOSTS = 65535 };

static struct host_settings *find_host(struct settings *s, const char *name)
{
    for (size_t i = 0; i < s->nhosts; i++)
        if (strcmp(s->hosts[i].name, name) == 0)
            return &s->hosts[i];
    return NULL;
}

struct host_settings *settings_add_host(struct settings *s, const char *name)
{
    size_t capacity = s->nhosts;
    s->hosts = mem_grow(s->hosts, &capacity, s->nhosts + 1, sizeof(*s->hosts));
    s->hosts[s->nhosts] = (struct host_settings){.name = mem_strdup(name)};
    return &s->hosts[s->nhosts++];
}

void settings_new_host(struct settings *s, const char *name)
{
    settings_add_host(s, name);
}

const struct host_settings *settings_host(const struct settings *s, const char *name)
{
    return find_host((struct settings *)(uintptr_t)s, name);
}

void settings_forget_hosts(struct settings *s, size_t nhosts)
{
    while (s->nhosts > nhosts) {
        struct host_settings *host = &s->hosts[--s->nhosts];
        free(host->name);
        free(host->address);
        free(host->cpus);
    }
}

void settings_take_hosts(struct settings *running, const struct settings *next)
{
    for (size_t i = 0; i < running->nhosts; i++) {
        const struct host_settings *host = settings_host(next, running->hosts[i].name);
        running->hosts[i].admin = host && host->admin;
    }
    for (size_t i = 0; i < next->nhosts; i++) {
        const struct host_settings *from = &next->hosts[i];
        if (find_host(running, from->name))
            continue;
        struct host_settings *host = settings_add_host(running, from->name);
        host->admin = from->admin;
        host->address = from->address ? mem_strdup(from->address) : NULL;
        host->cpus = from->cpus ? mem_copy(from->cpus, (size_t)from->ncpus, sizeof(*from->cpus)) : NULL;
        host->ncpus = from->ncpus;
    }
    settings_replace(&running->configured, next->configured);
}

/* A later file names all of them anew. */
static void forget_hosts(struct loading *loading)
{
    settings_forget_hosts(&loading->settings, 0);
    loading->hosts_given = false;
}

int settings_set_hosts(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    struct loading *loading = config;
    char *words = mem_strdup(value), *rest = words;
    int result = 0;
    forget_hosts(loading);
    for (char *word; !result && (word = strsep(&rest, " \t,"));) {
        if (!*word)
            continue;
        if (!str_valid_hostname(word))
            result = err_set(err, -EINVAL, "\"%s\" is not the name of a host: letters, digits, '-' and '.'", word);
        else if (find_host(&loading->settings, word))
            result = err_set(err, -EINVAL, "host \"%s\" is named twice", word);
        else if (loading->settings.nhosts == MAX_HOSTS)
            result = err_set(err, -EINVAL, "more than %d hosts", MAX_HOSTS);
        else
            settings_add_host(&loading->settings, word);
    }
    free(words);
    if (!result && !loading->settings.nhosts)
        result = err_set(err, -EINVAL, "no host named; leave the key out to manage the local host alone");
    if (result)
        forget_hosts(loading);
    loading->hosts_given = !result;
    return result;
}

int settings_set_admin_hosts(void *config, const char *sub, const char *value, struct err *err)
{
    (void)sub;
    (void)err;
    settings_replace(&((struct loading *)config)->admin_hosts, value);
    return 0;
}

void settings_mark_admin_hosts(struct loading *loading, struct ini_reading *reading)
{
    char *rest = loading->admin_hosts;
    if (ini_refused(reading, "elmer", "hosts"))
        return;
    for (char *word; (word = strsep(&rest, " \t,"));) {
        struct host_settings *host = find_host(&loading->settings, word);
        if (host)
            host->admin = true;
        else if (*word)
            ini_problem(reading, "elmer", "admin_hosts",
                        "admin_hosts: \"%s\" is no host of the cluster: add it to \"hosts = ...\"", word);
    }
}

static struct host_settings *section(void *config, const char *name)
{
    struct settings *s = &((struct loading *)config)->sections;
    struct host_settings *host = find_host(s, name);
    return host ? host : settings_add_host(s, name);
}

int settings_set_host_address(void *config, const char *sub, const char *value, struct err *err)
{
    struct host_settings *host = section(config, sub);
    struct in_addr address;
    if (inet_pton(AF_INET, value, &address) == 1) {
        settings_replace(&host->address, value);
        return 0;
    }
    free(host->address);
    host->address = NULL;
    (void)err_set(err, -EINVAL,
                  "no numeric IPv4 address, such as 192.0.2.7, so the host has that of its link to elmer: correct this "
                  "line and restart elmer, or take it out");
    return INI_LEFT_OUT;
}

int settings_set_host_cpus(void *config, const char *sub, const char *value, struct err *err)
{
    struct host_settings *host = section(config, sub);
    size_t capacity = 0;
    int count = 0, *cpus = NULL, result = 0;
    char *words = mem_strdup(value), *rest = words;
    for (char *word; !result && (word = strsep(&rest, ", \t"));) {
        uint64_t first, last;
        if (!*word)
            continue;
        char *dash = strchr(word, '-');
        if (dash)
            *dash++ = 0;
        if (!str_to_u64(word, &first) || !str_to_u64(dash ? dash : word, &last) || first > last || last > 65535)
            result = err_set(err, -EINVAL, "want CPU numbers, for example 0,1 or 0-3");
        else if (count && first <= (uint64_t)cpus[count - 1])
            result = err_set(err, -EINVAL, "CPU numbers must increase");
        else if ((uint64_t)count + last - first + 1 > CORE_MAX_CPUS)
            result = err_set(err, -EINVAL, "more than %d CPUs", CORE_MAX_CPUS);
        for (; !result && first <= last; first++) {
            cpus = mem_grow(cpus, &capacity, (size_t)count + 1, sizeof(*cpus));
            cpus[count++] = (int)first;
        }
    }
    free(words);
    if (!result && !count)
        result = err_set(err, -EINVAL, "no CPU named; leave the key out to use all of them");
    if (result) {
        free(cpus);
        return result;
    }
    free(host->cpus);
    host->cpus = cpus;
    host->ncpus = count;
    return 0;
}

static void no_such_host(const struct loading *loading, struct ini_reading *reading, const char *section)
{
    if (!ini_refused(reading, "elmer", "hosts"))
        ini_problem(reading, section, ini_given(reading, section, "cpus") ? "cpus" : "address",
                    "section [%s]: no such host: %s", section,
                    loading->hosts_given ? "add it to \"hosts = ...\" in section [elmer], or remove the section"
                                         : "without \"hosts = ...\" there is only the local host");
}

void settings_merge_sections(struct loading *loading, struct ini_reading *reading)
{
    for (size_t i = 0; i < loading->sections.nhosts; i++) {
        struct host_settings *from = &loading->sections.hosts[i], *to = find_host(&loading->settings, from->name);
        char section[300];
        snprintf(section, sizeof(section), "host %s", from->name);
        if (!to) {
            no_such_host(loading, reading, section);
            continue;
        }
        to->cpus = from->cpus;
        to->ncpus = from->ncpus;
        to->address = from->address;
        from->cpus = NULL;
        from->address = NULL;
    }
}
