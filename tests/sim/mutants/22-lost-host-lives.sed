# host.c: a host that returns without a job keeps it running
s/^        if (!held)$/        if (false)/
