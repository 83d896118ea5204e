# alloc/cube.c: a mesh is placed on hosts that take no jobs
s/if (count == cube_free_nodes(view->cube))/if (count <= cube_free_nodes(view->cube))/
