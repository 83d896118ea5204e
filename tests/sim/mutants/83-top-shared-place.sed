# array_leave.c: who was behind an array has one place with all others there when it has left
s/^    if (sharers.n > 1)$/    if (sharers.n > 1000000)/
