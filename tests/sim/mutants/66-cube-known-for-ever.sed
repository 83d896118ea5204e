# cube/cube.c: what had no room has none when others have ended
s/    in->limit = CUBE_MAX_DIMENSION + 1;/    (void)in;/
