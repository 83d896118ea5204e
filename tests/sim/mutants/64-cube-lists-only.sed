# cube/cube.c: what is free, but in no list, is not found
s/in->limit <= k || dimension < k/in->limit <= k || true || dimension < k/
