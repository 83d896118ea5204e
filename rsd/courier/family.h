/* family.h - what a session has started, and what that has started in turn: all that ends with its erun.
 *
 * The courier adopts orphans (PR_SET_CHILD_SUBREAPER), so all of it stays below the courier, and what is not is never
 * touched. Found is what descends from a child, what is of a child's session, an orphan that still holds the output of
 * a child, and what was found before, whoever its parent is by now. So what has made itself a daemon, with a session
 * and files of its own, and whose parent had gone before, is left to the end of the job. */
#ifndef RSD_COURIER_FAMILY_H
#define RSD_COURIER_FAMILY_H

#include "rsd/courier/courier.h"

/* What runs now of the children that count(). Where that cannot be read, nothing is found. */
void family_scan(struct family *family, const struct child *children, size_t nchildren,
                 bool (*counts)(const struct child *));
/* To what was found, but for the groups of children that have not been reaped: child_signal() reaches these. */
void family_signal(const struct family *family, const struct child *children, size_t nchildren, int number);
void family_fini(struct family *family);

#endif
