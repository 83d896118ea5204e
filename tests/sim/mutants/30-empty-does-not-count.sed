# step.c: what a lost host had is reported empty, and the job waits on
s/lease_drop(core, waiting, .*/;/
