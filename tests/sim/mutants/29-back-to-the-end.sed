# policy/fcfs.c: who goes again waits behind all
s/^        return a->place < b->place;$/        return a->attempt != b->attempt ? a->attempt < b->attempt : a->place < b->place;/
