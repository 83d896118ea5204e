/* tokens.h - the tokens that wait and those that were used, as files in the CA's directory. */
#ifndef LIB_PKI_TOKENS_H
#define LIB_PKI_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/pki/token.h"

enum { TOKEN_USES_MAX = 1000 };

/* ca_dir: descriptor of the directory, with tokens/ and used/ in it. No hosts: any host may use it. uses: how many may,
 * 1..TOKEN_USES_MAX, each once. */
int tokens_put(int ca_dir, const struct token *token, const char *const *hosts, size_t count, int uses, int64_t now_ms,
               int64_t end_ms, struct err *err);
/* Check everything, then use it up: 0 as often as it has uses, and then it is on disk that it was used. taken: the
 * cluster has a host of this name, so the token must name it. -EACCES: the text says why not and what to do. */
int tokens_use(int ca_dir, const char *id, const char *host, bool taken, const char *request, const char *proof,
               int64_t now_ms, struct err *err);
/* Forget those that expired 30 days ago or earlier; until then whoever uses one is told why it is refused. */
void tokens_tidy(int ca_dir, int64_t now_ms);

#endif
