# elmer/store/sql.c: commits are not synchronised, only checkpoints
s/PRAGMA synchronous = FULL/PRAGMA synchronous = NORMAL/
