# host.c: a lost END is not sent again
s/ || PART(node)->state == PART_ENDING)$/)/
