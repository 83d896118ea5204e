# reconcile.c: an attempt that was launched is opened anew on a host that has nothing of it
s/if (opening && (holds == HOLDS_IT || !part->job->info.launched))/if (opening)/
