# topology.c: a job that ends leaves its mesh in the cube
s/cube_give(topology_cube(core), (uint32_t)job->processors\[0\].host);/(void)0;/
