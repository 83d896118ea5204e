# elmer/store/sql.c: the store is not synchronised
s/PRAGMA synchronous = FULL/PRAGMA synchronous = OFF/
