# queue.c: places are not stored
s/^        emit_owe_persist(core, jobs\[i\]);$//
