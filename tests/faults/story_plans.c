/* story_plans.c - see story_plans.h.
 *
 * Four processors on two hosts, one level. `gang` takes three of them, `status` the last one; when they are over,
 * `endless` runs and `late` waits, because it wants all four, and `after` behind it, which has one process, but
 * processors on both hosts. The daemons are restarted. `late` is cancelled, `after` runs; `endless` is killed. `after`
 * is submitted with requeue, and in its markers attempts stand for ranks: each may run once, and the second only where
 * a supervisor has died. `then` waits for `gang` to end well and for `status` to fail, `never` for `status` to end
 * well: it is cancelled. `tasks` is an array of four, two at a time, of which the last is cancelled while all wait:
 * each of the others runs once and is counted once. `lines` is an array with a line for each task, which says of which
 * it is: a task that has another's leaves no marker and fails.
 *
 * `limited` and `again` run beside `endless` until their time is over; then `limited` has ended, and `again`, which
 * asks for that, runs a second time and ends well. `held` is held as soon as it has been submitted, and put before all
 * others: while the daemons are restarted there is a processor for it, and it waits. Released it runs at once, before
 * `late`, so it ends while that waits. It has asked for memory, too. `computes` has its place then: it is ended when it
 * has used the CPU time that it may, and not before.
 *
 * The last ones have their turn when `late` has been cancelled. `any` waits for `status` to end, however, and for
 * `endless` to start, which it is told while the daemons are restarted or before. `index` waits for one task of `tasks`
 * and for all of `lines`. `kept` waits for what cannot happen any more, as `never`, but stays until it is cancelled.
 * `parts` is an array whose second task is held from the begin, over the restart, until the others have run. */
#include "config.h"

#include "tests/faults/story_plans.h"

/* In the script of a job: from 0 on. */
#define ATTEMPT "$((${ELMER_TMPDIR##*.} - 1))"

enum { LIMIT_MS = 400, CPU_LIMIT_MS = 50 };

const struct plan story_plans[STORY_JOBS] = {
    [JOB_GANG] = {"gang", "echo gang.$ELMER_RANK >>markers; sleep 0.02", 3, true, "done", "exited", 0, 3},
    [JOB_STATUS] = {"status", "echo status.0 >>markers; exit 3", 1, false, "done", "exited", 3, 1},
    [JOB_ENDLESS] = {"endless", "echo endless.0 >>markers; exec sleep 60", 1, false, "done", "killed", -1, 1},
    [JOB_LIMITED] = {"limited", "echo limited.0 >>markers; exec sleep 60", 1, false, "done", "time-limit", -1, 1,
                     .time_limit_ms = LIMIT_MS},
    [JOB_AGAIN] = {"again", "echo again." ATTEMPT " >>markers; [ " ATTEMPT " != 0 ] || exec sleep 60", 1, false, "done",
                   "exited", 0, 2, .requeue = true, .limit_requeue = true, .time_limit_ms = LIMIT_MS},
    [JOB_LATE] = {"late", "echo late.$ELMER_RANK >>markers", 4, true, "cancelled", "cancelled", -1, 0},
    [JOB_AFTER] = {"after", "echo after." ATTEMPT " >>markers", 3, false, "done", "exited", 0, 1, .requeue = true},
    [JOB_THEN] = {"then",
                  "echo then.0 >>markers",
                  1,
                  false,
                  "done",
                  "exited",
                  0,
                  1,
                  NULL,
                  {{"ok", JOB_GANG}, {"fail", JOB_STATUS}}},
    [JOB_NEVER] =
        {"never", "echo never.0 >>markers", 1, false, "cancelled", "never", -1, 0, NULL, {{"ok", JOB_STATUS}}},
    [JOB_TASKS] = {"tasks", "echo tasks.$ELMER_ARRAY_INDEX >>markers", 1, false, "done", "cancelled", -1, 3, "0-3%2"},
    [JOB_LINES] = {"lines", "[ {2} = $((ELMER_ARRAY_INDEX - 1)) ] && echo lines.{2} >>markers", 1, false, "done",
                   "exited", 0, 3, "1-3%2", .lines = "first 0\nsecond 1\nthird 2\n"},
    [JOB_ANY] = {"any", "echo any.0 >>markers", 1, false, "done", "exited", 0, 1,
                 .after = {{"any", JOB_STATUS}, {"start", JOB_ENDLESS}}},
    [JOB_INDEX] = {"index", "echo index.0 >>markers", 1, false, "done", "exited", 0, 1,
                   .after = {{"ok", JOB_TASKS, 2}, {"any", JOB_LINES}}},
    [JOB_KEPT] = {"kept", "echo kept.0 >>markers", 1, false, "cancelled", "cancelled", -1, 0,
                  .after = {{"ok", JOB_STATUS}}, .keep_never = true},
    [JOB_PARTS] = {"parts", "echo parts.$ELMER_ARRAY_INDEX >>markers", 1, false, "done", "exited", 0, 3, "0-2"},
    [JOB_COMPUTES] = {"computes", "echo computes.0 >>markers; ulimit -t 10; while :; do :; done", 1, false, "done",
                      "cpu-limit", -1, 1, .cpu_limit_ms = CPU_LIMIT_MS},
    [JOB_HELD] = {"held", "echo held.0 >>markers", 1, false, "done", "exited", 0, 1, .memory_bytes = 1 << 20},
};
