/* eadmin_ca.c - init: what root on the queue host does with the CA's files.
 *
 * init: with --hosts, --listen or --now the place of the cluster (eadmin_place.h) -> a process that becomes the user
 * elmer and waits (pair_writer.h) -> the CA, unless there is one -> elmer's key, a request, the CA signs -> that
 * process is told the pair and writes it -> with --now the services start. Each step is skipped or done again when init
 * is repeated. */
#include "config.h"

#include "client/config_check.h"
#include "client/eadmin.h"
#include "client/eadmin_place.h"
#include "client/eadmin_root.h"
#include "client/elmer_names.h"
#include "client/pair_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elmer/settings.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "lib/pki/ca.h"
#include "lib/pki/x509.h"

#define ELMER_USER "elmer"

int eadmin_need_root(void)
{
    if (geteuid() == 0)
        return EXIT_DONE;
    say("only root on the queue host may use the cluster's CA");
    return EXIT_PERMISSION;
}

int eadmin_failed(const struct err *err)
{
    say("%s", err->text);
    return EXIT_REFUSED;
}

const char *eadmin_config_path(const char *config)
{
    return config ? config : ELMER_SYSCONFDIR "/elmer.conf";
}

bool eadmin_load_settings(const char *config, struct settings *settings)
{
    struct err err = ERR_INIT;

    if (settings_load(settings, eadmin_config_path(config), config != NULL, &err) == 0)
        return true;
    say("%s", err.text);
    return false;
}

/* ---- elmer's pair ---- */

static bool names_all(const char *certificate, const struct elmer_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (!pki_names_host(certificate, names->items[i]))
            return false;
    return true;
}

/* There is a pair of this CA, the latest, with these names, and beside it the CA as it is now: its certificate's facts.
 * Read by root, and trusted for nothing else. */
static bool present(const char *pki, const struct ca *ca, const struct elmer_names *names,
                    struct pki_certificate *facts)
{
    uint64_t latest = UINT64_MAX;
    char *certificate = NULL, *key = NULL, *beside = NULL;
    int dir = open(pki, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool sound = dir >= 0 && file_read(dir, "ca.crt", PKI_PEM_MAX, &beside, NULL) == 0 &&
                 strcmp(beside, ca->certificate) == 0 &&
                 file_read(dir, "host.crt", PKI_PEM_MAX, &certificate, NULL) == 0 &&
                 file_read(dir, "host.key", PKI_PEM_MAX, &key, NULL) == 0 &&
                 pki_verify(certificate, ca->certificate, NULL) == 0 && pki_key_fits(key, certificate, NULL) == 0 &&
                 pki_inspect(certificate, facts, NULL) == 0 && facts->end_s > wall_now().ms / 1000 &&
                 ca_counter(ca, &latest, NULL) == 0 && facts->counter >= latest && names_all(certificate, names);

    if (dir >= 0)
        close(dir);
    free(beside);
    free(certificate);
    pki_key_free(key);
    return sound;
}

int eadmin_make_state_dir(const struct passwd *user)
{
    if (mkdir(ELMER_STATEDIR, 0700) == 0 && chown(ELMER_STATEDIR, user->pw_uid, user->pw_gid) == 0)
        return EXIT_DONE;
    if (errno == EEXIST)
        return EXIT_DONE;
    say("cannot make %s for the user %s: %s", ELMER_STATEDIR, user->pw_name, strerror(errno));
    return EXIT_REFUSED;
}

static int issue_pair(struct ca *ca, const struct elmer_names *names, struct pair_writer *writer)
{
    char *key = NULL, *request = NULL, *certificate = NULL;
    struct err err = ERR_INIT;
    int result = pki_key_create(&key, &err);

    if (result == 0)
        result = pki_request_create(key, names->items[0], &request, &err);
    if (result == 0)
        result = ca_issue_elmer(ca, request, names->items, names->count, wall_now().ms, &certificate, &err);
    result = result < 0 ? eadmin_failed(&err) : pair_writer_write(writer, key, certificate, ca->certificate);
    pki_key_free(key);
    free(request);
    free(certificate);
    return result;
}

/* ---- init ---- */

struct init {
    const char *config, *name, *restore;
    struct elmer_names given;
    struct place_wish place;
    bool now;
};
/* What it has made, for the log of what was decided. */
struct made {
    bool ca, renewed, pair;
};

static int parse_init(struct init *init, int argc, char **argv)
{
    static const int takes[] = {OPTION_NAME, OPTION_ADDRESS, OPTION_HOSTS, OPTION_LISTEN,
                                OPTION_NOW,  OPTION_RESTORE, 'c',          0};
    int c;

    while ((c = eadmin_option(argc, argv, "+", takes)) != -1) {
        if (c == 'c')
            init->config = optarg;
        else if (c == OPTION_NAME && (str_valid_hostname(optarg) && strlen(optarg) <= 30))
            init->name = optarg;
        else if (c == OPTION_NAME)
            return usage_error("'%s' is no name for a cluster: at most 30 letters, digits, '-' and '.'", optarg);
        else if (c == OPTION_ADDRESS && !elmer_names_add(&init->given, optarg))
            return usage_error("'%s' is neither a host name nor a numeric address", optarg);
        else if (c == OPTION_HOSTS)
            init->place.hosts = optarg;
        else if (c == OPTION_LISTEN)
            init->place.listen = optarg;
        else if (c == OPTION_NOW)
            init->now = true;
        else if (c == OPTION_RESTORE)
            init->restore = optarg;
        else if (c != OPTION_ADDRESS)
            return common_option(c, argv);
    }
    if (init->restore && (init->config || init->name || init->place.hosts))
        return usage_error("configuration, hosts and the CA's name are those of the backup: --restore goes with "
                           "--listen, --address and --now");
    return optind < argc ? usage_error("unexpected argument '%s'", argv[optind]) : -1;
}

static void say_names(const struct elmer_names *names)
{
    char *all = must(strdup(names->items[0]));

    for (size_t i = 1; i < names->count; i++) {
        char *longer = must(str_format("%s, %s", all, names->items[i]));

        free(all);
        all = longer;
    }
    printf("Elmer has a certificate for %s.\n", all);
    free(all);
}

static const char *port_of(const char *listen)
{
    return listen ? strrchr(listen, ':') + 1 : ADDRESS_PORT;
}

char *eadmin_address(const struct settings *settings)
{
    struct address address;
    bool known =
        settings->listen && address_parse(settings->listen, &address, NULL) == 0 && strcmp(address.host, "*") != 0;
    const char *host = known ? address.host : settings->name, *port = port_of(settings->listen);

    if (strchr(host, ':'))
        return must(str_format("[%s]:%s", host, port));
    return must(strcmp(port, ADDRESS_PORT) == 0 ? strdup(host) : str_format("%s:%s", host, port));
}

static size_t count_others(const struct settings *settings)
{
    size_t count = 0;

    for (size_t i = 0; i < settings->nhosts; i++)
        count += strcmp(settings->hosts[i].name, settings->name) != 0;
    return count;
}

static void say_next_hosts(const struct settings *settings)
{
    size_t count = count_others(settings);
    char *address = eadmin_address(settings);

    if (count > 0)
        printf(
            "Next: eadmin token --uses %zu, and as root on each other host: rsd --join %s - --now, which asks for it\n",
            count, address);
    free(address);
}

static void say_next(const struct settings *settings)
{
    if (!settings->listen)
        printf("Next: put \"listen = %s:7110\" and \"hosts = ...\" into section [elmer] of elmer.conf.\n",
               settings->name);
    puts("Next: systemctl enable elmer, and systemctl restart elmer, which also starts its signer;\n"
         "and systemctl restart rsd, if it runs here and there was a CA before.\n"
         "Then for each workstation: eadmin token.");
}

static int init_pair(struct ca *ca, const struct init *init, const struct settings *settings,
                     struct pair_writer *writer, struct made *made)
{
    struct pki_certificate facts;
    struct elmer_names names = {.count = 0};
    int code = EXIT_DONE;

    elmer_names_add_own(&names, settings);
    for (size_t i = 0; i < init->given.count; i++)
        elmer_names_add(&names, init->given.items[i]);
    if (present(settings->pki, ca, &names, &facts) && init->given.count == 0 &&
        strcmp(facts.name, settings->name) == 0) {
        puts("Elmer has its certificate already; it stays.");
    } else {
        elmer_names_add_earlier(&names, ca, settings->pki);
        code = issue_pair(ca, &names, writer);
        made->pair = code == EXIT_DONE;
        if (code == EXIT_DONE)
            say_names(&names);
    }
    elmer_names_fini(&names);
    return code;
}

static int init_all(const struct init *init, const struct settings *settings, struct pair_writer *writer,
                    struct made *did)
{
    struct ca ca = {0};
    struct err err = ERR_INIT;
    int made = ca_create(CA_DIR, init->name ? init->name : settings->name, wall_now().ms, &err), renewed = 1, code;

    if (made < 0 || ca_open(CA_DIR, &ca, &err) < 0 || ca_configure(&ca, EADMIN_CA_CONFIG, &err) < 0 ||
        (renewed = ca_renew(&ca, wall_now().ms, &err)) < 0) {
        ca_close(&ca);
        return eadmin_failed(&err);
    }
    did->ca = made == 0;
    did->renewed = made != 0 && renewed == 0;
    printf(made == 0      ? "The CA is made: %s. Keep a copy of it in a safe place.\n"
           : renewed == 0 ? "The CA in %s is renewed, with the same key: hosts need nothing. Keep a copy of it.\n"
                          : "There is a CA already, in %s; it stays.\n",
           CA_DIR);
    code = init_pair(&ca, init, settings, writer, did);
    if (code == EXIT_DONE)
        eadmin_certify_ticket_key(&ca, settings->name);
    if (code == EXIT_DONE && !init->now)
        say_next(settings);
    ca_close(&ca);
    return code;
}

const struct passwd *eadmin_elmer_user(void)
{
    const struct passwd *user = getpwnam(ELMER_USER);

    if (user && user->pw_uid != 0)
        return user;
    say("there is no user " ELMER_USER ": run systemd-sysusers, then this again");
    return NULL;
}

/* The writer first: what root's process reads after that it does not have. */
static int init_with_writer(const struct init *init, const struct settings *settings, struct made *made)
{
    const struct passwd *user = eadmin_elmer_user();
    struct pair_writer writer;
    int code, ended;

    if (!user)
        return EXIT_REFUSED;
    code = eadmin_make_state_dir(user);
    if (code == EXIT_DONE)
        code = pair_writer_start(&writer, user, settings->pki);
    if (code != EXIT_DONE)
        return code;
    code = init_all(init, settings, &writer, made);
    ended = pair_writer_end(&writer);
    return code == EXIT_DONE ? ended : code;
}

/* A host of another cluster begins none by mistake. With a CA it is a queue host already, which is to go on. */
static int look_for_cluster(const struct init *init, const struct settings *settings)
{
    bool begins = init->place.hosts || init->place.listen || init->now;

    if (!begins || init->restore || access(CA_DIR "/ca.crt", F_OK) == 0)
        return EXIT_DONE;
    return place_is_free(ELMER_SYSCONFDIR "/rsd.conf", settings->name);
}

/* A word is added behind the others. */
static char *with_word(char *text, bool said, const char *word, const char *value)
{
    char *longer = said ? must(str_format("%s%s%s%s", text, *text ? ", " : "", word, value)) : text;

    if (said)
        free(text);
    return longer;
}

/* Where elmer does not run it is told nothing, and nobody is troubled with that: it is not there yet. */
static void note_init(const struct init *init, const struct settings *settings, const struct made *made)
{
    char *text = must(strdup(""));

    /* The longest is the last: a row has so much room. */
    text = with_word(text, made->ca, "a new CA", "");
    text = with_word(text, made->renewed, "the CA is renewed", "");
    text = with_word(text, made->pair, "elmer has a new certificate", "");
    text = with_word(text, init->restore != NULL, "from ", init->restore ? init->restore : "");
    text = with_word(text, init->place.listen != NULL, "listen = ", init->place.listen ? init->place.listen : "");
    text = with_word(text, init->place.hosts != NULL, "hosts = ", init->place.hosts ? init->place.hosts : "");
    if (*text && (init->now || access(settings->socket, F_OK) == 0))
        eadmin_note(init->restore ? "restored" : "initialised", "", text);
    free(text);
}

static int init_in_order(const struct init *init, struct settings *settings)
{
    struct made made = {.ca = false};
    bool place = init->place.hosts || init->place.listen || init->now || init->restore, required = init->config != NULL;
    const char *config = eadmin_config_path(init->config);
    struct place_undo undo = {NULL};
    int code = look_for_cluster(init, settings);

    if (code == EXIT_DONE && place)
        code = place_cluster(&init->place, config, required, settings, &undo);
    if (code == EXIT_DONE)
        code = init_with_writer(init, settings, &made);
    if (code == EXIT_DONE && init->now)
        code = config_check_elmer(config, required, NULL);
    if (code != EXIT_DONE)
        place_undo(&undo);
    place_undo_fini(&undo);
    if (code == EXIT_DONE && init->now)
        code = place_start();
    if (code == EXIT_DONE)
        note_init(init, settings, &made);
    if (code == EXIT_DONE && init->now)
        say_next_hosts(settings);
    return code;
}

/* All that was given, and the port of the lost host, which hosts go on to try. */
static void say_again(const struct init *init, const struct settings *settings)
{
    bool any = settings->listen && strncmp(settings->listen, "*:", 2) == 0;
    const char *port = port_of(settings->listen), *name = settings->name ? settings->name : "ADDRESS";
    char *again =
        init->place.listen
            ? must(str_format("eadmin init --listen %s", init->place.listen))
            : must(str_format("eadmin init --listen %s%s%s", any ? "'*'" : name,
                              strcmp(port, ADDRESS_PORT) == 0 ? "" : ":", strcmp(port, ADDRESS_PORT) == 0 ? "" : port));

    for (size_t i = 0; i < init->given.count; i++) {
        char *longer = must(str_format("%s --address %s", again, init->given.items[i]));

        free(again);
        again = longer;
    }
    say("the backup is restored, but elmer is not set up yet. Correct the error above, then run: %s%s", again,
        init->now ? " --now" : "");
    free(again);
}

static int restore_and_init(const struct init *init, struct settings *settings)
{
    int code = init->restore ? eadmin_restore(init->restore) : EXIT_DONE;

    if (code != EXIT_DONE)
        return code;
    code = eadmin_load_settings(init->config, settings) ? init_in_order(init, settings) : EXIT_REFUSED;
    if (code != EXIT_DONE && init->restore)
        say_again(init, settings);
    return code;
}

int eadmin_init(int argc, char **argv)
{
    struct init init = {.config = NULL};
    struct settings settings = {0};
    int code = parse_init(&init, argc, argv);

    init.place.here = init.restore != NULL;
    umask(022); /* elmer reads the directories that are made; what is secret says so itself */
    if (code < 0 && (code = eadmin_need_root()) == EXIT_DONE)
        code = restore_and_init(&init, &settings);
    settings_fini(&settings);
    elmer_names_fini(&init.given);
    return code == EXIT_DONE ? finish_output(code) : code;
}
