/* root_fakes.h - what stands in place of the root half's group.c, sched.c, watcher.c, tmpdir.c, scope.c, probe.c .. */
#ifndef ELMER_TESTS_FUZZ_ROOT_FAKES_H
#define ELMER_TESTS_FUZZ_ROOT_FAKES_H

void root_fakes_begin(void);
/* The group of that leaf has processes where it had none, or the other way round. A number that is none is fine. */
void root_fakes_change_group(int leaf_fd);

#endif
