#include "config.h"

#include "lib/pki/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"

/* host.key.new and host.crt.new are there, each whole. */
static int settle(int dir, int result, struct err *err)
{
    if (result == 0)
        result = fsync(dir) < 0 ? -errno : 0;
    if (result == 0) /* from here on the new pair counts */
        result = file_move(dir, "host.key.new", "host.key");
    if (result == 0)
        result = file_move(dir, "host.crt.new", "host.crt");
    return result == 0 ? 0 : err_set(err, result, "cannot write host.key and host.crt: %s", strerror(-result));
}

int pair_write(int dir, const char *key, const char *certificate, struct err *err)
{
    int result;

    unlinkat(dir, "host.crt.new", 0); /* without it host.key.new means nothing */
    result = file_write_new(dir, "host.key.new", key, 0600);
    if (result == 0)
        result = file_write_new(dir, "host.crt.new", certificate, 0644);
    return settle(dir, result, err);
}

int pair_move(int dir, const char *key, const char *certificate, struct err *err)
{
    int result;

    unlinkat(dir, "host.crt.new", 0);
    result = file_move(dir, key, "host.key.new");
    if (result == 0)
        result = file_move(dir, certificate, "host.crt.new");
    return settle(dir, result, err);
}

int pair_recover(int dir, struct err *err)
{
    int result = 0;

    if (faccessat(dir, "host.crt.new", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (faccessat(dir, "host.key.new", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        unlinkat(dir, "host.crt.new", 0);
        unlinkat(dir, "host.key.new", 0);
    } else if (faccessat(dir, "host.key", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        result = file_move(dir, "host.crt.new", "host.crt");
    }
    return result == 0 ? 0 : err_set(err, result, "cannot put the new host.crt in its place: %s", strerror(-result));
}
