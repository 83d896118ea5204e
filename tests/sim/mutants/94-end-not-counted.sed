# array.c: how a task has ended is not written with it
/array->info.signal = info->signal;/{n;n;d}
