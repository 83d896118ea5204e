/* tree.c - down by names, up by "..".
 *
 * A user nests as many groups as he likes, far more than a process has descriptors, with paths longer than PATH_MAX. So
 * the names in a group are read when it is entered, all at once: places in a directory of the kernel's are hashes of
 * names, and whoever chooses names of one hash would have some skipped, or read without an end. They are freed when it
 * is left. The way back is "..": in cgroup2 nothing is renamed, so it leads to where we came from, also from a group
 * that has been removed. The user may forbid it (chmod(2) of a group of his), so the upper groups are kept open, and
 * who goes astray goes on from the last of these.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/escapes/tree.h"

enum { NAMES_MAX = 64 << 20 }; /* bytes; the kernel's of so many groups are some gigabytes */

struct entry { /* of getdents64(2) */
    uint64_t ino;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};

/* The groups from the top to where we are. names: of each those that are still to be entered, one after the other. */
struct descent {
    int anchors[TREE_ANCHORS];
    int fd; /* of the last one */
    size_t *begins;
    size_t depth, depths;
    char *names;
    size_t used, size;
};

static bool has_room(struct descent *descent, size_t more)
{
    size_t size = descent->size ? descent->size * 2 : 65536;
    char *names;
    if (descent->used + more <= descent->size)
        return true;
    if (size > NAMES_MAX)
        return false;
    names = realloc(descent->names, size);
    if (!names)
        return false;
    descent->names = names;
    descent->size = size;
    return true;
}

static void note(struct tree *tree, struct descent *descent, const char *name)
{
    size_t size = strlen(name) + 1;
    if (!has_room(descent, size)) {
        tree->missed++;
        return;
    }
    memcpy(descent->names + descent->used, name, size);
    descent->used += size;
}

/* A name of a group may begin with a dot. */
static bool is_below(const struct entry *entry)
{
    return entry->type == DT_DIR && strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0;
}

static void note_all(struct tree *tree, struct descent *descent)
{
    _Alignas(struct entry) char buffer[4096];
    long got;
    while ((got = syscall(SYS_getdents64, descent->fd, buffer, sizeof(buffer))) > 0) {
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(const void *)(buffer + at);
            at += entry->length;
            if (is_below(entry) && entry->ino != tree->skip)
                note(tree, descent, entry->name);
        }
        tree->rest(tree->data);
    }
}

/* fd: of the group below the last one. */
static void enter(struct tree *tree, struct descent *descent, int fd)
{
    if (descent->depth == descent->depths) {
        size_t depths = descent->depths ? descent->depths * 2 : 64;
        size_t *begins = reallocarray(descent->begins, depths, sizeof(*begins));
        if (!begins) {
            tree->missed++;
            close(fd);
            return;
        }
        descent->begins = begins;
        descent->depths = depths;
    }
    if (descent->depth > TREE_ANCHORS) /* the one above is not kept */
        close(descent->fd);
    if (descent->depth < TREE_ANCHORS)
        descent->anchors[descent->depth] = fd;
    descent->begins[descent->depth++] = descent->used;
    descent->fd = fd;
    tree->visit(tree->data, fd);
    note_all(tree, descent);
    tree->rest(tree->data);
}

/* Leave the last one. */
static void leave(struct tree *tree, struct descent *descent)
{
    int up = -1;
    descent->used = descent->begins[--descent->depth];
    if (descent->depth > TREE_ANCHORS)
        up = openat(descent->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(descent->fd);
    if (descent->depth > TREE_ANCHORS && up < 0) { /* astray */
        tree->missed++;
        descent->depth = TREE_ANCHORS;
        descent->used = descent->begins[TREE_ANCHORS];
    }
    if (descent->depth > 0)
        descent->fd = up >= 0 ? up : descent->anchors[descent->depth - 1];
}

/* The next one below the last, or -1. */
static int next_below(struct tree *tree, struct descent *descent)
{
    const size_t begin = descent->begins[descent->depth - 1];
    while (descent->used > begin) {
        int fd;
        do {
            descent->used--;
        } while (descent->used > begin && descent->names[descent->used - 1]);
        fd = openat(descent->fd, descent->names + descent->used, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            return fd;
        tree->missed += errno != ENOENT && errno != ENODEV; /* else it has been removed */
        tree->rest(tree->data);
    }
    return -1;
}

void tree_walk(struct tree *tree, const char *top)
{
    struct descent descent = {.fd = -1};
    int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tree->missed = 0;
    if (fd >= 0)
        enter(tree, &descent, fd);
    while (descent.depth > 0) {
        fd = next_below(tree, &descent);
        if (fd >= 0)
            enter(tree, &descent, fd);
        else
            leave(tree, &descent);
    }
    free(descent.begins);
    free(descent.names);
}
