# top.c: of several arrays that a job passes only the first gives a place
s/^        given += array_let_go(core, reach->arrays\[i\], reach->behind\[i\]);$/        given += array_let_go(core, reach->arrays[i], reach->behind[i] > given ? reach->behind[i] - given : 0);/
