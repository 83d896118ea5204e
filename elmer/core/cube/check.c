/* check.c - whether the lists and the clusters are what they should be; for tests. */
#include "elmer/core/cube/internal.h"

#include <stdlib.h>

#include "lib/memory/mem.h"

static bool count_nodes(const struct cube *cube, struct subcube what, bool is_free, uint8_t *seen)
{
    for (uint32_t i = 0; i < 1u << subcube_dimension(what); i++) {
        uint32_t node = what.value | subcube_spread(i, what.stars);
        if (seen[node]++ != 0 || cube_node_free(cube, node) != is_free)
            return false;
    }
    return true;
}

static const char *check_all(const struct cube *cube, uint8_t *seen)
{
    struct subcube pieces[MESH_MAX_PIECES];
    uint32_t nfree = 0, used = 0;

    for (uint32_t i = 0; i < cube->nodes; i++) {
        const struct piece *p = &cube->pieces[i];
        if (!p->there)
            continue;
        nfree += 1u << __builtin_popcount(p->stars);
        if (!count_nodes(cube, (struct subcube){.stars = p->stars, .value = i}, true, seen))
            return "a node is in two free cubes, or counts as used";
        if (!subcube_contains(cube->regions[p->region].cube, (struct subcube){.stars = p->stars, .value = i}))
            return "a free cube crosses the border of its region";
    }
    for (uint32_t i = 0; i < cube->nodes; i++) {
        const struct cluster *c = &cube->clusters[i];
        size_t count = c->there ? mesh_pieces(c->mesh, c->host, pieces) : 0;
        for (size_t k = 0; k < count; k++) {
            used += 1u << subcube_dimension(pieces[k]);
            if (!count_nodes(cube, pieces[k], false, seen))
                return "a node is in two clusters, or in one and free";
        }
        if (c->there && !subcube_contains(cube->regions[c->region].cube, c->host))
            return "a cluster is not in its region";
    }
    if (nfree != cube->nfree || nfree + used != cube->nodes)
        return "free cubes and clusters do not tile the cube";
    return NULL;
}

/* ---- how they are linked ---- */

struct count {
    uint32_t pieces, clusters, regions;
};

/* As many as the arrays have: of a chain that is a ring there would be more. */
static struct count count_there(const struct cube *cube)
{
    struct count count = {.regions = 1};

    for (uint32_t i = 0; i < cube->nodes; i++) {
        count.pieces += cube->pieces[i].there;
        count.clusters += cube->clusters[i].there;
        if (!cube->clusters[i].there)
            continue;
        for (int32_t at = cube->clusters[i].first_region; at != NONE; at = cube->regions[at].next_of_cluster)
            if (cube->regions[at].cluster != (int32_t)i || ++count.regions > cube->nodes + 1)
                return (struct count){0};
    }
    return count;
}

/* The free cubes of each dimension, in leftovers and else. */
static const char *check_lists(const struct cube *cube, struct count there)
{
    uint32_t count = 0;

    for (int auxiliary = 0; auxiliary < 2; auxiliary++)
        for (int k = 0; k <= cube->dimension; k++) {
            int32_t at = cube->lists[auxiliary][k], prev = NONE;
            for (; at != NONE; prev = at, at = cube->pieces[at].next) {
                const struct piece *p = &cube->pieces[at];
                if (!p->there || p->prev != prev || __builtin_popcount(p->stars) != k ||
                    (p->region != (int32_t)cube->nodes) != auxiliary || ++count > there.pieces)
                    return "a list has a free cube that is not of it, or one twice";
            }
        }
    return count == there.pieces ? NULL : "a free cube is in no list";
}

static bool check_region(const struct cube *cube, int32_t region, struct count *seen)
{
    const struct region *in = &cube->regions[region];
    uint32_t nfree = 0;

    for (int32_t at = in->first_piece, prev = NONE; at != NONE; prev = at, at = cube->pieces[at].region_next) {
        const struct piece *p = &cube->pieces[at];
        if (!p->there || p->region != region || p->region_prev != prev || ++seen->pieces > cube->nodes)
            return false;
        nfree += 1u << __builtin_popcount(p->stars);
    }
    for (int32_t at = in->first_child, prev = NONE; at != NONE; prev = at, at = cube->clusters[at].next) {
        const struct cluster *c = &cube->clusters[at];
        if (!c->there || c->region != region || c->prev != prev || ++seen->clusters > cube->nodes)
            return false;
    }
    return nfree == in->nfree;
}

static const char *check_links(const struct cube *cube)
{
    struct count there = count_there(cube), seen = {.regions = 1};
    const char *fault = check_lists(cube, there);

    if (!check_region(cube, (int32_t)cube->nodes, &seen))
        return "the free list is not as it is counted";
    for (int32_t at = cube->first_leftover, prev = NONE; at != NONE; prev = at, at = cube->regions[at].next)
        if (cube->regions[at].prev != prev || !cube->clusters[cube->regions[at].cluster].there ||
            !check_region(cube, at, &seen) || ++seen.regions > there.regions)
            return "a leftover is not as it is counted, or its cluster is gone";
    if (seen.regions != there.regions || seen.pieces != there.pieces || seen.clusters != there.clusters)
        return "a leftover, or what is in one, is linked nowhere";
    return fault;
}

const char *cube_check(const struct cube *cube)
{
    uint8_t *seen = mem_array(cube->nodes, 1);
    const char *fault = check_all(cube, seen);

    free(seen);
    return fault ? fault : check_links(cube);
}
