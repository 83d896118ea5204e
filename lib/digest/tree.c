#include "config.h"

#include "lib/digest/tree.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "lib/job/lines.h"

enum { GROUP_LEVELS = 5, GROUP = 1 << GROUP_LEVELS, LEVELS_MAX = TREE_PROOF_MAX };
_Static_assert(TREE_DIGEST_BYTES == 32, "SHA-256");

typedef uint8_t digest[TREE_DIGEST_BYTES];

struct tree {
    uint32_t count, ngroups;
    const char **starts; /* [ngroups] of the first line of each */
    /* Levels one behind the other, [ngroups] first, the root last. */
    digest *nodes;
    size_t nnodes;
};

/* ---- digests ---- */

static bool add(EVP_MD_CTX *context, uint8_t kind, const void *first, size_t first_size, const void *second,
                size_t second_size, digest out)
{
    unsigned size = 0;
    return EVP_DigestInit_ex(context, NULL, NULL) == 1 && EVP_DigestUpdate(context, &kind, 1) == 1 &&
           EVP_DigestUpdate(context, first, first_size) == 1 && EVP_DigestUpdate(context, second, second_size) == 1 &&
           EVP_DigestFinal_ex(context, out, &size) == 1 && size == sizeof(digest);
}

static bool leaf(EVP_MD_CTX *context, const char *line, size_t length, digest out)
{
    return add(context, 0, line, length, NULL, 0, out);
}

static bool node(EVP_MD_CTX *context, const digest left, const digest right, digest out)
{
    return add(context, 1, left, sizeof(digest), right, sizeof(digest), out);
}

/* To be begun again for each; NULL: no memory. */
static EVP_MD_CTX *context_create(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1)
        return context;
    EVP_MD_CTX_free(context);
    return NULL;
}

/* The level above `count` nodes, into out, which may be where they are. */
static bool raise_level(EVP_MD_CTX *context, const digest *nodes, uint32_t count, digest *out)
{
    for (uint32_t i = 0; i < count; i += 2) {
        if (i + 1 == count)
            memmove(out[i / 2], nodes[i], sizeof(digest));
        else if (!node(context, nodes[i], nodes[i + 1], out[i / 2]))
            return false;
    }
    return true;
}

/* ---- a group of lines ---- */

static uint32_t group_size(const struct tree *tree, uint32_t group)
{
    uint32_t left = tree->count - group * GROUP;
    return left < GROUP ? left : GROUP;
}

static bool leaves_of(const struct tree *tree, uint32_t group, EVP_MD_CTX *context, digest out[GROUP])
{
    const char *at = tree->starts[group];
    for (uint32_t i = 0; i < group_size(tree, group); i++) {
        const char *line = at;
        size_t length = lines_next(&at);
        if (!leaf(context, line, length, out[i]))
            return false;
    }
    return true;
}

/* Its nodes, level by level, in the place of its leaves; with the neighbours of `place` where proof is there. */
static bool climb(EVP_MD_CTX *context, digest *nodes, uint32_t count, uint32_t place, digest *proof, int *nproof)
{
    for (int level = 0; level < GROUP_LEVELS; level++, place /= 2, count = (count + 1) / 2) {
        if (proof && (place ^ 1) < count)
            memcpy(proof[(*nproof)++], nodes[place ^ 1], sizeof(digest));
        if (!raise_level(context, (const digest *)nodes, count, nodes))
            return false;
    }
    return true;
}

/* ---- the tree ---- */

static bool build(struct tree *tree, EVP_MD_CTX *context)
{
    digest leaves[GROUP];
    digest *level = tree->nodes;
    for (uint32_t group = 0; group < tree->ngroups; group++) {
        if (!leaves_of(tree, group, context, leaves) || !climb(context, leaves, group_size(tree, group), 0, NULL, NULL))
            return false;
        memcpy(tree->nodes[group], leaves[0], sizeof(digest));
    }
    for (uint32_t count = tree->ngroups; count > 1; level += count, count = (count + 1) / 2)
        if (!raise_level(context, (const digest *)level, count, level + count))
            return false;
    return true;
}

static size_t nodes_above(uint32_t count)
{
    size_t nodes = count;
    for (; count > 1; nodes += count)
        count = (count + 1) / 2;
    return nodes;
}

static void find_groups(struct tree *tree, const char *text)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        if (i % GROUP == 0)
            tree->starts[i / GROUP] = text;
        (void)lines_next(&text);
    }
}

struct tree *tree_create(const char *text)
{
    struct tree *tree = calloc(1, sizeof(*tree));
    EVP_MD_CTX *context = context_create();
    uint32_t count = lines_count(text);
    bool made = tree && context && count > 0 && count <= 1u << LEVELS_MAX;
    if (made) {
        tree->count = count;
        tree->ngroups = (count - 1) / GROUP + 1;
        tree->nnodes = nodes_above(tree->ngroups);
        tree->starts = calloc(tree->ngroups, sizeof(*tree->starts));
        tree->nodes = calloc(tree->nnodes, sizeof(*tree->nodes));
        made = tree->starts && tree->nodes;
    }
    if (made) {
        find_groups(tree, text);
        made = build(tree, context);
    }
    EVP_MD_CTX_free(context);
    if (made)
        return tree;
    tree_destroy(tree);
    return NULL;
}

void tree_destroy(struct tree *tree)
{
    if (!tree)
        return;
    free(tree->starts);
    free(tree->nodes);
    free(tree);
}

uint32_t tree_count(const struct tree *tree)
{
    return tree->count;
}

void tree_root(const struct tree *tree, uint8_t root[TREE_DIGEST_BYTES])
{
    memcpy(root, tree->nodes[tree->nnodes - 1], TREE_DIGEST_BYTES);
}

const char *tree_line(const struct tree *tree, uint32_t place, size_t *length)
{
    assert(place < tree->count);
    const char *at = tree->starts[place / GROUP], *line = at;
    for (uint32_t i = 0; i <= place % GROUP; i++) {
        line = at;
        *length = lines_next(&at);
    }
    return line;
}

int tree_proof(const struct tree *tree, uint32_t place, uint8_t proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES])
{
    assert(place < tree->count);
    digest leaves[GROUP];
    const digest *level = (const digest *)tree->nodes;
    EVP_MD_CTX *context = context_create();
    uint32_t group = place / GROUP, count = tree->ngroups;
    int nproof = 0;
    bool made = context && leaves_of(tree, group, context, leaves) &&
                climb(context, leaves, group_size(tree, group), place % GROUP, proof, &nproof);
    EVP_MD_CTX_free(context);
    for (; count > 1; level += count, count = (count + 1) / 2, group /= 2)
        if ((group ^ 1) < count)
            memcpy(proof[nproof++], level[group ^ 1], sizeof(digest));
    return made ? nproof : -1;
}

bool tree_root_of(const char *line, size_t length, uint32_t place, uint32_t count,
                  const uint8_t proof[][TREE_DIGEST_BYTES], size_t nproof, uint8_t root[TREE_DIGEST_BYTES])
{
    EVP_MD_CTX *context = context_create();
    size_t used = 0;
    bool good = context && place < count && leaf(context, line, length, root);
    for (; good && count > 1; place /= 2, count = (count + 1) / 2) {
        if ((place ^ 1) >= count)
            continue;
        good = used < nproof &&
               (place % 2 ? node(context, proof[used], root, root) : node(context, root, proof[used], root));
        used++;
    }
    EVP_MD_CTX_free(context);
    return good && used == nproof;
}
