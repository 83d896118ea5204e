/* eadmin.c - for administrators: the cluster's CA, hosts, held jobs. */
#include "config.h"

#include "client/eadmin.h"

#include <string.h>

static const struct option_row options[] = {
    {OPTION_HOSTS, "hosts", "NAME,..",
     "init: the hosts of the cluster, for elmer.conf.d/50-init.conf; token: who may use it\n"
     "(default: any host of the configuration)"},
    {OPTION_LISTEN, "listen", "ADDRESS", "by which the other hosts reach this one (default: its name, port 7110)"},
    {OPTION_NOW, "now", NULL, "check the configuration and start the services, now and at each boot"},
    {OPTION_RESTORE, "restore", "FILE", "go on with what is in a backup, on this host: the one that it is of is lost"},
    {OPTION_FORCE, "force", NULL, "replace a FILE that is there"},
    {OPTION_USES, "uses", "N", "how many hosts may join with the token (default: 1)"},
    {OPTION_NAME, "name", "NAME", "of the cluster, in its CA (default: the queue host's)"},
    {OPTION_ADDRESS, "address", "NAME|IP", "another name by which workstations reach elmer"},
    {OPTION_VALID, "valid", "TIME", "how long it is good, such as 30m or 1d (default: 1h)"},
    {OPTION_REASON, "reason", "TEXT", "why a host is drained, for users and administrators"},
    {OPTION_WAIT, "wait", NULL, "until no job has a processor there"},
    {OPTION_KILL_AFTER, "kill-after", "TIME", "wait, and end what is still there after TIME, such as 1h"},
    {OPTION_SINCE, "since", "TIME",
     "ago, such as 2h or 1d, or a moment: 2026-11-24, \"2026-11-24 08:00\", 08:00, yesterday"},
    {OPTION_JSON, "json", NULL, "JSON, schema elmer.hosts/1, elmer.settings/1, elmer.log/1, elmer.doctor/1"},
    {OPTION_USER, "user", "USER",
     "check as the daemon would that runs as USER (default: elmer; of rsd.conf its user)\n"
     "doctor, as root: whose jobs are tried (default: who has called sudo)"},
    {OPTION_NO_JOBS, "no-jobs", NULL, "doctor: try no jobs"},
    {OPTION_DEFAULT, "default", NULL, "show what holds without a file"},
    {'c', "config", "FILE", "read FILE instead of " ELMER_SYSCONFDIR "/elmer.conf"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "eadmin",
    "Usage: eadmin init [--hosts NAME,..] [--listen ADDRESS] [--now] [--name NAME] [--address NAME|IP]... [-c FILE]\n"
    "       eadmin init --restore FILE [--listen ADDRESS] [--address NAME|IP]... [--now]\n"
    "       eadmin backup FILE [--force] [-c FILE]\n"
    "       eadmin token [--uses N] [--hosts NAME,..] [--valid TIME] [-c FILE]\n"
    "       eadmin hosts [--json]\n"
    "       eadmin doctor [--user USER] [--no-jobs] [--json] [HOST...]\n"
    "       eadmin drain HOST... [--reason TEXT] [--wait] [--kill-after TIME]\n"
    "       eadmin resume|remove HOST...\n"
    "       eadmin shutdown|reboot HOST [--reason TEXT] [--kill-after TIME]\n"
    "       eadmin hold|release ID...\n"
    "       eadmin set allocator|policy VALUE|default\n"
    "       eadmin show [--json]\n"
    "       eadmin log [--since TIME] [--json]\n"
    "       eadmin config check [--user USER] [FILE]\n"
    "       eadmin config show [--default] [FILE]\n"
    "Administer the cluster. init, backup and token are for root on the queue host.\n"
    "\n"
    "  init        make the cluster's CA and elmer's certificate; what is there stays\n"
    "  backup      put queue, configuration and CA into FILE while elmer runs\n"
    "  token       print a word that lets a host join, with rsd --join\n"
    "  hosts       show the hosts, their states and until when their certificates are good\n"
    "  doctor      look whether the cluster is well, try jobs on its hosts, and say what is to be done\n"
    "  drain       give hosts no new jobs; resume: give them some again\n"
    "  remove      revoke the certificates of hosts and cut them off; their jobs end\n"
    "  shutdown    drain a host and wait; then systemctl poweroff, if it is this one, else say so; reboot: likewise\n"
    "  hold        keep queued jobs from starting; release: let them\n"
    "  set         decide with another allocator or policy from now on; default: that of elmer.conf\n"
    "  show        show which are in force, and which there are\n"
    "  log         what persons have decided: who has ended, held, moved jobs, drained hosts, and from where\n"
    "  config      of elmer.conf and rsd.conf, or FILE, with fragments in FILE.d: check whether a daemon can\n"
    "              work with it, or show every key, its value and where that comes from\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job, 4 elmer not reachable, 5 not permitted, 6 not now.\n",
};

static const struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"init", eadmin_init},   {"token", eadmin_token},   {"hosts", eadmin_hosts},       {"remove", eadmin_remove},
    {"drain", eadmin_drain}, {"resume", eadmin_resume}, {"hold", eadmin_hold},         {"release", eadmin_release},
    {"log", eadmin_log},     {"backup", eadmin_backup}, {"shutdown", eadmin_shutdown}, {"reboot", eadmin_reboot},
    {"set", eadmin_set},     {"show", eadmin_show},     {"config", eadmin_config},     {"doctor", eadmin_doctor},
};

static bool is_taken(const struct option_row *row, const int *takes)
{
    while (*takes && *takes != row->c)
        takes++;
    return *takes || row->c == 'h' || row->c == 'V';
}

int eadmin_option(int argc, char **argv, const char *order, const int *takes)
{
    static struct option_row rows[sizeof(options) / sizeof(*options)];
    static const int *chosen;
    size_t count = 0;

    if (chosen != takes) {
        for (const struct option_row *row = options; row->c; row++)
            if (is_taken(row, takes))
                rows[count++] = *row;
        rows[count] = (struct option_row){0, NULL, NULL, NULL};
        chosen = takes;
    }
    return options_next(argc, argv, order, rows);
}

int main(int argc, char **argv)
{
    static const struct option_row common[] = {OPTION_ROWS_END};
    int c;

    command_begin(&command);
    c = options_next(argc, argv, "+", common);
    if (c != -1)
        return common_option(c, argv);
    if (optind == argc)
        return usage_error("what is to be done is missing");
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        if (strcmp(argv[optind], verbs[i].name) == 0) {
            int first = optind;

            optind = 0; /* it begins anew, and each verb says itself whether options may follow names */
            return verbs[i].run(argc - first, argv + first);
        }
    }
    return usage_error("'%s' is no verb of eadmin", argv[optind]);
}
