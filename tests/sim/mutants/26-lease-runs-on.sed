# lease.c: the lease runs on though the host is back, has it and is in contact
s/claim->until_ms = INT64_MAX;.*/;/
