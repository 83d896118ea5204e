# array.c: how a task has ended is not written with it
/^        array_count_failed(array, info->task - 1,/{n;d}
