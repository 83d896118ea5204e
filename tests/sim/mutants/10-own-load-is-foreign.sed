# alloc/v2.c: v2 judges an empty processor by all of its load
s/return processor->foreign <= /return processor->busy <= /
