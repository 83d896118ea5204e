# host.c: a suspect host that is heard again is not sent what it missed
s/^    host_owe(core, host); .*/    ;/
