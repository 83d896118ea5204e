# lease.c: clocks are believed to run evenly
s/return lease_ms + .*/return lease_ms;/
