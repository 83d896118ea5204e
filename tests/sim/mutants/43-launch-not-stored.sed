# life.c: that an attempt was launched is not stored, so it is opened anew where it may have run
s/^    job->info.launched = true;$/    job->info.launched = false;/
