/* tree.h - one digest of many lines, and for each line a proof, a few more digests, that it is the one at its place.
 *
 * A hash tree as in RFC 9162: a leaf is the SHA-256 of a byte 0 and the line, without its newline; a node that of a
 * byte 1 and the two below it; one that has no neighbour is taken up as it is. Which of 100,000 lines it is takes 17
 * digests to show. Kept are the nodes from groups of 32 lines on; what is below is made again where it is needed. */
#ifndef LIB_DIGEST_TREE_H
#define LIB_DIGEST_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TREE_DIGEST_BYTES = 32, TREE_PROOF_MAX = 17 /* 131,072 lines */ };

struct tree; /* of a text; it points into that */

/* NULL: no memory, or no lines, or too many. */
struct tree *tree_create(const char *text);
void tree_destroy(struct tree *tree); /* NULL: nothing */
uint32_t tree_count(const struct tree *tree);
void tree_root(const struct tree *tree, uint8_t root[TREE_DIGEST_BYTES]);
/* The line at this place, from 0 on, and its length. */
const char *tree_line(const struct tree *tree, uint32_t place, size_t *length);
/* Returns how many digests the proof has. -1: libcrypto has no memory. */
int tree_proof(const struct tree *tree, uint32_t place, uint8_t proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES]);

/* What the root is if this line is at this place of so many. False: the proof has not as many digests as one there. */
bool tree_root_of(const char *line, size_t length, uint32_t place, uint32_t count,
                  const uint8_t proof[][TREE_DIGEST_BYTES], size_t nproof, uint8_t root[TREE_DIGEST_BYTES]);

#endif
