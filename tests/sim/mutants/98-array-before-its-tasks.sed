# policy/fcfs.c: an array that was moved is before its tasks
s/^        return a->array != 0;$/        return a->array == 0;/
