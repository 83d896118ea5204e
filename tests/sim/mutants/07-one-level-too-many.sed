# alloc/common.c: a processor takes a job at level D
s/next_level < view->options->levels ?/next_level <= view->options->levels ?/
