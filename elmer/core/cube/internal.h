/* internal.h - the lists of a cube; for elmer/core/cube only.
 *
 * Everything is an array by node, because free cubes are disjoint, and so the lowest node of one names it. That is true
 * of clusters (their node of rank 0), and of regions too, also of those within each other: if a host cube begins with
 * the node with which the region around it begins, that node is rank 0 of its mesh, and no leftover has it.
 */
#ifndef ELMER_CORE_CUBE_INTERNAL_H
#define ELMER_CORE_CUBE_INTERNAL_H

#include "elmer/core/cube/cube.h"

enum { NONE = -1 };

struct piece { /* a free cube */
    bool there;
    uint32_t stars;
    int32_t region;
    int32_t next, prev;               /* of this dimension, in the FL or the AFL */
    int32_t region_next, region_prev; /* of the region: those of its regions are the ownership list of a cluster */
};

struct region {
    struct subcube cube;
    int32_t cluster; /* that left it; NONE: the whole cube, which is the FL */
    uint32_t nfree;  /* nodes in its pieces */
    int limit;       /* its free nodes are known to have no cube of this dimension; more than it has: not known */
    int32_t first_piece;
    int32_t first_child; /* clusters whose host cube is of it */
    int32_t next_of_cluster;
    int32_t next, prev; /* all of the AFL */
};

struct cluster {
    bool there;
    struct mesh mesh;
    struct subcube host;
    int32_t region; /* that the host cube is of */
    int32_t first_region;
    int32_t next, prev; /* in the region */
};

struct cube {
    int dimension;
    uint32_t nodes, nfree;
    int32_t lists[2][CUBE_MAX_DIMENSION + 1]; /* FL, AFL */
    int32_t first_leftover;                   /* regions of the AFL */
    struct piece *pieces;                     /* [nodes] */
    struct cluster *clusters;                 /* [nodes] */
    struct region *regions;                   /* [nodes + 1], the last is the whole cube */
    uint64_t *used;                           /* a bitmap: nodes that are in a mesh */
    uint64_t *map, *scratch;                  /* a bitmap, and room for a recognition */
};

/* ---- bitmap.c ---- */
size_t bitmap_words(int dimension);
void bitmap_set(uint64_t *bitmap, struct subcube cube);
void bitmap_clear(uint64_t *bitmap, struct subcube cube);
bool bitmap_has(const uint64_t *bitmap, uint32_t bit);
/* scratch: (dimension + 1) * bitmap_words(dimension) */
bool bitmap_recognise(const uint64_t *bitmap, int dimension, int k, uint64_t *scratch, struct subcube *found);

#endif
