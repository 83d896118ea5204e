/* exit.c - a rank of MPICH that exits with an error before MPI_Finalize() ends the others, as one of Open MPI does.
 *
 * MPICH's mpiexec notices only the last rank on a host: the others hold the socket of each that came before them. Then
 * all wait for ever. So the rank says what MPI_Abort() would say, the line of PMI by which mpiexec ends all of them
 * with its status. One that exits with 0 says nothing: a program all of whose ranks do so at its end mostly ends well,
 * and the first one would end the work of the others. _exit() gets past us.
 *
 * The handler is the first that is registered, so the last that is called: who calls MPI_Finalize() in one of his has
 * done it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "yield/yield.h"

#pragma weak on_exit /* other C libraries than that of GNU may lack it */

static pid_t self; /* what a rank forks is none */

/* By the name that tools do not take over: theirs may have ended by now. */
static bool says(const char *name)
{
    int (*function)(int *) = (int (*)(int *))(uintptr_t)yield_known(name);
    int flag = 0;
    return function && function(&flag) == 0 && flag;
}

/* Open MPI's own, started by MPICH's mpiexec, is a program alone. */
static bool is_in_mpich(void)
{
    return !yield_known("ompi_mpi_comm_world") && says("PMPI_Initialized") && !says("PMPI_Finalized");
}

static void at_exit(int status, void *pmi)
{
    char line[64];
    int length;
    if ((status & 0xff) == 0 || getpid() != self || !is_in_mpich())
        return;
    if (ftrylockfile(stdout) == 0) { /* mpiexec may kill us before the C library comes to it */
        fflush(stdout);
        funlockfile(stdout);
    }
    length = snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", status & 0xff);
    (void)send((int)(intptr_t)pmi, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

__attribute__((constructor)) static void begin(void)
{
    intptr_t pmi = yield_number(secure_getenv("PMI_FD"), YIELD_DESCRIPTOR_MAX);
    self = getpid();
    if (pmi >= 0 && on_exit)
        on_exit(at_exit, (void *)pmi);
}
