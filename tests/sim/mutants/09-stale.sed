# alloc/v2.c: v2 believes old reports
s/if (!host->reported || .*fresh_ms)$/if (!host->reported)/
