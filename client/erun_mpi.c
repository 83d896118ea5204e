/* erun_mpi.c - processes that are ranks of an MPICH program (--mpi=pmi1).
 *
 * Each has a descriptor by which it asks for what it needs of the others (PMI); its courier brings here what it says,
 * and back what client/pmi.c answers. So nobody listens for them anywhere, and the way is that of their output.
 *
 * Ranks that wait for one that is gone wait for ever, and nobody but us can tell. So the first rank that calls
 * MPI_Abort(), dies or exits with an error before MPI_Finalize(), or that others wait for in a barrier of PMI when it
 * has ended, ends all of them: they get TERM, what they print meanwhile is still written, and MPI_END_MS later erun
 * ends with what is left. One that exits with 0 before MPI_Finalize() ends nobody by itself: where all ranks of a
 * program do so it mostly ends well, and the first would end the work of the others. */
#include "config.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/erun.h"
#include "lib/base/clock.h"

enum { MPI_END_MS = 1000 };

/* Of another start it is another one: ranks that connect to each other's programs tell these by it. */
static void name_store(const struct erun *erun, char *name, size_t size)
{
    const uint8_t *key = erun->key.public_key;
    size_t used = (size_t)snprintf(name, size, "elmer-%llu-", (unsigned long long)erun->job->id);
    for (size_t i = 0; i < 8; i++)
        used += (size_t)snprintf(name + used, size - used, "%02x", key[i]);
}

/* Whose rank it is; NULL: nobody's there. */
static const struct target *target_of(const struct erun *erun, uint32_t rank)
{
    return rank < erun->plan->total ? erun->mpi.of[rank] : NULL;
}

void mpi_init(struct erun *erun)
{
    struct mpi *mpi = &erun->mpi;
    size_t total = erun->plan->total, *hosts;
    char name[PMI_NAME_MAX], mapping[PMI_VALUE_MAX];
    if (!erun->plan->mpi)
        return;
    hosts = must(calloc(total, sizeof(*hosts)));
    mpi->of = must(calloc(total, sizeof(struct target *)));
    mpi->ended = must(calloc(total, sizeof(*mpi->ended)));
    for (size_t i = 0; i < erun->ntargets; i++)
        for (size_t k = 0; k < erun->targets[i].part->nranks; k++) {
            hosts[erun->targets[i].part->ranks[k].rank] = i;
            mpi->of[erun->targets[i].part->ranks[k].rank] = &erun->targets[i];
        }
    name_store(erun, name, sizeof(name));
    mpi->pmi = pmi_create(total, name, pmi_mapping(hosts, total, mapping, sizeof(mapping)) ? mapping : NULL);
    free(hosts);
}

void mpi_fini(struct erun *erun)
{
    pmi_destroy(erun->mpi.pmi);
    free(erun->mpi.of);
    free(erun->mpi.ended);
}

/* ---- the end of all ---- */

static void end_all(struct erun *erun, int status, bool by_word)
{
    erun->mpi.status = status & 0xff ? status & 0xff : EXIT_REFUSED;
    erun->mpi.by_word = by_word;
    erun->mpi.end_ms = mono_now_ms() + MPI_END_MS;
    (void)erun_signal(erun, SIGTERM);
}

int mpi_timeout(const struct erun *erun, int64_t now)
{
    if (!erun->mpi.status || erun_left(erun) == 0)
        return -1;
    return now < erun->mpi.end_ms ? (int)(erun->mpi.end_ms - now) : 0;
}

void mpi_check_time(struct erun *erun, int64_t now)
{
    if (!erun->lost && mpi_timeout(erun, now) == 0)
        erun->lost = erun->mpi.status;
}

static void check_stuck(struct erun *erun)
{
    uint32_t rank;
    if (erun->mpi.status || !pmi_stuck(erun->mpi.pmi, &rank))
        return;
    say("others wait for rank %u on %s, which has ended: all are ended", (unsigned)rank,
        target_of(erun, rank)->part->host);
    end_all(erun, erun->status, false);
}

/* They all end. Who has lost his connection to another rank may have said so before its host could tell of its end; or
 * this is what TERM makes of it. */
static void note_cause(struct erun *erun, const char *host, uint32_t rank, int status, int number)
{
    struct mpi *mpi = &erun->mpi;
    if (!mpi->by_word || (number ? number == SIGTERM : status != 0 || mpi->said_silent))
        return;
    mpi->by_word = false;
    if (number)
        say("rank %u on %s was ended by signal %d (%s), too: that may be the cause", (unsigned)rank, host, number,
            strsignal(number));
    else
        say("rank %u on %s has exited with 0 before MPI_Finalize: that may be the cause", (unsigned)rank, host);
}

void mpi_ended(struct erun *erun, const struct target *target, uint32_t rank, int status, int number)
{
    struct mpi *mpi = &erun->mpi;
    const char *host = target->part->host;
    enum pmi_state state;
    if (!mpi->pmi || target_of(erun, rank) != target || mpi->ended[rank])
        return;
    mpi->ended[rank] = true;
    state = pmi_ended(mpi->pmi, rank);
    if (mpi->status && state == PMI_BEGUN)
        note_cause(erun, host, rank, status, number);
    if (mpi->status)
        return;
    if (state != PMI_BEGUN) {
        check_stuck(erun);
        return;
    }
    if (number)
        say("rank %u on %s was ended by signal %d (%s) before MPI_Finalize: all are ended", (unsigned)rank, host,
            number, strsignal(number));
    else if (status)
        say("rank %u on %s has exited with %d before MPI_Finalize: all are ended", (unsigned)rank, host, status);
    else if (!mpi->said_silent)
        say("rank %u on %s has exited with 0 before MPI_Finalize: who waits for it waits for ever", (unsigned)rank,
            host);
    mpi->said_silent = true;
    if (status)
        end_all(erun, status, number == 0);
    else
        check_stuck(erun);
}

/* ---- what they ask ---- */

static void send_answers(struct erun *erun)
{
    struct pmi_answer answer;
    while (pmi_next(erun->mpi.pmi, &answer)) {
        assert(answer.rank < erun->plan->total);
        struct target *target = erun->mpi.of[answer.rank];
        if (target->link.state == RUN_OPEN)
            run_link_send(&target->link, RUN_PMI, answer.rank, answer.bytes, answer.size);
    }
}

static void refuse_spawn(struct erun *erun, const struct pmi_said *said)
{
    if (!erun->mpi.said_spawns)
        say("rank %u on %s is refused to spawn processes (MPI_Comm_spawn): erun starts all ranks at once",
            (unsigned)said->rank, target_of(erun, said->rank)->part->host);
    erun->mpi.said_spawns = true;
}

void mpi_hear(struct erun *erun, const struct target *target, const struct run_frame *frame)
{
    struct mpi *mpi = &erun->mpi;
    struct pmi_said said;
    enum pmi_result result;
    const char *host;
    if (!mpi->pmi || mpi->status || target_of(erun, frame->rank) != target)
        return;
    result = pmi_hear(mpi->pmi, frame->rank, frame->data, frame->size, &said);
    host = target_of(erun, said.rank)->part->host;
    if (result == PMI_ABORTS) {
        end_all(erun, said.code, true);
        say("rank %u on %s has ended all with status %d: by MPI_Abort, or an exit with an error before MPI_Finalize",
            (unsigned)said.rank, host, mpi->status);
        return;
    }
    if (result == PMI_WRONG) {
        say("rank %u on %s: %s: all are ended", (unsigned)said.rank, host, said.text);
        end_all(erun, EXIT_REFUSED, false);
        return;
    }
    if (result == PMI_SPAWNS)
        refuse_spawn(erun, &said);
    send_answers(erun);
    check_stuck(erun);
}
