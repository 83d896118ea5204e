# alloc/spread.c: spread believes old reports
s/!host->reported || view->now_ms - host->report_end_ms > view->options->fresh_ms ||/!host->reported ||/
