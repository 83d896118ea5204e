# cube/mesh.c: the first column of a mesh is where the second must be
s/host.value | subcube_spread(mesh_gray(column), low)/host.value | subcube_spread(mesh_gray(column) ^ 1, low)/
