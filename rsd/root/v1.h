/* v1.h - groups of cgroup v1, on hosts that have its controllers beside cgroup2. */
#ifndef RSD_V1_H
#define RSD_V1_H

/* Go to the top of the hierarchies of cgroup v1 that limit what is born here, as PROC/self/cgroup and
 * PROC/self/mountinfo tell of them. Nothing happens where none is to be seen. What cannot be left is said in the log.
 */
void v1_leave(const char *proc);

#endif
