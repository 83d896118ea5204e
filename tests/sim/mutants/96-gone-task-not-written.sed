# after.c: what follows from a task that was cancelled in its array is not written
/^void after_task_gone(/,/^}/s/^    emit_owe_persist(core, wait->job);$//
