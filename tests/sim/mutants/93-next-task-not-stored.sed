# array.c: after a restart the array begins with a task that has been started
/array->info.next_task = ordinal + 1;/{n;d}
