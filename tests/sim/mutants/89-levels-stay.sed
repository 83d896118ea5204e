# configure.c: fewer levels count only after a restart
s/^    core->options.levels = next->levels;$/    core->options.levels = next->levels > core->options.levels ? next->levels : core->options.levels;/
