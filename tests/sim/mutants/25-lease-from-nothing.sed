# host.c: the lease counts from the start, not from the last contact
s/host->contact_ms = core->now_ms - .*/;/
