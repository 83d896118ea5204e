# cube/cube.c: cubes of a leftover and of the free list are joined
s/p->there && p->region == region && p->stars/p->there \&\& p->stars/
