# restore.c: after a restart nobody knows what lost hosts may have
/^static void restore_claims/,/^}/s/i < saved->nlost/false/
