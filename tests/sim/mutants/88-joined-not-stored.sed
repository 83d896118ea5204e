# host.c: that a host has joined is not stored
s/^                                .joined = host->info.joined \&\& !host->info.retired};$/                                .joined = false};/
