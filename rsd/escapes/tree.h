/* tree.h - all groups below one, however deep users nest them and whatever they name them. */
#ifndef RSD_ESCAPES_TREE_H
#define RSD_ESCAPES_TREE_H

#include <stddef.h>
#include <stdint.h>

struct tree {
    uint64_t skip;                      /* inode of a group that is left out, with all below */
    void (*visit)(void *data, int dir); /* each group, before those below it */
    void (*rest)(void *data);           /* now and then */
    void *data;
    size_t missed; /* groups that could not be opened, though they are there: what is below them is not counted */
};
/* Never holds more than TREE_ANCHORS + 2 descriptors. Groups that are made meanwhile may be missing. */
enum { TREE_ANCHORS = 256 };
void tree_walk(struct tree *tree, const char *top);

#endif
