# host.c: a host that is not heard is kept among those that may take a job
/move(host, CORE_HOST_SILENT)/,/nview/s/^    core->nview = -1;$//
