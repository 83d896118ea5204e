# cube/mesh.c: of two ways to cut what a mesh leaves, the one with the smaller cubes
# by: tests/unit/elmer/core/cube/test_mesh.c
s/^    if ((all_rows - mesh.rows) \* all_columns >=/    if ((all_rows - mesh.rows) * all_columns </
