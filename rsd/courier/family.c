/* family.c - see family.h. A scan of /proc costs a few microseconds for each process of the host, and is made when
 * something ends that is not to. Who makes processes meanwhile has some that were not seen: another scan finds them. */
#include "config.h"

#include "rsd/courier/family.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum mark { BELOW = 1 /* the courier */, FOUND = 2 };
struct scanned {
    struct relative who;
    pid_t parent, session;
    bool alive;
    unsigned marks;
    struct scanned *above; /* NULL: none that is known */
};
struct table {
    struct scanned *all; /* by pid */
    size_t count, room;
};

/* ---- what there is ---- */

static bool read_process(int proc, const char *name, struct scanned *process)
{
    char path[300], text[600], state, *at;
    int fd, fields;
    ssize_t got;
    snprintf(path, sizeof(path), "%s/stat", name);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    at = strrchr(text, ')'); /* of the name, which may have others */
    *process = (struct scanned){.who = {.pid = (pid_t)strtol(name, NULL, 10)}};
    fields = at ? sscanf(at + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                         &state, &process->parent, &process->who.group, &process->session, &process->who.begun)
                : 0;
    process->alive = fields == 5 && state != 'Z' && state != 'X';
    return fields == 5;
}

static struct scanned *next_place(struct table *table)
{
    struct scanned *more;
    size_t room = table->room ? 2 * table->room : 512;
    if (table->count < table->room)
        return &table->all[table->count];
    more = reallocarray(table->all, room, sizeof(*more));
    if (!more)
        return NULL;
    table->all = more;
    table->room = room;
    return &table->all[table->count];
}

static int by_pid(const void *a, const void *b)
{
    const struct relative *one = a, *two = b; /* the first of a process, too */
    return (one->pid > two->pid) - (one->pid < two->pid);
}

static struct scanned *process_of(const struct table *table, pid_t pid)
{
    const struct scanned wanted = {.who = {.pid = pid}};
    return table->count > 0 ? bsearch(&wanted, table->all, table->count, sizeof(wanted), by_pid) : NULL;
}

static bool read_table(struct table *table)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    struct scanned *place = proc ? next_place(table) : NULL;
    while (place && (entry = readdir(proc)))
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(dirfd(proc), entry->d_name, place)) {
            table->count++;
            place = next_place(table);
        }
    if (proc)
        closedir(proc);
    if (!place)
        return false;
    qsort(table->all, table->count, sizeof(*table->all), by_pid);
    for (size_t i = 0; i < table->count; i++)
        table->all[i].above = process_of(table, table->all[i].parent);
    return true;
}

/* Also to all that descends from who has it. */
static void spread(struct table *table, enum mark mark)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < table->count; i++) {
            struct scanned *process = &table->all[i];
            if (process->marks & mark || !process->above || !(process->above->marks & mark))
                continue;
            process->marks |= mark;
            changed = true;
        }
    }
}

/* ---- whose it is ---- */

/* The children that are meant. */
struct kin {
    const struct child *children;
    size_t count;
    bool (*counts)(const struct child *);
};

static bool is_meant(const struct kin *kin, size_t i)
{
    return kin->children[i].pid > 0 && kin->counts(&kin->children[i]);
}

/* The number of a child that has been reaped may be another's by now. */
static bool is_of_session(const struct table *table, const struct scanned *process, const struct child *child)
{
    return process->session == child->pid && !(child->reaped && process_of(table, child->pid));
}

/* By the name that /proc gives it: to ask the file itself would wait for a file server that does not answer. 0: none.
 */
static ino_t pipe_behind(int folder, const char *descriptor)
{
    char text[40] = "", *end;
    unsigned long long number;
    if (readlinkat(folder, descriptor, text, sizeof(text) - 1) < 0 || strncmp(text, "pipe:[", 6) != 0)
        return 0;
    number = strtoull(text + 6, &end, 10);
    return *end == ']' ? (ino_t)number : 0;
}

static bool is_output(ino_t pipe, const struct kin *kin)
{
    for (size_t i = 0; pipe && i < kin->count; i++)
        if (is_meant(kin, i) && (pipe == kin->children[i].pipes[0] || pipe == kin->children[i].pipes[1]))
            return true;
    return false;
}

static bool holds_output(const struct scanned *process, const struct kin *kin)
{
    char path[40];
    DIR *folder;
    struct dirent *entry;
    bool holds = false;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)process->who.pid);
    folder = opendir(path);
    while (folder && !holds && (entry = readdir(folder)))
        holds = is_output(pipe_behind(dirfd(folder), entry->d_name), kin);
    if (folder)
        closedir(folder);
    return holds;
}

static bool was_found(const struct family *family, const struct relative *who)
{
    const struct relative *before = NULL;
    if (family->count > 0)
        before = bsearch(who, family->members, family->count, sizeof(*who), by_pid);
    return before && before->begun == who->begun;
}

static void find(struct table *table, const struct family *family, const struct kin *kin)
{
    for (size_t i = 0; i < table->count; i++) {
        struct scanned *process = &table->all[i];
        bool found = was_found(family, &process->who);
        for (size_t k = 0; k < kin->count && !found; k++)
            found = is_meant(kin, k) && is_of_session(table, process, &kin->children[k]);
        if (process->marks & BELOW && (found || (process->parent == getpid() && holds_output(process, kin))))
            process->marks |= FOUND;
    }
}

static void keep(struct family *family, const struct table *table)
{
    struct relative *members = calloc(table->count + 1, sizeof(*members));
    size_t count = 0;
    if (!members)
        return;
    for (size_t i = 0; i < table->count; i++)
        if (table->all[i].marks & FOUND && table->all[i].alive)
            members[count++] = table->all[i].who;
    free(family->members);
    family->members = members;
    family->count = count;
}

void family_scan(struct family *family, const struct child *children, size_t nchildren,
                 bool (*counts)(const struct child *))
{
    const struct kin kin = {children, nchildren, counts};
    struct table table = {NULL, 0, 0};
    struct scanned *self = read_table(&table) ? process_of(&table, getpid()) : NULL;
    if (!self) {
        free(table.all);
        family_fini(family);
        return;
    }
    self->marks = BELOW;
    spread(&table, BELOW);
    self->marks = 0;
    find(&table, family, &kin);
    spread(&table, FOUND);
    keep(family, &table);
    free(table.all);
}

/* ---- what is done to it ---- */

static bool is_group_of(const struct child *children, size_t nchildren, pid_t group)
{
    for (size_t i = 0; i < nchildren; i++)
        if (children[i].pid == group && !children[i].reaped)
            return true;
    return false;
}

void family_signal(const struct family *family, const struct child *children, size_t nchildren, int number)
{
    for (size_t i = 0; i < family->count; i++)
        if (!is_group_of(children, nchildren, family->members[i].group))
            (void)kill(family->members[i].pid, number);
}

void family_fini(struct family *family)
{
    free(family->members);
    *family = (struct family){NULL, 0};
}
