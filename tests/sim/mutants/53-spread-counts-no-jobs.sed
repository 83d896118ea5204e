# alloc/spread.c: spread takes the least busy processor, whatever jobs it has
s/return processor->jobs \* (FULLY_BUSY + 1) + percent_busy/return percent_busy/
