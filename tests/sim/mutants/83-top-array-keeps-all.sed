# top.c: an array gives no place to who goes before it
s/^            given += array_let_go(core, arrays\[i\], behind\[i\] - given);$/            given += 0;/
