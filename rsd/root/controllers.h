/* controllers.h - which of cgroup2's controllers jobs' groups get. Jobs run without any; what is then missing, and for
 * whom, is said in the status of rsd. */
#ifndef RSD_CONTROLLERS_H
#define RSD_CONTROLLERS_H

#include <stddef.h>

enum {
    CONTROLLER_MEMORY = 1, /* how much a job used */
    CONTROLLER_CPUSET = 2, /* a job cannot widen its CPU mask */
    CONTROLLER_CPU = 4,    /* what jobs weigh against everybody else */
    CONTROLLERS_ALL = 7,
    CONTROLLER_COUNT = 3
};

/* Make the group dir fit for handing controllers down: whatever is in it goes to the leaf keeper, and controllers are
 * taken back where they made that impossible. -EBUSY: processes come faster than they can be moved. -EOPNOTSUPP: the
 * group or one above it is of the kind `threaded`, so nothing can be born below it. */
int controllers_settle(int dir);
/* Hand those of wanted that there are down to the groups below dir, never at the price that nothing can be born there.
 * Returns all that are handed down now. */
unsigned controllers_hand_down(int dir, unsigned wanted);
/* To the groups below one that was made just now, in which nobody can be: at once, where the other looks at each step.
 */
void controllers_hand_down_new(int dir, unsigned wanted);
void controllers_take_back(int dir, unsigned which);
/* Those that are not among these, each with what follows from it. Returns how many. */
size_t controllers_lacking(unsigned controllers, const char *lacks[CONTROLLER_COUNT]);

#endif
