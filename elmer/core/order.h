/* order.h - who waits, in the order of the turns: a balanced tree of places, one in each job.
 *
 * A place is awake or asleep; who is asleep keeps it, but nobody looks at him before he is woken. To come, to go, to be
 * woken, to be found behind another and to be counted take logarithmic time, so a queue of 100,000 jobs that wait for
 * others costs those nothing that do not. A treap: a place's weight is drawn from a number of its job, so that the same
 * jobs make the same tree. See R. Seidel, C. Aragon, Randomized search trees, Algorithmica 16 (1996).
 */
#ifndef ELMER_CORE_ORDER_H
#define ELMER_CORE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place { /* all zero: in no order */
    struct place *up, *side[2];
    uint64_t weight;
    uint32_t size, nawake; /* of it and all below */
    bool in, awake;
};

struct order {
    struct place *root;
    /* Whether a has its turn before b: strict and total. */
    bool (*before)(const struct place *a, const struct place *b, const void *data);
    const void *data;
};

/* The place is in no order. number: any that others mostly do not have. */
void order_insert(struct order *order, struct place *place, uint64_t number, bool awake);
void order_remove(struct order *order, struct place *place); /* it is in this one */
void order_wake(struct place *place, bool awake);
uint32_t order_rank(const struct place *place); /* how many are before it */
/* In all five NULL: there is none. */
struct place *order_first(const struct order *order);
struct place *order_next(const struct place *place);
struct place *order_previous(const struct place *place);
struct place *order_first_awake(const struct order *order);
struct place *order_next_awake(const struct place *place); /* the place itself may sleep */

#endif
