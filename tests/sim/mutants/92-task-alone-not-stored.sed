# array.c: a task that is taken out of its array waits in it again after a restart
/struct job \*task = make_task(core, array, at);/{n;d}
