/* elmer_reg.h - for programs that place their tasks themselves: the hosts of the job they run in.
 *
 * The call of Turner's dissertation ("Processor Scheduling in a Distributed-Memory Computing Environment", Michigan
 * State University, 1995, chapter 6): #include "elmer_reg.h" and elmer_register() as the first call of a PVM program.
 * Programs that leave the placing to PVM (PvmTaskDefault) need neither: a job's virtual machine has its hosts only.
 * The functions print nothing and are not meant to be called by several threads at once.
 */
#ifndef LIBELMER_ELMER_REG_H
#define LIBELMER_ELMER_REG_H

#ifdef __cplusplus
extern "C" {
#endif

/* Read ELMER_HOSTS ("ws1:ws2", one name per processor) and keep the names for elmer_hosts(). Where it is not set, as in
 * a program that was started by hand, but the program is among the processes of a job, ask elmer for them (5 s at
 * most). Returns the number of processors of the job, or 0 with errno ENOENT outside Elmer (nothing is kept then), also
 * if a PVM daemon of the user's own runs: none is asked, its hosts are pvm_config(3)'s to tell. Returns -1 with errno
 * EINVAL if the value is malformed, EAGAIN if elmer cannot be asked, ENOMEM if there is no memory; what an earlier call
 * has kept stays then. */
int elmer_register(void);

/* The names that elmer_register() has kept, in the order of the processors: *n of them (n may be NULL) and a NULL
 * behind the last. NULL and *n = 0 when there are none. The library owns array and names; they are valid until the
 * next elmer_register(). */
char **elmer_hosts(int *n);

#ifdef __cplusplus
}
#endif

#endif
