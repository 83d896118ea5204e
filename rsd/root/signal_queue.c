#include "config.h"

#include "rsd/root/signal_queue.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

static bool stops(int number)
{
    return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void remove_at(struct signal_queue *queue, unsigned at)
{
    queue->count--;
    memmove(&queue->numbers[at], &queue->numbers[at + 1], queue->count - at);
}

/* TERM brings CONT along, see signals.c. */
static void remove_opposite(struct signal_queue *queue, int number)
{
    const bool goes_on = number == SIGCONT || number == SIGTERM;
    for (unsigned i = queue->count; i-- > 0;) {
        if ((goes_on && stops(queue->numbers[i])) || (stops(number) && queue->numbers[i] == SIGCONT))
            remove_at(queue, i);
    }
}

void signal_queue_add(struct signal_queue *queue, int number)
{
    if (number <= 0 || number > SIGNAL_QUEUE_MAX)
        return;
    remove_opposite(queue, number);
    if (memchr(queue->numbers, number, queue->count))
        return;
    if (number == SIGTERM) { /* a job's end waits for nothing */
        memmove(&queue->numbers[1], queue->numbers, queue->count);
        queue->numbers[0] = SIGTERM;
    } else {
        queue->numbers[queue->count] = (uint8_t)number;
    }
    queue->count++;
}

int signal_queue_first(const struct signal_queue *queue)
{
    return queue->count > 0 ? queue->numbers[0] : 0;
}

void signal_queue_take(struct signal_queue *queue)
{
    if (queue->count > 0)
        remove_at(queue, 0);
}
