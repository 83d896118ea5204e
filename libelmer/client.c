/* client.c - a program's handle, and what it has. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "libelmer/client_internal.h"

enum { PATIENCE_MS = 5000 };

int client_error(struct elmer_error *error, int result, const char *format, ...)
{
    va_list args;

    if (!error)
        return result;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return result;
}

int elmer_open(const struct elmer_options *options, struct elmer **elmer, struct elmer_error *error)
{
    struct elmer *e = calloc(1, sizeof(*e));

    *elmer = NULL;
    if (!e)
        return client_error(error, ELMER_FAILED, "out of memory");
    e->epoll = -1;
    e->last_ended = &e->ended;
    e->minor = WIRE_MINOR;
    e->patience_ms = options && options->patience_ms > 0 ? options->patience_ms : PATIENCE_MS;
    e->on_wait = options ? options->on_wait : NULL;
    e->data = options ? options->data : NULL;
    if (options && options->socket) {
        if (strlen(options->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
            free(e);
            return client_error(error, ELMER_USAGE,
                                "the path of the socket is too long (%zu bytes; a socket may have 107)",
                                strlen(options->socket));
        }
        e->own_socket = strdup(options->socket);
        if (!e->own_socket) {
            free(e);
            return client_error(error, ELMER_FAILED, "out of memory");
        }
        e->sockets[e->nsockets++] = e->own_socket;
    } else {
        e->sockets[e->nsockets++] = ELMER_RUNDIR "/elmer.sock"; /* first: an rsd's word for an administrator is none */
        e->sockets[e->nsockets++] = ELMER_RSD_RUNDIR "/rsd.sock";
    }
    e->desk.beside = e->own_socket;
    *elmer = e;
    return ELMER_OK;
}

void elmer_close(struct elmer *elmer)
{
    if (!elmer)
        return;
    while (elmer->calls)
        elmer_call_free(elmer->calls);
    client_link_end(elmer);
    client_desk_close(&elmer->desk);
    if (elmer->epoll >= 0)
        close(elmer->epoll);
    free(elmer->own_socket);
    free(elmer);
}

unsigned client_minor(const struct elmer *elmer)
{
    return elmer->channel.minor;
}
