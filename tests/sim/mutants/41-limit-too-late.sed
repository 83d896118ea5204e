# user.c: one job more than the limit
s/user->has.running >= core->options/user->has.running > core->options/
