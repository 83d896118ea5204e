# array.c: an array has as many tasks with clusters as there is room for
s/of->array->running >= of->info.task_limit/of->array->running > of->info.ntasks/
