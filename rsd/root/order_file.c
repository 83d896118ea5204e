#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/wire/wire.h"
#include "rsd/root/order_file.h"

enum { ORDER_SIZE = 1 << 20 };

static int write_file(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int result = 0;
    if (fd < 0)
        return -errno;
    if (write(fd, text, size) != (ssize_t)size)
        result = errno ? -errno : -EIO;
    close(fd);
    return result;
}

void order_file_keep(const struct rsd_config *config, const struct wire_order *order)
{
    struct wire_message message = {.type = WIRE_order};
    struct err err = ERR_INIT;
    char path[120], aside[120], *json = NULL;
    size_t size;
    int result;
    message.u.order = *order;
    snprintf(path, sizeof(path), "%s/sup/order", config->rundir);
    snprintf(aside, sizeof(aside), "%s/sup/order.new", config->rundir);
    result = wire_encode(&message, WIRE_MINOR, &json, &size, &err);
    if (result == 0)
        result = write_file(aside, json, size);
    if (result == 0 && rename(aside, path) < 0)
        result = -errno;
    free(json);
    if (result < 0)
        log_warning("cannot keep the order in %s for a restart: %s", path, strerror(-result));
}

void order_file_recall(const struct rsd_config *config, struct order *order)
{
    struct wire_message message;
    static char text[ORDER_SIZE]; /* of which only what is read takes memory */
    char path[120];
    ssize_t got = -1;
    int fd;
    snprintf(path, sizeof(path), "%s/sup/order", config->rundir);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        got = read(fd, text, sizeof(text));
    if (got > 0 && wire_decode(text, (size_t)got, WIRE_MINOR, &message, NULL) == 0) {
        if (message.type == WIRE_order)
            order_replace(order, &message.u.order);
        order->generation = 0;
        wire_message_fini(&message);
    }
    if (fd >= 0)
        close(fd);
}
