/* check.c - whether the lists and the clusters are what they should be; for tests. */
#include "elmer/core/cube/internal.h"

#include <stdlib.h>

#include "lib/memory/mem.h"

static bool count_nodes(struct subcube what, uint8_t *seen)
{
    for (uint32_t i = 0; i < 1u << subcube_dimension(what); i++)
        if (seen[what.value | subcube_spread(i, what.stars)]++ != 0)
            return false;
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
        if (!count_nodes((struct subcube){.stars = p->stars, .value = i}, seen))
            return "a node is in two free cubes";
        if (!subcube_contains(cube->regions[p->region].cube, (struct subcube){.stars = p->stars, .value = i}))
            return "a free cube crosses the border of its region";
    }
    for (uint32_t i = 0; i < cube->nodes; i++) {
        const struct cluster *c = &cube->clusters[i];
        size_t count = c->there ? mesh_pieces(c->mesh, c->host, pieces) : 0;
        for (size_t k = 0; k < count; k++) {
            used += 1u << subcube_dimension(pieces[k]);
            if (!count_nodes(pieces[k], seen))
                return "a node is in two clusters, or in one and free";
        }
        if (c->there && !subcube_contains(cube->regions[c->region].cube, c->host))
            return "a cluster is not in its region";
    }
    if (nfree != cube->nfree || nfree + used != cube->nodes)
        return "free cubes and clusters do not tile the cube";
    return NULL;
}

const char *cube_check(const struct cube *cube)
{
    uint8_t *seen = mem_array(cube->nodes, 1);
    const char *fault = check_all(cube, seen);

    free(seen);
    return fault;
}
