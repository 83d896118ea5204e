/* warned.h - what rooms have warned of, one after the other; with -Wl,--wrap=log_warning. */
#ifndef TESTS_UNIT_ELMER_FAKES_WARNED_H
#define TESTS_UNIT_ELMER_FAKES_WARNED_H

extern char warned[1000];

#endif
