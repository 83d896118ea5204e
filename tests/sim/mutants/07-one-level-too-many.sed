# alloc/pack.c: a processor takes a job at level D
s/int levels = view->options->levels,/int levels = view->options->levels + 1,/
