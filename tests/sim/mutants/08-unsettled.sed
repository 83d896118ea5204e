# alloc/v2.c: v2 believes reports that have not seen the present jobs
s/processor->starting > 0 || host->report_begin_ms < processor->changed_ms + view->options->settle_ms/processor->starting > 0/
