# cube/mesh.c: what a mesh uses and leaves is not by Gray codes, as its ranks are
s/mesh_gray(from) & ~(size - 1)/from \& ~(size - 1)/
