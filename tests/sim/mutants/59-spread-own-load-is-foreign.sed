# alloc/spread.c: spread judges an empty processor by all of its load
s/processor->jobs == 0 ? processor->foreign : processor->busy/processor->busy/
