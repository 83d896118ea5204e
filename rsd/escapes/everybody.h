/* everybody.h - whoever is in a group below one, found without looking into groups. */
#ifndef RSD_ESCAPES_EVERYBODY_H
#define RSD_ESCAPES_EVERYBODY_H

#include <stdbool.h>
#include <sys/types.h>

struct everybody {
    const char *users, *groups;           /* directories: of the group; of one below it that is left out */
    bool (*is_sought)(pid_t tid);         /* cheap: asked first */
    void (*visit)(void *data, pid_t tid); /* those that are sought, and in a group below it */
    void (*rest)(void *data);             /* now and then */
    void *data;
};
/* False: /proc hides the processes of others from us (hidepid=). */
bool everybody_walk(const struct everybody *everybody);

#endif
