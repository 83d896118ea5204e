/* eadmin_token.c - a word that lets hosts join, out of the CA's files. */
#include "config.h"

#include "client/eadmin.h"
#include "client/eadmin_root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/settings.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/config/ini.h"
#include "lib/pki/ca.h"
#include "lib/pki/token.h"
#include "lib/pki/tokens.h"

#define TOKEN_MS     3600000L
#define TOKEN_MAX_MS (30L * 86400000)

struct token_request {
    const char *config;
    const char **hosts;
    size_t nhosts;
    long uses, valid_ms;
};

/* Splits value, which the caller keeps. */
static bool parse_hosts(struct token_request *request, char *value)
{
    for (char *name; (name = strsep(&value, ", "));) {
        if (!*name)
            continue;
        if (!str_valid_hostname(name)) {
            usage_error("'%s' is not the name of a host", name);
            return false;
        }
        request->hosts = must(reallocarray(request->hosts, request->nhosts + 1, sizeof(*request->hosts)));
        request->hosts[request->nhosts++] = name;
    }
    if (request->nhosts == 0)
        usage_error("option '--hosts' needs names");
    return request->nhosts > 0;
}

static int parse_token(struct token_request *request, int argc, char **argv)
{
    static const int takes[] = {OPTION_HOSTS, OPTION_USES, OPTION_VALID, 'c', 0};
    struct err err = ERR_INIT;
    int c;

    while ((c = eadmin_option(argc, argv, "+", takes)) != -1) {
        if (c == 'c')
            request->config = optarg;
        else if (c == OPTION_HOSTS && !parse_hosts(request, optarg))
            return EXIT_USAGE;
        else if (c == OPTION_USES && ini_parse_int(optarg, 1, TOKEN_USES_MAX, &request->uses, &err) < 0)
            return usage_error("--uses %s: %s", optarg, err.text);
        else if (c == OPTION_VALID && ini_parse_duration_ms(optarg, 1000, TOKEN_MAX_MS, &request->valid_ms, &err) < 0)
            return usage_error("--valid %s: %s", optarg, err.text);
        else if (c != OPTION_HOSTS && c != OPTION_VALID && c != OPTION_USES)
            return common_option(c, argv);
    }
    return optind < argc ? usage_error("unexpected argument '%s'; say --hosts %s", argv[optind], argv[optind]) : -1;
}

static bool configured(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->nhosts; i++)
        if (strcmp(settings->hosts[i].name, name) == 0)
            return true;
    return false;
}

/* Joining makes it one, but for a cube, whose hosts are in the order of their addresses. */
static void say_new_host(const struct settings *settings, const char *name)
{
    if (settings->core.topology == TOPOLOGY_CUBE)
        say("%s is not in \"hosts = ...\" of elmer.conf yet: as topology = cube, add it and restart elmer before the "
            "host joins",
            name);
    else
        fprintf(stderr, "%s becomes a host of the cluster when it joins.\n", name);
}

/* Which hosts it names; malloc'd. */
static char *for_hosts(const struct token_request *request)
{
    char *text = must(strdup(request->nhosts == 0 ? "hosts of elmer.conf" : request->hosts[0]));

    for (size_t i = 1; i < request->nhosts; i++) {
        char *longer = must(str_format("%s %s", text, request->hosts[i]));

        free(text);
        text = longer;
    }
    return text;
}

/* Not the token itself: it is a secret until it is used. Its id is none, and who joins with it is noted with that. */
static void note(const struct token_request *request, const char *made)
{
    char until[32], id[TOKEN_ID_SIZE] = "", *hosts = for_hosts(request), *text;
    struct token token;

    if (token_decode(made, strlen(made), &token, NULL) == 0)
        token_id(&token, id);
    wall_format((struct wall){wall_now().ms + request->valid_ms}, until, sizeof(until));
    text = must(
        str_format("%s: %ld use%s until %s, for %s", id, request->uses, request->uses == 1 ? "" : "s", until, hosts));
    eadmin_note("token-made", "", text);
    free(hosts);
    free(text);
}

static int print_token(const struct token_request *request, const struct settings *settings)
{
    char text[TOKEN_TEXT_SIZE], *address;
    struct ca ca = {0};
    struct err err = ERR_INIT;
    int result = ca_open(CA_DIR, &ca, &err), code;

    if (result == -ENOENT) {
        say("there is no CA here (%s): this is not the queue host, or eadmin init was not run yet: run this "
            "there, or eadmin init first",
            CA_DIR);
        return EXIT_REFUSED;
    }
    if (result == 0)
        result = ca_token(&ca, request->hosts, request->nhosts, (int)request->uses, wall_now().ms, request->valid_ms,
                          text, &err);
    ca_close(&ca);
    if (result < 0)
        return eadmin_failed(&err);
    puts(text);
    code = finish_output(EXIT_DONE);
    for (size_t i = 0; i < request->nhosts; i++)
        if (!configured(settings, request->hosts[i]))
            say_new_host(settings, request->hosts[i]);
    note(request, text);
    address = eadmin_address(settings);
    fprintf(stderr, "On %s, as root: rsd --join %s - --now, which asks for the token\n",
            request->uses == 1 ? "the workstation" : "each workstation", address);
    free(address);
    return code;
}

int eadmin_token(int argc, char **argv)
{
    struct token_request request = {.uses = 1, .valid_ms = TOKEN_MS};
    struct settings settings = {0};
    int code = parse_token(&request, argc, argv);

    if (code < 0 && (code = eadmin_need_root()) == EXIT_DONE)
        code = eadmin_load_settings(request.config, &settings) ? print_token(&request, &settings) : EXIT_REFUSED;
    settings_fini(&settings);
    free(request.hosts);
    return code;
}
