/* after.h - what a job waits for, as text: "ok:41".
 *
 *   LIST  = ITEM ["," ITEM]..
 *   ITEM  = [KIND ":"] ID ["[" INDICES "]"]       without KIND: ok
 *   KIND  = "ok" | "fail" | "any" | "start"
 *
 * INDICES are tasks of an array ("42[3,7-9]"; "42[*]" is the array), so a comma between brackets separates no items.
 * esubmit makes ids of them (client/after.c): in messages and in the store an item is a text without them, always with
 * its KIND.
 */
#ifndef LIB_JOB_AFTER_H
#define LIB_JOB_AFTER_H

#include <stddef.h>
#include <stdint.h>

enum after_kind {
    AFTER_OK,    /* it has ended by itself with status 0 */
    AFTER_FAIL,  /* it has ended in any other way, also cancelled */
    AFTER_ANY,   /* it has ended */
    AFTER_START, /* its processes have been started, once at least */
    AFTER_KIND_COUNT
};
const char *after_kind_name(enum after_kind kind); /* "ok" */

enum { AFTER_MAX = 256 }; /* items of a job; as job.def says */

struct after {
    enum after_kind kind;
    uint64_t job;
};

/* One item. 0, or -1 with what is wrong in why. */
enum { AFTER_WHY = 200 };
int after_parse(const char *item, struct after *after, char why[AFTER_WHY]);
/* The next item of a list, which ends where *rest is NULL then; its length without the comma. */
size_t after_next(const char **rest, const char **item);
/* As it is written in messages. */
enum { AFTER_TEXT = 40 };
void after_text(const struct after *after, char text[AFTER_TEXT]);

#endif
