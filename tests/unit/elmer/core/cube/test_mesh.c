/* test_mesh.c - meshes in a hypercube: shapes, what they leave, and theorem 1 of Turner 1995, chapter 3, with a walker
 * along the channels of E-cube routing. */
#include "elmer/core/cube/mesh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { BITS = 10, NODES = 1 << BITS, SIDE = 32 };

static struct subcube whole(int dimension)
{
    return (struct subcube){.stars = (1u << dimension) - 1};
}

/* ---- shapes ---- */

static void test_closest(void **state)
{
    static const struct {
        uint32_t n, rows, columns;
    } cases[] = {{1, 1, 1},  {2, 1, 2}, {4, 2, 2}, {6, 2, 3},  {7, 1, 7},     {8, 2, 4},         {15, 1, 15},
                 {16, 4, 4}, {9, 3, 3}, {5, 1, 5}, {12, 3, 4}, {600, 24, 25}, {65536, 256, 256}, {65521, 1, 65521}};
    struct mesh mesh;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mesh = mesh_closest(cases[i].n);
        assert_int_equal(mesh.rows, cases[i].rows);
        assert_int_equal(mesh.columns, cases[i].columns);
    }
    for (uint32_t n = 1; n <= 2000; n++) { /* by looking at all of them */
        struct mesh best = {1, n};
        for (uint32_t rows = 1; rows * rows <= n; rows++) {
            struct mesh other = {rows, n / rows};
            if (n % rows == 0 && (mesh_dimension(other) < mesh_dimension(best) ||
                                  (mesh_dimension(other) == mesh_dimension(best) && rows > best.rows)))
                best = other;
        }
        mesh = mesh_closest(n);
        assert_int_equal(mesh.rows, best.rows);
        assert_int_equal(mesh_size(mesh), n);
    }
    assert_true(mesh_of(24, 4, &mesh) && mesh.columns == 6);
    assert_false(mesh_of(24, 5, &mesh));
    assert_false(mesh_of(0, 0, &mesh));
}

/* ---- the worked examples ---- */

/* The largest first; of one dimension in the order in which they were found. */
static void expect(const struct subcube *cubes, size_t count, int dimension, const char *expected)
{
    char all[2000] = "";
    size_t used = 0;

    for (int k = dimension; k >= 0; k--)
        for (size_t i = 0; i < count; i++) {
            if (subcube_dimension(cubes[i]) != k)
                continue;
            all[used++] = ' ';
            for (uint32_t bit = 1u << (dimension - 1); bit != 0; bit >>= 1)
                all[used++] = "01*"[(cubes[i].stars & bit) != 0 ? 2 : (cubes[i].value & bit) != 0];
        }
    assert_string_equal(all + 1, expected);
}

static void test_worked_examples(void **state)
{
    struct subcube cubes[MESH_MAX_PIECES];
    struct mesh mesh = {5, 5};

    (void)state;
    expect(cubes, mesh_leftovers(mesh, whole(6), cubes), 6, "10**** 111*** 0**10* 0**111 11010* 110111");
    expect(cubes, mesh_pieces(mesh, whole(6), cubes), 6, "0**0** 0**110 1100** 110110");
    mesh = (struct mesh){20, 30};
    expect(cubes, mesh_leftovers(mesh, whole(10), cubes), 10, "10******** 111******* 0****1000* 110**1000*");
    expect(cubes, mesh_pieces(mesh, whole(10), cubes), 10,
           "0****0**** 0****11*** 0****101** 110**0**** 0****1001* 110**11*** 110**101** 110**1001*");
    mesh = (struct mesh){4, 6};
    expect(cubes, mesh_leftovers(mesh, whole(5), cubes), 5, "**10*");
    expect(cubes, mesh_pieces(mesh, whole(5), cubes), 5, "**0** **11*");
    mesh = (struct mesh){4, 2};
    assert_int_equal(mesh_leftovers(mesh, whole(3), cubes), 0);
    expect(cubes, mesh_pieces(mesh, whole(3), cubes), 3, "***");
}

/* Codes of an aligned run of ranks are a cube: 1010, 1011, 1001 and 1000, of ranks 12 to 15. */
static void test_lemma_2(void **state)
{
    struct subcube cubes[MESH_MAX_PIECES] = {{0, 10}, {0, 11}, {0, 9}, {0, 8}};

    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(mesh_gray(12 + i), cubes[i].value);
    expect(cubes, subcube_coalesce(cubes, 4), 4, "10**");
    expect(cubes, mesh_leftovers((struct mesh){12, 1}, whole(4), cubes), 4, "10**");
}

static void test_gray_codes(void **state)
{
    static const uint32_t third[] = {0, 1, 3, 2, 6, 7, 5, 4}; /* G_3: 000 001 011 010 110 111 101 100 */

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(mesh_gray(i), third[i]);
    for (uint32_t i = 1; i < 1000; i++)
        assert_int_equal(__builtin_popcount(mesh_gray(i) ^ mesh_gray(i - 1)), 1);
}

/* ---- all meshes ---- */

static void mark(struct subcube cube, uint8_t *nodes, uint8_t with)
{
    for (uint32_t i = 0; i < 1u << subcube_dimension(cube); i++) {
        uint32_t node = cube.value | subcube_spread(i, cube.stars);
        assert_int_equal(nodes[node], 0);
        nodes[node] = with;
    }
}

/* A host cube somewhere in the 10-cube. */
static struct subcube host_of(struct mesh mesh)
{
    struct subcube host = {0};
    uint32_t missing = (uint32_t)mesh_dimension(mesh);

    for (uint32_t bit = 0, left = BITS; bit < BITS; bit++, left--)
        if (missing > 0 && (missing == left || (mesh.rows * 7 + mesh.columns * 3 + bit) % 3 != 0)) {
            host.stars |= 1u << bit;
            missing--;
        } else if ((mesh.rows + bit) % 2 != 0) {
            host.value |= 1u << bit;
        }
    return host;
}

/* Pieces and leftovers tile the host, the pieces are the mesh, the ranks are neighbours, and all together are the host
 * again. */
static void check_mesh(struct mesh mesh, size_t *most_leftovers, size_t *most_pieces)
{
    struct subcube host = host_of(mesh), again, all[2 * MESH_MAX_PIECES];
    size_t leftovers = mesh_leftovers(mesh, host, all), pieces = mesh_pieces(mesh, host, all + leftovers);
    uint8_t nodes[NODES] = {0};
    uint32_t ranks[SIDE * SIDE];

    assert_int_equal(subcube_dimension(host), mesh_dimension(mesh));
    for (size_t i = 0; i < leftovers + pieces; i++) {
        assert_true(subcube_contains(host, all[i]));
        mark(all[i], nodes, i < leftovers ? 1 : 2);
    }
    for (uint32_t i = 0, row = 0; row < mesh.rows; row++)
        for (uint32_t column = 0; column < mesh.columns; column++, i++) {
            ranks[i] = mesh_node(mesh, host, row, column);
            assert_int_equal(nodes[ranks[i]], 2);
            nodes[ranks[i]] = 3;
            assert_true(column == 0 || __builtin_popcount(ranks[i] ^ ranks[i - 1]) == 1);
            assert_true(row == 0 || __builtin_popcount(ranks[i] ^ ranks[i - mesh.columns]) == 1);
        }
    for (uint32_t node = 0; node < NODES; node++)
        assert_true(nodes[node] == (((node ^ host.value) & ~host.stars) != 0 ? 0 : nodes[node] == 1 ? 1 : 3));
    assert_true(mesh_host(mesh, ranks, &again));
    assert_int_equal(again.stars, host.stars);
    assert_int_equal(again.value, host.value);
    if (mesh_size(mesh) > 2) { /* the other way round it is another mesh, or none */
        uint32_t last = ranks[0];
        ranks[0] = ranks[mesh_size(mesh) - 1];
        ranks[mesh_size(mesh) - 1] = last;
        assert_false(mesh_host(mesh, ranks, &again));
    }
    assert_int_equal(subcube_coalesce(all, leftovers + pieces), 1);
    assert_int_equal(all[0].stars, host.stars);
    *most_leftovers = leftovers > *most_leftovers ? leftovers : *most_leftovers;
    *most_pieces = pieces > *most_pieces ? pieces : *most_pieces;
}

static void test_all_meshes(void **state)
{
    size_t leftovers = 0, pieces = 0;

    (void)state;
    for (uint32_t rows = 1; rows <= SIDE; rows++)
        for (uint32_t columns = 1; columns <= SIDE; columns++)
            check_mesh((struct mesh){rows, columns}, &leftovers, &pieces);
    assert_int_equal(leftovers, 14); /* 25 x 23 */
    assert_int_equal(pieces, 25);    /* 31 x 31 */
}

/* ---- theorem 1 ---- */

/* The channel from a node along a bit. */
struct channels {
    bool used[NODES][BITS];
};

static void walk(struct channels *channels, uint32_t from, uint32_t to)
{
    for (int bit = 0; bit < BITS; bit++)
        if (((from ^ to) >> bit & 1) != 0) {
            channels->used[from][bit] = true;
            from ^= 1u << bit;
        }
}

static void walk_all(struct channels *channels, const uint32_t *nodes, size_t count)
{
    memset(channels, 0, sizeof(*channels));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            walk(channels, nodes[i], nodes[k]);
}

/* The same for large sets: at a bit, a message has the low part of its end and the rest of its beginning, and these
 * differ in the bit. */
static void cross(struct channels *channels, const uint32_t *nodes, size_t count)
{
    memset(channels, 0, sizeof(*channels));
    for (int bit = 0; bit < BITS; bit++)
        for (uint32_t value = 0; value < 2; value++) {
            uint32_t low = (1u << bit) - 1, lows[NODES], highs[NODES];
            bool has_low[NODES] = {false}, has_high[NODES] = {false};
            size_t nlows = 0, nhighs = 0;
            for (size_t i = 0; i < count; i++) {
                bool *has = (nodes[i] >> bit & 1) == value ? &has_high[nodes[i] & ~low] : &has_low[nodes[i] & low];
                if (*has)
                    continue;
                *has = true;
                if ((nodes[i] >> bit & 1) == value)
                    highs[nhighs++] = nodes[i] & ~low;
                else
                    lows[nlows++] = nodes[i] & low;
            }
            for (size_t i = 0; i < nhighs; i++)
                for (size_t k = 0; k < nlows; k++)
                    channels->used[highs[i] | lows[k]][bit] = true;
        }
}

static bool share(const struct channels *a, const struct channels *b)
{
    for (uint32_t node = 0; node < NODES; node++)
        for (int bit = 0; bit < BITS; bit++)
            if (a->used[node][bit] && b->used[node][bit])
                return true;
    return false;
}

static size_t nodes_of(struct subcube cube, uint32_t *nodes)
{
    for (uint32_t i = 0; i < 1u << subcube_dimension(cube); i++)
        nodes[i] = cube.value | subcube_spread(i, cube.stars);
    return (size_t)1 << subcube_dimension(cube);
}

static size_t ranks_of(struct mesh mesh, struct subcube host, uint32_t *nodes)
{
    for (uint32_t row = 0, i = 0; row < mesh.rows; row++)
        for (uint32_t column = 0; column < mesh.columns; column++)
            nodes[i++] = mesh_node(mesh, host, row, column);
    return mesh_size(mesh);
}

static void check_channels(struct mesh mesh)
{
    static struct channels ours, walked, theirs;
    struct subcube host = host_of(mesh), leftovers[MESH_MAX_PIECES];
    size_t count = mesh_leftovers(mesh, host, leftovers), n;
    uint32_t nodes[NODES] = {0};

    n = ranks_of(mesh, host, nodes);
    cross(&ours, nodes, n);
    if (n <= 48) {
        walk_all(&walked, nodes, n);
        assert_memory_equal(&walked, &ours, sizeof(ours));
    }
    for (size_t i = 0; i < count; i++) {
        cross(&theirs, nodes, nodes_of(leftovers[i], nodes));
        assert_false(share(&ours, &theirs));
    }
}

static void test_theorem_1(void **state)
{
    (void)state;
    for (uint32_t rows = 1; rows <= SIDE; rows++)
        for (uint32_t columns = 1; columns <= SIDE; columns++)
            check_channels((struct mesh){rows, columns});
}

/* Figure 3.1: 2x5 and 2x3 side by side in a 4-cube share the channel from 0110 along the third bit. */
static void test_side_by_side(void **state)
{
    static struct channels a, b;
    uint32_t nodes[16];

    (void)state;
    for (uint32_t i = 0; i < 10; i++)
        nodes[i] = mesh_gray(i / 5) << 3 | mesh_gray(i % 5);
    walk_all(&a, nodes, 10);
    for (uint32_t i = 0; i < 6; i++)
        nodes[i] = mesh_gray(i / 3) << 3 | mesh_gray(5 + i % 3);
    walk_all(&b, nodes, 6);
    assert_true(share(&a, &b));
    /* The figure's own two messages, in which the three bits of the column are the high ones: columns 3 to 7 are the
     * 2x5, and 0 to 2 the 2x3. */
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    assert_int_equal(mesh_gray(3) << 1, 4); /* 0100 */
    assert_int_equal(mesh_gray(6) << 1, 10);
    assert_int_equal(mesh_gray(2) << 1, 6); /* 0110 */
    assert_int_equal(mesh_gray(1) << 1, 2);
    walk(&a, 4, 10);
    walk(&b, 6, 2);
    assert_true(a.used[6][2] && b.used[6][2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closest),         cmocka_unit_test(test_gray_codes), cmocka_unit_test(test_lemma_2),
        cmocka_unit_test(test_worked_examples), cmocka_unit_test(test_all_meshes), cmocka_unit_test(test_theorem_1),
        cmocka_unit_test(test_side_by_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
