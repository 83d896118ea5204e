/* array.c - many jobs that are one until they start.
 *
 * An array of n tasks is one job in the queue, at one place, and one row. When it has its turn and the allocator has
 * room, its next task becomes a job of its own, which starts; the array stays where it is, so its other tasks have
 * their turns before anybody who came later. Task k (its ordinal) has the id of the array + 1 + k: these ids were put
 * aside when the array was accepted, so what is said of a task before it starts is said of the same id afterwards.
 *
 * A task waits in the array while its ordinal is at least next_task and in none of the ranges `gone`: cancelled, or
 * taken out to be held or moved alone, which gives it a row. When none waits any more the array is STARTED until its
 * last task has ended, then DONE; one of which no task was ever a job is CANCELLED. How a task has ended is counted in
 * the array when it ends, and both rows are written together (ACTION_PERSIST), so after a restart each task waits, has
 * a job, or is counted, and is never two of these.
 *
 * Places: those of the tasks are from the array's id on, and the array's is behind them. So a task that goes back into
 * the queue is before those that were not started, and before all others who came later. An array stays there: its
 * tasks move, and other jobs of its user (top.c), which get those places when it leaves the queue (array_leave.c). Only
 * one that waits for others goes back as a whole; then, or where an elmer of before has moved it, a task gets its
 * place.
 */
#include "elmer/core/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TASK(node) LIST_ITEM(node, struct job, in_array)

void array_create(struct job *job, uint32_t ntasks, uint32_t limit)
{
    job->array = mem_zalloc(sizeof(*job->array));
    list_init(&job->array->tasks);
    list_init(&job->array->waiters);
    job->info.ntasks = ntasks;
    job->info.task_limit = limit;
    job->info.place = job->info.id + ntasks;
}

void array_free(struct job *job)
{
    struct node *node;

    if (!job->array) {
        list_remove(&job->in_array);
        return;
    }
    while ((node = list_first(&job->array->tasks))) {
        TASK(node)->of = NULL;
        list_remove(node);
    }
    while ((node = list_first(&job->array->waiters)))
        list_remove(node);
    free(job->array->gone);
    free(job->array);
}

/* ---- who waits ---- */

uint32_t core_next_task(const struct core_job *array, uint32_t from)
{
    return core_range_next(array->gone, array->ngone, array->next_task, from);
}

uint32_t core_tasks_waiting(const struct core_job *array)
{
    return core_range_waiting(array->gone, array->ngone, array->next_task, (struct core_range){0, array->ntasks});
}

/* The ranges and `more`, joined where they touch. The old list is freed. */
static void add_gone(struct job *job, struct core_range more)
{
    struct array *array = job->array;
    int at = 0, end;

    while (at < job->info.ngone && array->gone[at].to < more.from)
        at++;
    for (end = at; end < job->info.ngone && array->gone[end].from <= more.to; end++) {
        more.from = array->gone[end].from < more.from ? array->gone[end].from : more.from;
        more.to = array->gone[end].to > more.to ? array->gone[end].to : more.to;
    }
    array->gone = mem_grow(array->gone, &array->gone_capacity, (size_t)job->info.ngone + 1, sizeof(struct core_range));
    memmove(&array->gone[at + 1], &array->gone[end], (size_t)(job->info.ngone - end) * sizeof(struct core_range));
    array->gone[at] = more;
    job->info.ngone += 1 - (end - at);
    job->info.gone = array->gone;
}

bool array_at_limit(const struct job *job)
{
    const struct job *of = job->array ? job : job->of;

    return of && of->info.task_limit > 0 && of->array->running >= of->info.task_limit;
}

/* ---- a task becomes a job ---- */

static void link_task(struct job *array, struct job *task)
{
    task->of = array;
    list_append(&array->array->tasks, &task->in_array);
    array->array->live++;
    array->array->running += node_linked(&task->in_active);
}

/* An array that was moved is at one place with all of its tasks: that of each is some other job's now, or behind jobs
 * of others that the array is before. */
static uint64_t place_of_task(const struct core_job *array, uint32_t ordinal)
{
    return core_at_own_place(array) ? array->id + ordinal : array->place;
}

/* It waits in the array. */
static struct job *make_task(struct core *core, struct job *array, uint32_t ordinal)
{
    const struct core_job *info = &array->info;
    struct job *task = job_create(info->id + 1 + ordinal, info->uid, array->hosts, info->nhosts);

    user_enter(core, task);
    job_take_asked(task, info);
    task->info.array = info->id;
    task->info.task = ordinal + 1;
    task->info.place = place_of_task(info, ordinal);
    link_task(array, task);
    index_insert(core, task);
    LIST_FOR_EACH_SAFE (node, &array->array->waiters)
        if (LIST_ITEM(node, struct wait, on_job)->what->job == task->info.id) {
            list_remove(node);
            list_append(&task->waiters, node);
        }
    return task;
}

/* None waits in it any more. */
static void leave_queue(struct core *core, struct job *array)
{
    array_leave(core, array);
    job_set_text(array, NULL);
    job_move(core, array, JOB_STARTED);
    array->info.reason = REASON_NONE;
}

struct job *array_take_task(struct core *core, struct job *array)
{
    uint32_t ordinal = core_next_task(&array->info, 0);
    struct job *task;

    assert(ordinal < array->info.ntasks && array->info.state == JOB_QUEUED);
    array->info.next_task = ordinal + 1;
    emit_owe_persist(core, array);
    task = make_task(core, array, ordinal);
    if (core_tasks_waiting(&array->info) == 0)
        leave_queue(core, array);
    return task;
}

void array_task_clusters(struct core *core, struct job *task, bool has)
{
    struct job *array = task->of;

    if (!array)
        return;
    array->array->running += has ? 1 : -1u;
    if (has || array->info.task_limit == 0)
        return;
    if (array->in_queue.in)
        queue_changed_job(core, array);
    LIST_FOR_EACH (node, &array->array->tasks)
        if (TASK(node)->in_queue.in)
            queue_changed_job(core, TASK(node));
}

/* ---- the end ---- */

static enum reason reason_of_end(const struct job *array)
{
    if (array->info.tasks_failed > 0)
        return REASON_TASKS_FAILED;
    return array->info.tasks_ok < array->info.ntasks ? REASON_CANCELLED : REASON_EXITED;
}

/* text: why its last tasks are cancelled, or NULL. */
static void settle(struct core *core, struct job *array, const char *text)
{
    bool ever = array->info.tasks_ok + array->info.tasks_failed > 0;

    if (core_tasks_waiting(&array->info) > 0)
        return;
    if (array->array->live > 0 || ever) {
        if (array->info.state != JOB_STARTED)
            leave_queue(core, array);
        if (array->array->live > 0)
            return;
        array->info.reason = reason_of_end(array);
        if (array->info.reason == REASON_EXITED)
            array->info.exit_status = 0;
        job_move(core, array, JOB_DONE);
        return;
    }
    array_leave(core, array);
    job_set_text(array, job_copy_text(text));
    array->info.reason = REASON_CANCELLED;
    job_move(core, array, JOB_CANCELLED);
}

void array_count_failed(struct job *array, uint32_t ordinal, int exit_status, int signal)
{
    array->info.tasks_failed++;
    if (ordinal >= array->info.failed_rank)
        return;
    array->info.failed_rank = ordinal;
    array->info.exit_status = exit_status;
    array->info.signal = signal;
}

void array_task_ended(struct core *core, struct job *task)
{
    struct job *array = task->of;
    const struct core_job *info = &task->info;
    bool well;

    if (task->array)
        array_tell_waiters(core, task);
    if (!array)
        return;
    well = core_end_of(info->state, info->reason, info->exit_status, info->signal, info->ran) == CORE_END_WELL;
    list_remove(&task->in_array);
    task->of = NULL;
    array->array->live--;
    array->info.tasks_ok += well;
    if (!well && info->state == JOB_DONE) /* else it was cancelled */
        array_count_failed(array, info->task - 1, info->exit_status, info->signal);
    emit_owe_persist(core, array);
    settle(core, array, info->state == JOB_CANCELLED ? task->text : NULL);
}

/* ---- what clients want ---- */

static void cancel_task(struct core *core, struct job *task, const char *text)
{
    queue_remove(core, task);
    lease_drop_all(task);
    job_set_text(task, job_copy_text(text));
    task->info.reason = REASON_CANCELLED;
    job_move(core, task, JOB_CANCELLED);
}

static bool kill_task(struct core *core, struct job *task, const char *text)
{
    if (job_is_waiting(task))
        cancel_task(core, task, text);
    else if (task->info.state != JOB_ENDING)
        life_end(core, task, REASON_KILLED, job_copy_text(text));
    else if (lease_goes_again(task)) {
        task->info.reason = REASON_KILLED;
        job_set_text(task, job_copy_text(text));
        lease_drop_all(task);
        emit_owe_persist(core, task);
    }
    return true;
}

static void hold_or_release(struct core *core, struct job *job, const struct event *event)
{
    bool hold = event->type == EVENT_HOLD;

    if (hold == (job->info.state == JOB_HELD))
        return;
    job_move(core, job, hold ? JOB_HELD : JOB_QUEUED);
    job->info.reason = hold ? REASON_HELD : REASON_NONE;
    job_set_text(job, hold ? job_copy_text(event->u.by.text) : NULL);
    queue_changed_job(core, job);
}

/* false: there is nothing to do, as it is. */
static bool do_to_task(struct core *core, struct job *task, const struct event *event)
{
    enum event_type type = event->type;

    if (type == EVENT_KILL)
        return kill_task(core, task, event->u.by.text);
    if (!job_is_waiting(task))
        return false;
    if (type == EVENT_CANCEL)
        cancel_task(core, task, event->u.by.text);
    else
        hold_or_release(core, task, event);
    return true;
}

void array_split(struct core *core, struct job *array, struct core_range range)
{
    for (uint32_t at = core_next_task(&array->info, range.from); at < range.to;
         at = core_next_task(&array->info, at + 1)) {
        struct job *task = make_task(core, array, at);
        emit_owe_persist(core, array);
        add_gone(array, (struct core_range){at, at + 1});
        if (array->info.state == JOB_HELD) {
            job_move(core, task, JOB_HELD);
            task->info.reason = REASON_HELD;
            job_set_text(task, job_copy_text(array->text));
        }
        emit_owe_persist(core, task);
        queue_add(core, task);
    }
}

/* The last one before `end` that waits in it, or ntasks. */
static uint32_t last_waiting(const struct core_job *array, uint32_t end)
{
    for (int i = array->ngone - 1; i >= 0 && end > array->next_task; i--)
        if (array->gone[i].from < end && array->gone[i].to >= end)
            end = array->gone[i].from;
    return end > array->next_task ? end - 1 : array->ntasks;
}

size_t array_let_go(struct core *core, struct job *array, size_t count)
{
    size_t done = 0;

    for (uint32_t at = array->info.ntasks; done < count; done++) {
        at = last_waiting(&array->info, at);
        if (at == array->info.ntasks)
            break;
        array_split(core, array, (struct core_range){at, at + 1});
        index_find(core, array->info.id + 1 + at)->given = true;
    }
    settle(core, array, NULL);
    return done;
}

uint32_t array_count_waiting(const struct job *array, const struct core_range *ranges, int count)
{
    const struct core_job *info = &array->info;
    uint32_t waiting = 0;

    for (int i = 0; i < count; i++)
        waiting += core_range_waiting(info->gone, info->ngone, info->next_task, ranges[i]);
    return waiting;
}

/* Of ranges that have gone, when these have too. */
static int gone_with(const struct job *array, const struct core_range *ranges, int count)
{
    const struct core_range *gone = array->info.gone;
    int at = 0, next = 0, n = 0;
    uint32_t end = array->info.next_task;

    while (at < array->info.ngone || next < count) {
        bool old = next == count || (at < array->info.ngone && gone[at].from < ranges[next].from);
        struct core_range range = old ? gone[at++] : ranges[next++];
        if (range.to <= array->info.next_task)
            continue;
        n += n == 0 || range.from > end;
        end = range.to > end ? range.to : end;
    }
    return n;
}

/* What is before next_task says only which of those were not started. */
static void drop_past(struct job *array)
{
    int past = 0;

    while (past < array->info.ngone && array->array->gone[past].to <= array->info.next_task)
        past++;
    if (past == 0)
        return;
    array->info.ngone -= past;
    memmove(array->array->gone, array->array->gone + past, (size_t)array->info.ngone * sizeof(struct core_range));
}

static bool valid_ranges(const struct job *array, const struct core_range *ranges, int count)
{
    for (int i = 0; i < count; i++)
        if (ranges[i].from >= ranges[i].to || ranges[i].to > array->info.ntasks ||
            (i > 0 && ranges[i].from < ranges[i - 1].to))
            return false;
    return count >= 0;
}

/* Those that wait in the array: away with them. Whether there were any. */
static bool cancel_waiting(struct core *core, struct job *array, const struct core_range *ranges, int count)
{
    uint32_t before = core_tasks_waiting(&array->info);

    for (int i = 0; i < count; i++) {
        struct core_range range = ranges[i];
        range.from = range.from < array->info.next_task ? array->info.next_task : range.from;
        if (range.from < range.to)
            add_gone(array, range);
    }
    array_tell_waiters(core, array);
    emit_owe_persist(core, array);
    return core_tasks_waiting(&array->info) < before;
}

/* The array as it stands in the queue, for verbs that need no rows of tasks. */
static bool do_to_queue(struct core *core, struct job *array, const struct event *event)
{
    if (!job_is_waiting(array))
        return false;
    hold_or_release(core, array, event);
    return true;
}

int array_verb(struct core *core, struct job *array, const struct event *event)
{
    const struct core_range all = {0, array->info.ntasks};
    const struct core_range *ranges = event->u.by.tasks ? event->u.by.tasks : &all;
    int count = event->u.by.tasks ? event->u.by.ntasks : 1;
    bool removes = event->type == EVENT_CANCEL || event->type == EVENT_KILL, done = false;

    core->reply.answered = true;
    core->reply.answer = ANSWER_WRONG_STATE;
    if (!valid_ranges(array, ranges, count))
        return -EINVAL;
    if (!event->u.by.admin && event->u.by.uid != array->info.uid) {
        core->reply.answer = ANSWER_NOT_PERMITTED;
        return 0;
    }
    if (array->info.state == JOB_DONE || array->info.state == JOB_CANCELLED)
        return 0;
    if (event->u.by.tasks && !removes && !after_met(array)) /* a task alone would wait for nothing */
        return 0;
    if (array->info.ngone + count > CORE_MAX_GONE)
        drop_past(array);
    if (((event->u.by.tasks || removes) && gone_with(array, ranges, count) > CORE_MAX_GONE) ||
        (event->u.by.tasks && !removes && array_count_waiting(array, ranges, count) > CORE_MAX_SPLIT)) {
        core->reply.answer = ANSWER_TOO_MANY;
        return 0;
    }
    if (event->type == EVENT_TOP) {
        core->reply.answer = top_array(core, array, ranges, count, !event->u.by.tasks);
        settle(core, array, NULL);
        return 0;
    }
    if (removes)
        done = cancel_waiting(core, array, ranges, count);
    else if (!event->u.by.tasks)
        done = do_to_queue(core, array, event);
    else
        for (int i = 0; i < count; i++)
            array_split(core, array, ranges[i]);
    LIST_FOR_EACH_SAFE (node, &array->array->tasks)
        if (core_range_has(ranges, count, TASK(node)->info.task - 1))
            done = do_to_task(core, TASK(node), event) || done;
    if (array->info.state != JOB_DONE && array->info.state != JOB_CANCELLED)
        settle(core, array, removes ? event->u.by.text : NULL);
    core->reply.answer = done ? ANSWER_OK : ANSWER_WRONG_STATE;
    return 0;
}

/* ---- restart ---- */

void array_link(struct core *core, struct job *job)
{
    struct job *array = job->info.array != 0 ? index_find(core, job->info.array) : NULL;

    if (array && array->array)
        link_task(array, job);
    for (uint32_t i = 0; job->array && i < job->info.ntasks;) {
        struct job *task = index_from(core, job->info.id + 1 + i);
        if (!task || task->info.id > job->info.id + job->info.ntasks)
            break;
        if (task->info.array == job->info.id && !task->of)
            link_task(job, task);
        i = (uint32_t)(task->info.id - job->info.id);
    }
}

/* The last task of one may have been on a host that is gone. */
void array_settle_restored(struct core *core)
{
    if (!core->arrays_restored)
        return;
    core->arrays_restored = false;
    core->nlost_tasks = 0;
    for (size_t i = 0; i < core->nindex; i++) {
        struct job *job = core->index[i].job;
        if (job && job->array && job->info.state == JOB_STARTED)
            settle(core, job, job->text);
    }
}
