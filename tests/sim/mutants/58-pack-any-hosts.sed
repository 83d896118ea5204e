# alloc/pack.c: pack takes hosts with which the rest cannot be had
s/if (count == 0 || (count < smallest .*$/if (count == 0)/
