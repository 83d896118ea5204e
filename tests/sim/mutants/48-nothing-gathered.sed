# queue.c: after a restart jobs are allocated as hosts come back
s/^    if (host_gathering(core))$/    if (false)/
