/* mpi.c - what an MPI program does in the tests, by its first argument. Built with the compiler of each MPI.
 *
 *   hello            a line from each rank: number, size, host, CPUs
 *   ring             a number goes around, each adds one; rank 0 says what came back
 *   last             the last rank gets a number from the first one, which comes to MPI_Finalize() half a second later
 *                    than it
 *   abort | segfault | exit   rank 1 ends so, the others wait in a barrier
 *   wait             all wait in a barrier that never comes
 *   late [SECONDS]   rank 0 works for two seconds, the others wait for it: the CPU time of each, in ms
 *   leave            rank 1 exits with 0, the others go to MPI_Finalize()
 *   spawn            one more process by MPI_Comm_spawn, which says its number (spawned) */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

static void hello(void)
{
    char host[256] = "";
    cpu_set_t cpus;
    gethostname(host, sizeof(host) - 1);
    sched_getaffinity(0, sizeof(cpus), &cpus);
    printf("rank %d of %d on %s with %d\n", rank, size, host, CPU_COUNT(&cpus));
}

static void ring(void)
{
    int number = 0;
    if (rank > 0)
        MPI_Recv(&number, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    number++;
    MPI_Send(&number, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    if (rank > 0)
        return;
    MPI_Recv(&number, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d went around\n", number);
}

/* Who only gets something need not wait for anybody when it closes its connections. */
static void last(void)
{
    int number = 42;
    if (rank == 0) {
        MPI_Send(&number, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
        usleep(500000);
    } else if (rank == size - 1) {
        MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%d came\n", number);
    }
}

/* In ms of CLOCK_BOOTTIME, which is that of /proc/uptime. */
static void note_cause(void)
{
    struct timespec now;
    FILE *file = fopen("cause", "w");
    clock_gettime(CLOCK_BOOTTIME, &now);
    if (!file || fprintf(file, "%ld\n", (long)now.tv_sec * 1000 + now.tv_nsec / 1000000) < 0 || fclose(file) != 0)
        abort();
}

/* The others are in a barrier by then. */
static void end(const char *how)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && strcmp(how, "wait") != 0)
        note_cause();
    if (rank == 1 && strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (rank == 1 && strcmp(how, "segfault") == 0)
        raise(SIGSEGV);
    if (rank == 1 && strcmp(how, "exit") == 0)
        exit(5);
    if (rank == 0)
        printf("waiting\n");
    fflush(stdout);
    if (rank == 1 && strcmp(how, "wait") == 0)
        for (;;)
            pause();
    MPI_Barrier(MPI_COMM_WORLD);
}

/* No rank is connected to another one, which would notice. */
static void leave(void)
{
    if (rank == 1)
        exit(0);
}

static long used_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (long)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void late(long seconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    long before = used_ms();
    while (rank == 0 && used_ms() - before < seconds * 1000)
        ;
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d used %ld\n", rank, used_ms() - before);
    fflush(stdout); /* it may hang in MPI_Finalize() */
}

static void spawn(const char *self)
{
    char mode[] = "spawned", *argv[] = {mode, NULL};
    MPI_Comm children;
    int number = 0;
    MPI_Comm_spawn(self, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    if (rank == 0) {
        MPI_Recv(&number, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
        printf("spawned says %d\n", number);
    }
    MPI_Comm_disconnect(&children);
}

static void spawned(void)
{
    MPI_Comm parent;
    int number = 42;
    MPI_Comm_get_parent(&parent);
    MPI_Send(&number, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "hello";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "hello") == 0)
        hello();
    else if (strcmp(what, "ring") == 0)
        ring();
    else if (strcmp(what, "last") == 0)
        last();
    else if (strcmp(what, "late") == 0)
        late(argc > 2 ? atol(argv[2]) : 2);
    else if (strcmp(what, "leave") == 0)
        leave();
    else if (strcmp(what, "spawn") == 0)
        spawn(argv[0]);
    else if (strcmp(what, "spawned") == 0)
        spawned();
    else
        end(what);
    MPI_Finalize();
    return 0;
}
