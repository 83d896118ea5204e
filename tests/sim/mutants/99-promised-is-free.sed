# alloc/common.c: what others have asked for does not count
s/host->memory_bytes > host->promised_bytes ? host->memory_bytes - host->promised_bytes : 0/host->memory_bytes/
