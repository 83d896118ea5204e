/* cluster.h - a cluster's certificates for the targets that speak TLS: made once in a process, in no file that stays.
 */
#ifndef ELMER_TESTS_FUZZ_CLUSTER_H
#define ELMER_TESTS_FUZZ_CLUSTER_H

#include "lib/net/tls.h"

struct cluster {
    struct tls_context *server, *client, *joiner; /* ws1 is elmer's host, ws2 another */
};
const struct cluster *cluster_get(void);

#endif
