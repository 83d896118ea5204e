# top.c: an array gives no place to who goes before it
s/^        given += array_let_go(core, reach->arrays\[i\], reach->behind\[i\]);$/        given += 0;/
