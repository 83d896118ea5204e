# alloc.c: a processor takes a job at level D
s/next_level < core->options.levels &&/next_level <= core->options.levels \&\&/
