# lease.c: a host that is back counts as empty
s/if (held(host, LEASING(node)))$/if (false)/
