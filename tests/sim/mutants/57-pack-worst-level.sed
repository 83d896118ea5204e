# alloc/pack.c: pack does not look for the best level
s/int levels = view->options->levels, level = 0, k;/int levels = view->options->levels, level = levels - 1, k;/
