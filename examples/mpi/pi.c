/* pi - the number pi by the midpoint rule, each rank a part of it: a program of MPI to try.
 *
 * pi [INTERVALS]    default 10^8; rank 0 prints the number of ranks and of hosts, and pi
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double part(long intervals, int rank, int nranks)
{
    double width = 1.0 / (double)intervals, sum = 0;

    for (long i = rank; i < intervals; i += nranks) {
        double x = ((double)i + 0.5) * width;
        sum += 4 / (1 + x * x);
    }
    return sum * width;
}

/* The ranks on a host share memory, and the first of each host counts it. */
static int count_hosts(void)
{
    MPI_Comm host;
    int rank, first, nhosts;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_free(&host);
    first = rank == 0;
    MPI_Allreduce(&first, &nhosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return nhosts;
}

int main(int argc, char **argv)
{
    long intervals = argc > 1 ? atol(argv[1]) : 100000000;
    double mine, pi;
    int rank, nranks, nhosts;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (intervals < 1) {
        if (rank == 0)
            fprintf(stderr, "usage: pi [INTERVALS], 1 or more\n");
        MPI_Finalize();
        return 2;
    }
    nhosts = count_hosts();
    mine = part(intervals, rank, nranks);
    MPI_Reduce(&mine, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks on %d hosts: pi is %.9f\n", nranks, nhosts, pi);
    MPI_Finalize();
    return 0;
}
