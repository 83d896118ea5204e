/* mesh.h - shapes: two-dimensional meshes, and their place in a hypercube by Gray codes.
 *
 * Source: S. Turner, dissertation, Michigan State University 1995, chapter 3. A subcube is a set of nodes that agree in
 * some bits of their addresses; the other bits are its stars, and with k of them it is a k-cube. A mesh of X rows and Y
 * columns lives in a k-cube, k = ceil(log2 X) + ceil(log2 Y): the high stars are the Gray code of the row, the low
 * stars that of the column, so neighbours in the mesh are neighbours in the cube.
 */
#ifndef ELMER_CORE_CUBE_MESH_H
#define ELMER_CORE_CUBE_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUBE_MAX_DIMENSION = 16, CUBE_MAX_NODES = 1 << CUBE_MAX_DIMENSION };
/* A side has at most 16 bits, so 16 pieces in one direction and 8 * 8 when both are long; leftovers: a side more. */
enum { MESH_MAX_PIECES = 96 };

struct subcube {
    uint32_t stars, value; /* masks; value has 0 at the stars: it is the node with the lowest address */
};

struct mesh {
    uint32_t rows, columns;
};

static inline int mesh_bits(uint32_t n) /* ceil(log2 n), n > 0 */
{
    return n > 1 ? 32 - __builtin_clz(n - 1) : 0;
}

static inline uint32_t mesh_gray(uint32_t rank)
{
    return rank ^ (rank >> 1);
}

static inline int subcube_dimension(struct subcube cube)
{
    return __builtin_popcount(cube.stars);
}

static inline bool subcube_contains(struct subcube outer, struct subcube inner)
{
    return (inner.stars & ~outer.stars) == 0 && ((inner.value ^ outer.value) & ~outer.stars) == 0;
}

static inline uint32_t mesh_size(struct mesh mesh) /* at most 2^32 - 1 */
{
    return mesh.rows * mesh.columns;
}

/* k of the smallest cube that it fits into. */
static inline int mesh_dimension(struct mesh mesh)
{
    return mesh_bits(mesh.rows) + mesh_bits(mesh.columns);
}

/* For n > 0 processors without a shape: of the meshes with the fewest nodes, n or more, those in the smallest cube, of
 * these the one that is most square; not more rows than columns. As 1 x n is a mesh, it has n nodes exactly. */
struct mesh mesh_closest(uint32_t n);
/* The shape of a job: rows 0: none was asked for. False: rows do not divide n. */
bool mesh_of(uint32_t n, uint32_t rows, struct mesh *mesh);

/* The bits of index at the stars, from the lowest. */
uint32_t subcube_spread(uint32_t index, uint32_t stars);
/* Where (row, column) is in a host cube of the mesh's dimension. */
uint32_t mesh_node(struct mesh mesh, struct subcube host, uint32_t row, uint32_t column);
/* The host cube of the mesh whose nodes these are, row by row; false: they are not placed so. */
bool mesh_host(struct mesh mesh, const uint32_t *nodes, struct subcube *host);

/* The leftovers of a mesh in its host cube, and the mesh itself, as subcubes, in the order in which they are found
 * (figures 3.2 and 3.7 there). Returns how many, at most MESH_MAX_PIECES. */
size_t mesh_leftovers(struct mesh mesh, struct subcube host, struct subcube *leftovers);
size_t mesh_pieces(struct mesh mesh, struct subcube host, struct subcube *pieces);
/* Joins complementary pairs, from small to large (figure 3.8). Returns how many are left. */
size_t subcube_coalesce(struct subcube *cubes, size_t count);

#endif
