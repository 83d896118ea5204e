/* cube.h - a hypercube and the meshes in it: the free list, and the auxiliary free list of what clusters leave.
 *
 * Source: S. Turner, dissertation, Michigan State University 1995, chapter 3. A cluster is a mesh in its host cube.
 * What it leaves of that are its leftovers: free cubes that it owns, in the auxiliary free list (AFL); other free cubes
 * are in the free list (FL). With E-cube routing no channel inside a mesh is used inside any of its leftovers (theorem
 * 1 there), so others may have these. Where the text leaves a choice:
 *
 * - A region is the whole cube, or a leftover of a cluster that is there. A node belongs to the smallest region around
 *   it. Cubes are joined, and found, within one region only: one that crosses the border of a leftover would break
 *   theorem 1. So a cluster that ends gives its nodes to the region that its host cube came from, and clusters in its
 *   leftovers belong to that region from then on.
 * - Recognition is complete: if the lists have no cube of a dimension, but the free nodes of a region do, it is found
 * by a test of bitmaps (Kim, Das and Lin 1991 reach the same by other means), and the lists of the region are made
 * anew.
 * - What can be placed so follows from the clusters that are there, and not from how they came about: after a restart
 * it is the same.
 *
 * Names: a cluster is the node of its rank 0. Addresses are below 2^dimension.
 */
#ifndef ELMER_CORE_CUBE_CUBE_H
#define ELMER_CORE_CUBE_CUBE_H

#include "elmer/core/cube/mesh.h"

struct cube;

struct cube *cube_create(int dimension); /* 0..CUBE_MAX_DIMENSION */
void cube_destroy(struct cube *cube);
struct cube *cube_copy(const struct cube *cube);
int cube_dimension(const struct cube *cube);
/* Nodes that are in no mesh. */
uint32_t cube_free_nodes(const struct cube *cube);
bool cube_node_free(const struct cube *cube, uint32_t node); /* false of one that the cube does not have */

/* A free cube of dimension k: with `auxiliary`, in the AFL first, of all dimensions, and else in the FL. available: a
 * bitmap of nodes that may be used, NULL: all. False: there is none. The lists may be set right, which changes no later
 * answer. */
bool cube_find(struct cube *cube, int k, bool auxiliary, const uint64_t *available, struct subcube *found);
/* The mesh takes this host cube. False, and nothing changes: not all of it is free in one region. */
bool cube_take(struct cube *cube, struct mesh mesh, struct subcube host);
/* The cluster of this node ends. */
void cube_give(struct cube *cube, uint32_t node);

/* Of a bitmap of 2^dimension bits: a k-cube whose bits are all set. */
bool cube_recognise(const uint64_t *bitmap, int dimension, int k, struct subcube *found);

/* The free cubes one by one: *cursor begins at 0. owner: the cluster that left it, -1: it is in the FL. */
bool cube_next_free(const struct cube *cube, uint32_t *cursor, struct subcube *piece, int64_t *owner);
/* For tests: NULL, or what is wrong with the lists. */
const char *cube_check(const struct cube *cube);

#endif
