/* main.c - elmer-signer: signs one certificate, for the connection on its standard input.
 *
 * systemd starts one for each connection of elmer to /run/elmer-ca/sign.sock: as root, because only root reads the CA's
 * key, and with nothing else that root can do. elmer is not trusted: tokens are checked here, and what a certificate
 * says is decided here. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/options/options.h"
#include "lib/wire/channel.h"
#include "signer/sign.h"

enum { EXIT_CONFIG = 2, DEADLINE_MS = 10000, OUT_MAX = 64 * 1024 };

enum { OPTION_CA = OPTION_FIRST_FREE };
static const struct option_row options[] = {
    {OPTION_CA, "ca", "DIR", "the CA, instead of " CA_DIR},
    {'c', "config", "FILE", "read FILE instead of " ELMER_SYSCONFDIR "/ca.conf"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "elmer-signer",
    "Usage: elmer-signer [--ca DIR] [--config FILE]\n"
    "Sign one certificate for elmer, which is connected to the standard input. Started by elmer-signer.socket, see "
    "eadmin(8).\n"
    "\n",
    options, NULL};

static int receive(struct channel *channel, struct wire_message *request, int64_t deadline_ms, struct err *err)
{
    int result = channel_receive(channel, request, deadline_ms, err);

    return result == 1 ? 0 : result < 0 ? result : err_set(err, -ETIMEDOUT, "no request came in time");
}

/* Whatever is wrong with the CA, elmer is told. */
static int serve(const char *dir, const char *config, struct channel *channel, struct err *err)
{
    int64_t deadline = mono_ms(mono_now()) + DEADLINE_MS;
    struct wire_message request = {0};
    struct sign_answer answer = {0};
    struct ca ca = {0};
    int result = receive(channel, &request, deadline, err);

    if (result < 0)
        return result;
    result = ca_open(dir, &ca, err);
    if (result == 0)
        result = ca_configure(&ca, config, err);
    if (result == 0) {
        sign(&ca, &request, wall_now().ms, &answer);
    } else {
        answer.message = (struct wire_message){.type = WIRE_error, .id = request.id};
        answer.message.u.error.code = WIRE_CODE_REFUSED;
        answer.message.u.error.text =
            "the CA of the queue host cannot be used: the journal of elmer-signer there says why";
    }
    if (channel_send_all(channel, &answer.message, deadline, err) < 0 && result == 0)
        result = -EPIPE;
    sign_answer_fini(&answer);
    wire_message_fini(&request);
    ca_close(&ca);
    return result;
}

int main(int argc, char **argv)
{
    const char *dir = CA_DIR, *config = ELMER_SYSCONFDIR "/ca.conf";
    struct channel channel = {0};
    struct err err = ERR_INIT;

    log_open("elmer-signer", LOG_LEVEL_INFO);
    for (int option; (option = options_next(argc, argv, "", options)) != -1;) {
        switch (option) {
        case OPTION_CA:
            dir = optarg;
            break;
        case 'c':
            config = optarg;
            break;
        default:
            return options_common(&command, option, argv, EXIT_CONFIG);
        }
    }
    if (optind < argc)
        return options_surplus(&command, argv[optind], EXIT_CONFIG);
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    if (channel_init(&channel, STDIN_FILENO, WIRE_FROM_ELMER, OUT_MAX) < 0) {
        log_error("the standard input is no connection of elmer: this program is started by elmer-signer.socket");
        return 1;
    }
    int result = serve(dir, config, &channel, &err);
    channel_fini(&channel);
    if (result < 0)
        log_error("elmer-signer ends: %s", err.text);
    return result < 0 ? 1 : 0;
}
