/* reload.h - may the rsd of this host go on with the files as they are now? */
#ifndef RSD_ADMIN_RELOAD_H
#define RSD_ADMIN_RELOAD_H

#include <stdbool.h>

/* Says what is wrong, or what has changed, key by key. 0: rsd may begin again with them; else nothing changes. */
int rsd_reload_main(const char *path, bool given);

#endif
