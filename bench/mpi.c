/* mpi.c - MPI programs that bench/run mpi measures and verifies. Built there with the compiler of each MPI.
 *
 *   pingpong BYTES ROUNDS       rank 0 and 1: the median of half a round trip, in us
 *   turns LONG SHORT ROUNDS     work of so many steps, long and short by turns, then a barrier: begin and end
 * (CLOCK_MONOTONIC, ns) and what all ranks have waited, in s steps                       how many steps of work are a
 * millisecond here ep N | cg N | is N | halo N kernels as those of the NAS benchmarks: seconds, and `verified` if the
 * result is right */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static double work(long steps)
{
    volatile double x = 1;
    for (long i = 0; i < steps; i++)
        x = x * 0.999999 + 0.000001;
    return x;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pingpong(int bytes, int rounds)
{
    char *buffer = calloc(1, (size_t)bytes);
    double *took = calloc((size_t)rounds, sizeof(*took));
    for (int i = -rounds / 10; i < rounds; i++) {
        double begin = MPI_Wtime();
        if (rank == 0)
            MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        if (rank <= 1)
            MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        if (i >= 0)
            took[i] = (MPI_Wtime() - begin) / 2 * 1e6;
    }
    qsort(took, (size_t)rounds, sizeof(*took), by_size);
    if (rank == 0)
        printf("%.3f\n", took[rounds / 2]);
    free(took);
    free(buffer);
}

static void turns(long longer, long shorter, int rounds)
{
    double waited = 0, all;
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t begin = now_ns();
    for (int i = 0; i < rounds; i++) {
        work((i + rank) % 2 ? longer : shorter);
        double since = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        waited += MPI_Wtime() - since;
    }
    int64_t end = now_ns();
    MPI_Reduce(&waited, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%lld %lld %.6f\n", (long long)begin, (long long)end, all);
}

static void steps(void)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < 20; i++) {
        int64_t begin = now_ns();
        work(1000000);
        if (now_ns() - begin < best)
            best = now_ns() - begin;
    }
    if (rank == 0)
        printf("%.0f\n", 1e12 / (double)best);
}

/* Pairs of normal deviates by the polar method; their sums, and how many are in the circle: all known in distribution.
 */
static int ep(long n)
{
    uint64_t state = 271828183u + (uint64_t)rank * 7919;
    double sums[3] = {0}, all[3];
    for (long i = rank; i < n; i += size) {
        double x = 2 * uniform(&state) - 1, y = 2 * uniform(&state) - 1, t = x * x + y * y;
        if (t > 1 || t == 0)
            continue;
        double f = sqrt(-2 * log(t) / t);
        sums[0] += x * f;
        sums[1] += x * f * x * f;
        sums[2] += 1;
    }
    MPI_Allreduce(sums, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double accepted = all[2] / (double)n, spread = 6 / sqrt((double)n);
    return fabs(accepted - M_PI / 4) < spread && fabs(all[0] / all[2]) < spread &&
           fabs(all[1] / all[2] - 1) < 2 * spread;
}

static double dot(const double *a, const double *b, long n)
{
    double sum = 0, all;
    for (long i = 1; i <= n; i++)
        sum += a[i] * b[i];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void exchange(double *x, long n)
{
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(&x[1], 1, MPI_DOUBLE, left, 0, &x[n + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&x[n], 1, MPI_DOUBLE, right, 1, &x[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Conjugate gradients for (2.1, -1, -1) x = b; verified by the residual, computed anew. */
static int cg(long n)
{
    size_t cells = (size_t)n + 2;
    double *x = calloc(cells, 8), *r = calloc(cells, 8), *p = calloc(cells, 8), *q = calloc(cells, 8);
    uint64_t state = 17 + (uint64_t)rank;
    double *b = calloc(cells, 8);
    for (long i = 1; i <= n; i++)
        p[i] = r[i] = b[i] = uniform(&state);
    double rho = dot(r, r, n), first = rho;
    for (int step = 0; step < 200 && rho > first * 1e-20; step++) {
        exchange(p, n);
        for (long i = 1; i <= n; i++)
            q[i] = 2.1 * p[i] - p[i - 1] - p[i + 1];
        double alpha = rho / dot(p, q, n), before = rho;
        for (long i = 1; i <= n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rho = dot(r, r, n);
        for (long i = 1; i <= n; i++)
            p[i] = r[i] + rho / before * p[i];
    }
    exchange(x, n);
    for (long i = 1; i <= n; i++)
        q[i] = b[i] - (2.1 * x[i] - x[i - 1] - x[i + 1]);
    double residual = dot(q, q, n);
    free(x), free(r), free(p), free(q), free(b);
    return residual < first * 1e-16;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Keys to the rank of their bucket, sorted there; verified by the order, also from rank to rank, the number and the
 * sum. */
static int is(long n)
{
    uint64_t state = 99 + (uint64_t)rank;
    uint32_t *keys = calloc((size_t)n, 4), *out = calloc((size_t)n, 4);
    int *counts = calloc((size_t)size * 4, sizeof(int)), *at = counts + size, *get = at + size, *from = get + size;
    unsigned long long sums[4] = {0}, all[4];
    for (long i = 0; i < n; i++) {
        keys[i] = (uint32_t)(uniform(&state) * 4294967296.0);
        sums[0] += keys[i];
        counts[(uint64_t)keys[i] * (uint64_t)size >> 32]++;
    }
    for (int i = 1; i < size; i++)
        at[i] = at[i - 1] + counts[i - 1];
    for (long i = 0; i < n; i++)
        out[at[(uint64_t)keys[i] * (uint64_t)size >> 32]++] = keys[i];
    for (int i = size - 1; i >= 0; i--)
        at[i] -= counts[i];
    MPI_Alltoall(counts, 1, MPI_INT, get, 1, MPI_INT, MPI_COMM_WORLD);
    long mine = get[0];
    for (int i = 1; i < size; i++) {
        from[i] = from[i - 1] + get[i - 1];
        mine += get[i];
    }
    uint32_t *sorted = calloc((size_t)mine + 1, 4), last = 0, before = 0;
    MPI_Alltoallv(out, counts, at, MPI_UINT32_T, sorted, get, from, MPI_UINT32_T, MPI_COMM_WORLD);
    qsort(sorted, (size_t)mine, 4, by_number);
    int good = 1;
    for (long i = 0; i < mine; i++) {
        good = good && (i == 0 || sorted[i] >= sorted[i - 1]);
        sums[1] += sorted[i];
    }
    sums[2] = (unsigned long long)mine;
    last = mine ? sorted[mine - 1] : 0;
    MPI_Exscan(&last, &before, 1, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
    sums[3] = !good || (rank > 0 && mine && sorted[0] < before);
    MPI_Allreduce(sums, all, 4, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    free(keys), free(out), free(counts), free(sorted);
    return all[0] == all[1] && all[2] == (unsigned long long)n * (unsigned long long)size && all[3] == 0;
}

/* Jacobi's iteration, the first rank has twice the rows: the others wait for it. Its solution, which it begins with,
 * stays only if each halo is right. */
static int halo(long n)
{
    long rows = rank == 0 ? 2 * n : n, above = rank == 0 ? 0 : (rank + 1) * n, width = n + 2;
    double *old = calloc((size_t)(rows + 2) * (size_t)width, 8), *new = calloc((size_t)(rows + 2) * (size_t)width, 8),
           worst = 0, all;
    for (long i = 0; i < rows + 2; i++)
        for (long j = 0; j < width; j++)
            old[i * width + j] = new[i * width + j] = (double)(above + i) + 2.0 * (double)j;
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int step = 0; step < 200; step++) {
        if (up != MPI_PROC_NULL)
            memset(old, 0, (size_t)width * 8);
        if (down != MPI_PROC_NULL)
            memset(old + (rows + 1) * width, 0, (size_t)width * 8);
        MPI_Sendrecv(old + width, (int)width, MPI_DOUBLE, up, 0, old + (rows + 1) * width, (int)width, MPI_DOUBLE, down,
                     0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(old + rows * width, (int)width, MPI_DOUBLE, down, 1, old, (int)width, MPI_DOUBLE, up, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (long i = 1; i <= rows; i++)
            for (long j = 1; j <= n; j++)
                new[i * width + j] = (old[(i - 1) * width + j] + old[(i + 1) * width + j] + old[i * width + j - 1] +
                                      old[i * width + j + 1]) /
                                     4;
        double *other = old;
        old = new, new = other;
    }
    for (long i = 1; i <= rows; i++)
        for (long j = 1; j <= n; j++)
            worst = fmax(worst, fabs(old[i * width + j] - ((double)(above + i) + 2.0 * (double)j)));
    MPI_Allreduce(&worst, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    free(old), free(new);
    return all < 1e-6;
}

static void kernel(const char *what, long n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    int good = strcmp(what, "ep") == 0   ? ep(n)
               : strcmp(what, "cg") == 0 ? cg(n)
               : strcmp(what, "is") == 0 ? is(n)
                                         : halo(n);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.6f %s\n", MPI_Wtime() - begin, good ? "verified" : "wrong");
}

int main(int argc, char **argv)
{
    long n[3] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3 && i + 2 < argc; i++)
        n[i] = atol(argv[i + 2]);
    if (argc > 1 && strcmp(argv[1], "pingpong") == 0)
        pingpong((int)n[0], (int)n[1]);
    else if (argc > 1 && strcmp(argv[1], "turns") == 0)
        turns(n[0], n[1], (int)n[2]);
    else if (argc > 1 && strcmp(argv[1], "steps") == 0)
        steps();
    else if (argc > 2)
        kernel(argv[1], n[0]);
    MPI_Finalize();
    return 0;
}
