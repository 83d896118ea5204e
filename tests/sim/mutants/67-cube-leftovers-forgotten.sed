# cube/cube.c: clusters in the leftovers of one that ends are of no region any more
s/join_region(cube, child, c->region);/(void)cube;/
