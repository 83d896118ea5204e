# cube/cube.c: free cubes of leftovers are in no list, and are found all the same
s/^    \*list = at;$/    *list = region == root_of(cube) ? at : *list;/
