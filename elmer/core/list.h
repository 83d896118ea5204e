/* list.h - intrusive doubly linked lists. A node is on one list at most; list_remove() of a node on none does nothing.
 */
#ifndef ELMER_CORE_LIST_H
#define ELMER_CORE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/container.h"

struct node {
    struct node *prev, *next; /* NULL: on no list */
};

struct list {
    struct node head;
};

#define LIST_ITEM(node_ptr, type, member) CONTAINER_OF(node_ptr, type, member)
#define LIST_FOR_EACH(n, list)            for (struct node *n = (list)->head.next; n != &(list)->head; n = n->next)
/* The body may remove n. */
#define LIST_FOR_EACH_SAFE(n, list)                                                                                    \
    for (struct node *n = (list)->head.next, *n##_next = n->next; n != &(list)->head; n = n##_next, n##_next = n->next)

static inline void list_init(struct list *list)
{
    list->head.prev = list->head.next = &list->head;
}

static inline bool node_linked(const struct node *node)
{
    return node->next != NULL;
}

static inline bool list_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

/* Before is a node of the list or its head (which appends). */
static inline void list_insert(struct node *node, struct node *before)
{
    node->prev = before->prev;
    node->next = before;
    before->prev->next = node;
    before->prev = node;
}

static inline void list_append(struct list *list, struct node *node)
{
    list_insert(node, &list->head);
}

static inline void list_remove(struct node *node)
{
    if (!node_linked(node))
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->prev = node->next = NULL;
}

/* NULL: empty. */
static inline struct node *list_first(const struct list *list)
{
    return list_empty(list) ? NULL : list->head.next;
}

/* NULL: node is the last. */
static inline struct node *list_next(const struct list *list, const struct node *node)
{
    return node->next == &list->head ? NULL : node->next;
}

#endif
