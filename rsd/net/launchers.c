#include "config.h"

#include "rsd/net/launchers.h"

#include <unistd.h>

/* Built with PVM, and pvmd is installed. */
static bool has_pvm(const struct rsd_config *config)
{
#ifdef HAVE_PVM
    return access(config->pvmd, X_OK) == 0;
#else
    (void)config;
    return false;
#endif
}

void launchers_offer(const struct rsd_config *config, struct wire_host_hello *hello)
{
    hello->pvm = has_pvm(config);
}
