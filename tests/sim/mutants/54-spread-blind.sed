# alloc/spread.c: spread takes any of the processors with as few jobs
s/ + percent_busy(view, host, processor);/;/
