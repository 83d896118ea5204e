# reconcile.c: a host that returns without a job keeps it running
s/return found ? HOLDS_IT/return true ? HOLDS_IT/
