/* signal_queue.h - signals that a job is to be sent, and has not been yet. As in the kernel one is there once, however
 * often it was asked for, and of stopping and going on the later word counts. Pure. */
#ifndef RSD_SIGNAL_QUEUE_H
#define RSD_SIGNAL_QUEUE_H

#include <stdint.h>

enum { SIGNAL_QUEUE_MAX = 64 }; /* the kernel's signals are 1 to 64 */

struct signal_queue {
    uint8_t numbers[SIGNAL_QUEUE_MAX]; /* in the order in which they were asked for, TERM first */
    unsigned count;
};

void signal_queue_add(struct signal_queue *queue, int number); /* what is no signal is ignored */
int signal_queue_first(const struct signal_queue *queue);      /* 0: none */
void signal_queue_take(struct signal_queue *queue);            /* the first is sent */

#endif
