# policy/fcfs.c: an array that was moved is before its tasks
s/^        return rank(a) < rank(b);$/        return rank(a) > rank(b);/
