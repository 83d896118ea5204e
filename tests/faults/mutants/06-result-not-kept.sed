# rsd/root/result.c: what became of a job is not kept for the next root half
s/written = pwrite(fd, kept, (size_t)size, 0);/written = size;/
