# cube/mesh.c: neighbours in a row of a mesh are not neighbours in the cube
s/host.value | subcube_spread(mesh_gray(column), low)/host.value | subcube_spread(column, low)/
