/* cube.c - the lists: a cube is taken, a cluster ends. */
#include "elmer/core/cube/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory/mem.h"

static int32_t root_of(const struct cube *cube)
{
    return (int32_t)cube->nodes;
}

static struct subcube subcube_of(const struct cube *cube, int32_t piece)
{
    return (struct subcube){.stars = cube->pieces[piece].stars, .value = (uint32_t)piece};
}

/* ---- pieces ---- */

static int32_t *list_of(struct cube *cube, int32_t piece)
{
    const struct piece *p = &cube->pieces[piece];

    return &cube->lists[p->region != root_of(cube)][__builtin_popcount(p->stars)];
}

static void add_piece(struct cube *cube, int32_t region, struct subcube what)
{
    struct region *in = &cube->regions[region];
    struct piece *p = &cube->pieces[what.value];
    int32_t at = (int32_t)what.value, *list;

    assert(!p->there);
    *p = (struct piece){.there = true, .stars = what.stars, .region = region, .prev = NONE, .region_prev = NONE};
    list = list_of(cube, at);
    p->next = *list;
    if (*list != NONE)
        cube->pieces[*list].prev = at;
    *list = at;
    p->region_next = in->first_piece;
    if (in->first_piece != NONE)
        cube->pieces[in->first_piece].region_prev = at;
    in->first_piece = at;
    in->nfree += 1u << subcube_dimension(what);
}

static void drop_piece(struct cube *cube, int32_t piece)
{
    struct piece *p = &cube->pieces[piece];
    struct region *in = &cube->regions[p->region];

    *(p->prev != NONE ? &cube->pieces[p->prev].next : list_of(cube, piece)) = p->next;
    if (p->next != NONE)
        cube->pieces[p->next].prev = p->prev;
    *(p->region_prev != NONE ? &cube->pieces[p->region_prev].region_next : &in->first_piece) = p->region_next;
    if (p->region_next != NONE)
        cube->pieces[p->region_next].region_prev = p->region_prev;
    in->nfree -= 1u << __builtin_popcount(p->stars);
    p->there = false;
}

static void drop_all(struct cube *cube, int32_t region)
{
    while (cube->regions[region].first_piece != NONE)
        drop_piece(cube, cube->regions[region].first_piece);
}

/* A piece of the same region with which it makes a larger cube, or NONE. */
static int32_t complement(const struct cube *cube, int32_t region, struct subcube what)
{
    for (uint32_t bits = cube->regions[region].cube.stars & ~what.stars; bits != 0; bits &= bits - 1) {
        uint32_t other = what.value ^ (bits & -bits);
        const struct piece *p = &cube->pieces[other];
        if (p->there && p->region == region && p->stars == what.stars)
            return (int32_t)other;
    }
    return NONE;
}

/* Joined with its complements, as often as there is one. */
static void return_piece(struct cube *cube, int32_t region, struct subcube what)
{
    struct region *in = &cube->regions[region];
    int32_t other;

    while ((other = complement(cube, region, what)) != NONE) {
        uint32_t bit = what.value ^ (uint32_t)other;
        drop_piece(cube, other);
        what.stars |= bit;
        what.value &= ~bit;
    }
    add_piece(cube, region, what);
    in->limit = CUBE_MAX_DIMENSION + 1;
    if (in->nfree == 1u << subcube_dimension(in->cube) && cube->pieces[what.value].stars != in->cube.stars) {
        drop_all(cube, region);
        add_piece(cube, region, in->cube);
    }
}

/* ---- regions ---- */

static void add_region(struct cube *cube, int32_t owner, struct subcube what)
{
    struct cluster *cluster = &cube->clusters[owner];
    int32_t at = (int32_t)what.value;

    cube->regions[at] = (struct region){.cube = what,
                                        .cluster = owner,
                                        .limit = CUBE_MAX_DIMENSION + 1,
                                        .first_piece = NONE,
                                        .first_child = NONE,
                                        .next_of_cluster = cluster->first_region,
                                        .next = cube->first_leftover,
                                        .prev = NONE};
    if (cube->first_leftover != NONE)
        cube->regions[cube->first_leftover].prev = at;
    cube->first_leftover = at;
    cluster->first_region = at;
    add_piece(cube, at, what);
}

static void drop_region(struct cube *cube, const struct region *region)
{
    *(region->prev != NONE ? &cube->regions[region->prev].next : &cube->first_leftover) = region->next;
    if (region->next != NONE)
        cube->regions[region->next].prev = region->prev;
}

static void join_region(struct cube *cube, int32_t cluster, int32_t region)
{
    struct cluster *c = &cube->clusters[cluster];
    struct region *in = &cube->regions[region];

    c->region = region;
    c->prev = NONE;
    c->next = in->first_child;
    if (c->next != NONE)
        cube->clusters[c->next].prev = cluster;
    in->first_child = cluster;
}

static void leave_region(struct cube *cube, const struct cluster *c)
{
    *(c->prev != NONE ? &cube->clusters[c->prev].next : &cube->regions[c->region].first_child) = c->next;
    if (c->next != NONE)
        cube->clusters[c->next].prev = c->prev;
}

/* The smallest region around it; NONE: it crosses the border of one. */
static int32_t region_around(const struct cube *cube, struct subcube host)
{
    int32_t region = root_of(cube), child;

    do {
        int32_t inner = NONE;
        for (child = cube->regions[region].first_child; child != NONE; child = cube->clusters[child].next)
            if (subcube_contains(cube->clusters[child].host, host))
                break;
        if (child == NONE)
            return region;
        for (inner = cube->clusters[child].first_region; inner != NONE; inner = cube->regions[inner].next_of_cluster)
            if (subcube_contains(cube->regions[inner].cube, host))
                break;
        region = inner;
    } while (region != NONE);
    return NONE;
}

/* ---- bitmaps of a region, in its own addresses ---- */

static uint32_t gather(uint32_t value, uint32_t stars)
{
    uint32_t index = 0;

    for (int i = 0; stars != 0; stars &= stars - 1, i++)
        if ((value & stars & -stars) != 0)
            index |= 1u << i;
    return index;
}

static struct subcube inside(const struct region *in, struct subcube what)
{
    return (struct subcube){.stars = gather(what.stars, in->cube.stars), .value = gather(what.value, in->cube.stars)};
}

static struct subcube outside(const struct region *in, struct subcube what)
{
    return (struct subcube){.stars = subcube_spread(what.stars, in->cube.stars),
                            .value = in->cube.value | subcube_spread(what.value, in->cube.stars)};
}

static void fill_map(struct cube *cube, const struct region *in, const uint64_t *available)
{
    int dimension = subcube_dimension(in->cube);

    memset(cube->map, 0, bitmap_words(dimension) * sizeof(*cube->map));
    for (int32_t p = in->first_piece; p != NONE; p = cube->pieces[p].region_next)
        bitmap_set(cube->map, inside(in, subcube_of(cube, p)));
    for (uint32_t i = 0; available && i < 1u << dimension; i++)
        if (!bitmap_has(available, in->cube.value | subcube_spread(i, in->cube.stars)))
            bitmap_clear(cube->map, (struct subcube){.value = i});
}

static bool recognise(struct cube *cube, struct region *in, int k, const uint64_t *available, struct subcube *found)
{
    int dimension = subcube_dimension(in->cube);
    struct subcube local;

    if (in->limit <= k || dimension < k || in->nfree < 1u << k)
        return false;
    fill_map(cube, in, available);
    if (bitmap_recognise(cube->map, dimension, k, cube->scratch, &local)) {
        *found = outside(in, local);
        return true;
    }
    if (!available)
        in->limit = k;
    return false;
}

/* Anew from the bitmap, the largest first. */
static void make_lists(struct cube *cube, int32_t region)
{
    struct region *in = &cube->regions[region];
    int dimension = subcube_dimension(in->cube);
    struct subcube local;

    drop_all(cube, region);
    for (int k = dimension; k >= 0; k--)
        while (bitmap_recognise(cube->map, dimension, k, cube->scratch, &local)) {
            bitmap_clear(cube->map, local);
            add_piece(cube, region, outside(in, local));
        }
}

/* ---- find ---- */

/* The lowest k stars of a piece, at its lowest node. */
static bool find_in_lists(const struct cube *cube, int auxiliary, int k, struct subcube *found)
{
    for (int i = k; i <= cube->dimension; i++) {
        int32_t at = cube->lists[auxiliary][i];
        if (at == NONE)
            continue;
        *found = subcube_of(cube, at);
        found->stars = subcube_spread((1u << k) - 1, found->stars);
        return true;
    }
    return false;
}

static bool find_leftover(struct cube *cube, int k, const uint64_t *available, struct subcube *found)
{
    if (!available && find_in_lists(cube, 1, k, found))
        return true;
    for (int32_t at = cube->first_leftover; at != NONE; at = cube->regions[at].next)
        if (recognise(cube, &cube->regions[at], k, available, found))
            return true;
    return false;
}

bool cube_find(struct cube *cube, int k, bool auxiliary, const uint64_t *available, struct subcube *found)
{
    if (k < 0 || k > cube->dimension || cube->nfree < 1u << k)
        return false;
    if (auxiliary && find_leftover(cube, k, available, found))
        return true;
    if (!available && find_in_lists(cube, 0, k, found))
        return true;
    return recognise(cube, &cube->regions[root_of(cube)], k, available, found);
}

/* ---- take ---- */

static int32_t piece_around(const struct cube *cube, int32_t region, struct subcube host)
{
    int32_t p = cube->regions[region].first_piece;

    while (p != NONE && !subcube_contains(subcube_of(cube, p), host))
        p = cube->pieces[p].region_next;
    return p;
}

static bool all_free(const struct cube *cube, int32_t region, struct subcube host)
{
    uint32_t count = 0;

    for (int32_t p = cube->regions[region].first_piece; p != NONE; p = cube->pieces[p].region_next) {
        uint32_t stars = cube->pieces[p].stars;
        if ((((uint32_t)p ^ host.value) & ~stars & ~host.stars) == 0)
            count += 1u << __builtin_popcount(stars & host.stars);
    }
    return count == 1u << subcube_dimension(host);
}

/* Halves the piece until it is the host. */
static void split(struct cube *cube, int32_t piece, struct subcube host)
{
    struct subcube rest = subcube_of(cube, piece);
    int32_t region = cube->pieces[piece].region;

    drop_piece(cube, piece);
    while (rest.stars != host.stars) {
        uint32_t spare = rest.stars & ~host.stars, bit = 1u << (31 - __builtin_clz(spare));
        rest.stars &= ~bit;
        add_piece(cube, region, (struct subcube){.stars = rest.stars, .value = rest.value | (~host.value & bit)});
        rest.value |= host.value & bit;
    }
}

static void take_from(struct cube *cube, int32_t region, struct subcube host)
{
    int32_t piece = piece_around(cube, region, host);
    struct region *in = &cube->regions[region];

    if (piece != NONE) {
        split(cube, piece, host);
        return;
    }
    fill_map(cube, in, NULL);
    bitmap_clear(cube->map, inside(in, host));
    make_lists(cube, region);
}

bool cube_take(struct cube *cube, struct mesh mesh, struct subcube host)
{
    struct subcube leftovers[MESH_MAX_PIECES];
    int32_t region = region_around(cube, host), at = (int32_t)host.value;
    size_t count;

    if (region == NONE || !all_free(cube, region, host))
        return false;
    take_from(cube, region, host);
    assert(!cube->clusters[at].there);
    cube->clusters[at] = (struct cluster){.there = true, .mesh = mesh, .host = host, .first_region = NONE};
    join_region(cube, at, region);
    count = mesh_leftovers(mesh, host, leftovers);
    bitmap_set(cube->used, host);
    for (size_t i = 0; i < count; i++) {
        bitmap_clear(cube->used, leftovers[i]);
        add_region(cube, at, leftovers[i]);
    }
    cube->nfree -= mesh_size(mesh);
    return true;
}

/* ---- give ---- */

/* All free cubes of the cluster's leftovers, and the clusters in these move out. Returns whether there are such. */
static bool dissolve(struct cube *cube, const struct cluster *c, struct subcube *free_cubes, size_t *count)
{
    bool in_use = false;

    for (int32_t at = c->first_region; at != NONE; at = cube->regions[at].next_of_cluster) {
        struct region *in = &cube->regions[at];
        int32_t child;
        while (in->first_piece != NONE) {
            free_cubes[(*count)++] = subcube_of(cube, in->first_piece);
            drop_piece(cube, in->first_piece);
        }
        while ((child = in->first_child) != NONE) {
            in_use = true;
            leave_region(cube, &cube->clusters[child]);
            join_region(cube, child, c->region);
        }
        drop_region(cube, in);
    }
    return in_use;
}

static size_t count_pieces(const struct cube *cube, const struct cluster *c)
{
    size_t count = 0;

    for (int32_t at = c->first_region; at != NONE; at = cube->regions[at].next_of_cluster)
        for (int32_t p = cube->regions[at].first_piece; p != NONE; p = cube->pieces[p].region_next)
            count++;
    return count;
}

void cube_give(struct cube *cube, uint32_t node)
{
    struct cluster *c = &cube->clusters[node];
    struct subcube *cubes;
    size_t count;

    assert(node < cube->nodes && c->there);
    cubes = mem_array(count_pieces(cube, c) + MESH_MAX_PIECES, sizeof(*cubes));
    count = mesh_pieces(c->mesh, c->host, cubes);
    for (size_t i = 0; i < count; i++)
        bitmap_clear(cube->used, cubes[i]);
    leave_region(cube, c);
    c->there = false;
    cube->nfree += mesh_size(c->mesh);
    if (dissolve(cube, c, cubes, &count)) {
        count = subcube_coalesce(cubes, count);
    } else {
        cubes[0] = c->host;
        count = 1;
    }
    for (size_t i = 0; i < count; i++)
        return_piece(cube, c->region, cubes[i]);
    free(cubes);
}

/* ---- life ---- */

struct cube *cube_create(int dimension)
{
    struct cube *cube = mem_zalloc(sizeof(*cube));
    struct region *root;

    assert(dimension >= 0 && dimension <= CUBE_MAX_DIMENSION);
    cube->dimension = dimension;
    cube->nodes = cube->nfree = 1u << dimension;
    cube->pieces = mem_array(cube->nodes, sizeof(*cube->pieces));
    cube->clusters = mem_array(cube->nodes, sizeof(*cube->clusters));
    cube->regions = mem_array((size_t)cube->nodes + 1, sizeof(*cube->regions));
    cube->used = mem_array(bitmap_words(dimension), sizeof(*cube->used));
    cube->map = mem_array(bitmap_words(dimension), sizeof(*cube->map));
    cube->scratch = mem_array((size_t)(dimension + 1) * bitmap_words(dimension), sizeof(*cube->scratch));
    memset(cube->lists, 0xff, sizeof(cube->lists)); /* NONE */
    cube->first_leftover = NONE;
    root = &cube->regions[root_of(cube)];
    *root = (struct region){.cube = {.stars = cube->nodes - 1},
                            .cluster = NONE,
                            .limit = CUBE_MAX_DIMENSION + 1,
                            .first_piece = NONE,
                            .first_child = NONE,
                            .next_of_cluster = NONE};
    add_piece(cube, root_of(cube), root->cube);
    return cube;
}

struct cube *cube_copy(const struct cube *from)
{
    struct cube *cube = mem_copy(from, 1, sizeof(*cube));
    size_t words = bitmap_words(from->dimension);

    cube->pieces = mem_copy(from->pieces, from->nodes, sizeof(*cube->pieces));
    cube->clusters = mem_copy(from->clusters, from->nodes, sizeof(*cube->clusters));
    cube->regions = mem_copy(from->regions, (size_t)from->nodes + 1, sizeof(*cube->regions));
    cube->used = mem_copy(from->used, words, sizeof(*cube->used));
    cube->map = mem_copy(from->map, words, sizeof(*cube->map));
    cube->scratch = mem_array((size_t)(from->dimension + 1) * words, sizeof(*cube->scratch));
    return cube;
}

void cube_destroy(struct cube *cube)
{
    if (!cube)
        return;
    free(cube->pieces);
    free(cube->clusters);
    free(cube->regions);
    free(cube->used);
    free(cube->map);
    free(cube->scratch);
    free(cube);
}

int cube_dimension(const struct cube *cube)
{
    return cube->dimension;
}

uint32_t cube_free_nodes(const struct cube *cube)
{
    return cube->nfree;
}

bool cube_node_free(const struct cube *cube, uint32_t node)
{
    return node < cube->nodes && !bitmap_has(cube->used, node);
}

bool cube_next_free(const struct cube *cube, uint32_t *cursor, struct subcube *piece, int64_t *owner)
{
    while (*cursor < cube->nodes && !cube->pieces[*cursor].there)
        ++*cursor;
    if (*cursor >= cube->nodes)
        return false;
    *piece = subcube_of(cube, (int32_t)*cursor);
    *owner = cube->regions[cube->pieces[*cursor].region].cluster;
    ++*cursor;
    return true;
}
