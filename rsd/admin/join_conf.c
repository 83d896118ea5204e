/* join_conf.c - what rsd --join writes beside rsd.conf. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "rsd/admin/join.h"

#define HEAD "# Written by rsd --join; it counts more than rsd.conf.\n[rsd]\n"

enum { FRAGMENT_MAX = 65536 };

char *join_conf_text(const char *elmer, const char *name)
{
    return str_format(HEAD "elmer = %s\n%s%s%s", elmer, name ? "name = " : "", name ? name : "", name ? "\n" : "");
}

/* Behind the line, or where we were if it does not begin so. */
static const char *skip(const char *text, const char *begin)
{
    size_t size = strlen(begin);

    if (strncmp(text, begin, size) != 0)
        return text;
    text += size + strcspn(text + size, "\n");
    return *text ? text + 1 : text;
}

/* An administrator has added nothing. */
static bool is_ours(const char *text)
{
    if (strncmp(text, HEAD, strlen(HEAD)) == 0)
        text = skip(skip(text + strlen(HEAD), "elmer = "), "name = ");
    return !*text;
}

/* A second name for it, which is not there yet: while the first one's file is not replaced, nothing has changed. */
static int keep(int dir, const char *path, struct err *err)
{
    char name[sizeof(JOIN_CONF) + 40] = JOIN_CONF ".old", *there = NULL;
    int result = file_read(dir, JOIN_CONF, FRAGMENT_MAX, &there, NULL);
    bool ours = result == -ENOENT || (result == 0 && is_ours(there));

    free(there);
    if (ours)
        return 0;
    if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        snprintf(name, sizeof(name), JOIN_CONF ".old.%" PRId64, wall_now().ms / 1000);
    if (linkat(dir, JOIN_CONF, dir, name, 0) < 0)
        return err_set(err, -errno, "what %s/" JOIN_CONF " says cannot be kept in %s: %s", path, name, strerror(errno));
    printf("What %s/" JOIN_CONF
           " said is in %s now, which rsd does not read: put what is to count into another file.\n",
           path, name);
    return 0;
}

int join_conf_write(const char *path, const char *elmer, const char *name, struct err *err)
{
    char *text = join_conf_text(elmer, name);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;

    if (dir < 0 || !text)
        result = err_set(err, dir < 0 ? -errno : -ENOMEM, "cannot open %s: %s", path, strerror(errno));
    else
        result = keep(dir, path, err);
    if (result == 0)
        result = file_write(dir, JOIN_CONF, text, 0644, err);
    if (dir >= 0)
        close(dir);
    free(text);
    return result;
}
