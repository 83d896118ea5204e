/* escapes.c - elmer-escapes (rsd/escapes) runs; it is looked at once a second, and started again when it has ended. */
#include "config.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/internal.h"

enum { WATCHER_MS = 1000, WATCHER_LATER_MS = 60000, WATCHERS_IN_VAIN = 3 };

void escapes_init(struct root *root, int64_t now)
{
    root->watched_ms = now - WATCHER_MS;
}

/* In the other modes a rank is no more than what the user himself could have. */
void escapes_keep(struct root *root, int64_t now)
{
    int result;
    if (root->mode != ORDER_MODE_RT || !root->users[0] || now < root->watched_ms + WATCHER_MS)
        return;
    if (root->watcher_fd >= 0 && poll(&(struct pollfd){.fd = root->watcher_fd, .events = POLLIN}, 1, 0) == 0) {
        root->watched_ms = now;
        if (now >= root->watcher_ms + WATCHER_LATER_MS)
            root->watchers = 0;
        return;
    }
    if (root->watcher_fd >= 0) {
        close(root->watcher_fd);
        root->watcher_fd = -1;
        if (++root->watchers > WATCHERS_IN_VAIN) { /* it is not installed, say, and has said so */
            root->watched_ms = now + WATCHER_LATER_MS;
            root->watchers = 0;
            return;
        }
    }
    root->watched_ms = root->watcher_ms = now;
    result = spawn_escapes(root, &root->watcher_fd);
    if (result < 0)
        log_warning("cannot look for processes that leave their job: %s", strerror(-result));
}
