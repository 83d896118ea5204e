#include "config.h"

#include "lib/pki/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"

int pair_write(int dir, const char *key, const char *certificate, struct err *err)
{
    int code;

    unlinkat(dir, "host.crt.new", 0); /* without it host.key.new means nothing */
    code = file_write_new(dir, "host.key.new", key, 0600);
    if (code == 0)
        code = file_write_new(dir, "host.crt.new", certificate, 0644);
    if (code == 0)
        code = fsync(dir) < 0 ? -errno : 0;
    if (code == 0) /* from here on the new pair counts */
        code = file_move(dir, "host.key.new", "host.key");
    if (code == 0)
        code = file_move(dir, "host.crt.new", "host.crt");
    return code == 0 ? 0 : err_set(err, code, "cannot write host.key and host.crt: %s", strerror(-code));
}

int pair_recover(int dir, struct err *err)
{
    int code = 0;

    if (faccessat(dir, "host.crt.new", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (faccessat(dir, "host.key.new", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        unlinkat(dir, "host.crt.new", 0);
        unlinkat(dir, "host.key.new", 0);
    } else if (faccessat(dir, "host.key", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        code = file_move(dir, "host.crt.new", "host.crt");
    }
    return code == 0 ? 0 : err_set(err, code, "cannot put the new host.crt in its place: %s", strerror(-code));
}
