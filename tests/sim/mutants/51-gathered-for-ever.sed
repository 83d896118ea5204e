# emit.c: nobody sees that the time for hosts to come back is over
s/^    if (host_gathering(core) \&\& core->gather_until_ms < at_ms)$/    if (false)/
