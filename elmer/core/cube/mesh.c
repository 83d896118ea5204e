#include "elmer/core/cube/mesh.h"

enum { SIDE_BLOCKS = 16 };

struct mesh mesh_closest(uint32_t n)
{
    struct mesh best = {1, n};

    for (uint32_t rows = 2; rows <= n / rows; rows++) {
        struct mesh mesh = {rows, n / rows};
        if (n % rows == 0 && mesh_dimension(mesh) <= mesh_dimension(best))
            best = mesh; /* more rows than before: more square */
    }
    return best;
}

bool mesh_of(uint32_t n, uint32_t rows, struct mesh *mesh)
{
    if (n == 0 || (rows > 0 && n % rows != 0))
        return false;
    *mesh = rows > 0 ? (struct mesh){rows, n / rows} : mesh_closest(n);
    return true;
}

uint32_t subcube_spread(uint32_t index, uint32_t stars)
{
    uint32_t value = 0;

    for (; stars != 0; stars &= stars - 1, index >>= 1)
        if ((index & 1) != 0)
            value |= stars & -stars;
    return value;
}

/* The stars of the column: the low ones. */
static uint32_t column_stars(struct mesh mesh, struct subcube host)
{
    uint32_t stars = host.stars, low = 0;

    for (int i = mesh_bits(mesh.columns); i > 0; i--, stars &= stars - 1)
        low |= stars & -stars;
    return low;
}

uint32_t mesh_node(struct mesh mesh, struct subcube host, uint32_t row, uint32_t column)
{
    uint32_t low = column_stars(mesh, host);

    return host.value | subcube_spread(mesh_gray(column), low) | subcube_spread(mesh_gray(row), host.stars & ~low);
}

bool mesh_host(struct mesh mesh, const uint32_t *nodes, struct subcube *host)
{
    uint32_t all = nodes[0], any = nodes[0], low, high;

    for (uint32_t i = 1; i < mesh_size(mesh); i++) {
        all &= nodes[i];
        any |= nodes[i];
    }
    *host = (struct subcube){.stars = any & ~all, .value = all}; /* a mesh has both values of every star */
    if (subcube_dimension(*host) != mesh_dimension(mesh))
        return false;
    low = column_stars(mesh, *host);
    high = host->stars & ~low;
    for (uint32_t row = 0, i = 0; row < mesh.rows; row++)
        for (uint32_t column = 0; column < mesh.columns; column++, i++)
            if (nodes[i] !=
                (host->value | subcube_spread(mesh_gray(row), high) | subcube_spread(mesh_gray(column), low)))
                return false;
    return true;
}

/* A run of Gray codes in an i-cube as subcubes of it: 2^j codes that agree in all but the j low bits of their ranks are
 * one (lemma 2 there). */
static size_t codes(uint32_t from, uint32_t to, struct subcube *blocks)
{
    size_t count = 0;

    while (from < to) {
        uint32_t size = from != 0 ? from & -from : 1u << (31 - __builtin_clz(to));
        while (size > to - from)
            size >>= 1;
        blocks[count++] = (struct subcube){.stars = size - 1, .value = mesh_gray(from) & ~(size - 1)};
        from += size;
    }
    return count;
}

struct side { /* of a mesh: what it uses, what it leaves, and the stars of the host for it */
    struct subcube used[SIDE_BLOCKS], left[SIDE_BLOCKS];
    size_t nused, nleft;
    uint32_t stars;
};

static void cut_side(uint32_t n, uint32_t stars, struct side *side)
{
    side->stars = stars;
    side->nused = codes(0, n, side->used);
    side->nleft = codes(n, 1u << mesh_bits(n), side->left);
}

static void cut(struct mesh mesh, struct subcube host, struct side *rows, struct side *columns)
{
    uint32_t low = column_stars(mesh, host);

    cut_side(mesh.rows, host.stars & ~low, rows);
    cut_side(mesh.columns, low, columns);
}

static struct subcube join(struct subcube host, const struct side *a, struct subcube of_a, const struct side *b,
                           struct subcube of_b)
{
    return (struct subcube){.stars = subcube_spread(of_a.stars, a->stars) | subcube_spread(of_b.stars, b->stars),
                            .value = host.value | subcube_spread(of_a.value, a->stars) |
                                     subcube_spread(of_b.value, b->stars)};
}

/* All of one side with what the first leaves, then what the second leaves where the first is used. */
static size_t leave(struct subcube host, const struct side *first, const struct side *second, struct subcube *leftovers)
{
    const struct subcube whole = {.stars = (1u << __builtin_popcount(second->stars)) - 1};
    size_t count = 0;

    for (size_t i = 0; i < first->nleft; i++)
        leftovers[count++] = join(host, first, first->left[i], second, whole);
    for (size_t j = 0; j < second->nleft; j++)
        for (size_t i = 0; i < first->nused; i++)
            leftovers[count++] = join(host, first, first->used[i], second, second->left[j]);
    return count;
}

size_t mesh_leftovers(struct mesh mesh, struct subcube host, struct subcube *leftovers)
{
    uint64_t all_rows = UINT64_C(1) << mesh_bits(mesh.rows), all_columns = UINT64_C(1) << mesh_bits(mesh.columns);
    struct side rows, columns;

    cut(mesh, host, &rows, &columns);
    if ((all_rows - mesh.rows) * all_columns >= (all_columns - mesh.columns) * all_rows)
        return leave(host, &rows, &columns, leftovers);
    return leave(host, &columns, &rows, leftovers);
}

size_t mesh_pieces(struct mesh mesh, struct subcube host, struct subcube *pieces)
{
    struct side rows, columns;
    size_t count = 0;

    cut(mesh, host, &rows, &columns);
    for (size_t i = 0; i < rows.nused; i++)
        for (size_t j = 0; j < columns.nused; j++)
            pieces[count++] = join(host, &rows, rows.used[i], &columns, columns.used[j]);
    return count;
}

size_t subcube_coalesce(struct subcube *cubes, size_t count)
{
    for (int dimension = 0; dimension < CUBE_MAX_DIMENSION; dimension++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = i + 1; j < count && subcube_dimension(cubes[i]) == dimension; j++) {
                uint32_t differ = cubes[i].value ^ cubes[j].value;
                if (cubes[i].stars != cubes[j].stars || (differ & (differ - 1)) != 0)
                    continue;
                cubes[i].stars |= differ;
                cubes[i].value &= ~differ;
                cubes[j] = cubes[--count];
            }
    return count;
}
