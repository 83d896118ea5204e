/* reader.c - output of the job's processes, read for the user by whoever he asks from.
 *
 * Asked for is a process by its number: which file that is was said when it was started, so nobody can name another
 * one. A child of the supervisor in the job's group becomes the user completely, as the command has, and only then
 * touches the path: it opens what is a regular file, reads one part of it, and writes that with a head into a pipe,
 * which has room for all of it. It is nobody's rival: what the user has put at that path may cost CPU time, which
 * must not be taken from higher jobs. One part at a time, so often and no more often; after READ_MS the child is
 * killed, because a file may be on a disk that does not answer.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "rsd/root/group.h"
#include "rsd/root/sched.h"
#include "rsd/sup/sup.h"

enum { PART_BYTES = 16 << 10, READ_MS = 2000, NO_FILE = -1 /* error: it is none that has an end */ };

/* Ahead of the bytes in the pipe. */
struct head {
    int error; /* errno, or NO_FILE */
    int64_t offset, size;
};

static const struct pace_limit read_limit = {20, 20};

/* ---- what is known of the files ---- */

void reader_note(struct process *process, const struct wire_start *start)
{
    if (process->role != ROLE_COMMAND)
        return;
    process->dir = strdup(start->dir);
    process->files[0] = *start->output ? strdup(start->output) : NULL;
    process->files[1] = *start->errors ? strdup(start->errors) : NULL;
}

void reader_forget(struct process *process)
{
    free(process->dir);
    free(process->files[0]);
    free(process->files[1]);
}

/* ---- the answer ---- */

/* Not kept while nobody listens: each root half is told. */
void reader_offer(struct sup *sup)
{
    struct wire_message message = {.type = WIRE_pong, .id = WIRE_MINOR};
    if (sup->connected)
        sup_tell(sup, &message);
}

static void tell(struct sup *sup, uint64_t request, uint32_t process, const struct head *head, const char *data,
                 const char *text, bool again)
{
    struct wire_message message = {.type = WIRE_file_part, .id = request};
    char safe[1000];
    if (!sup->connected)
        return; /* whoever asked asks again */
    message.u.file_part.job = sup->job;
    message.u.file_part.attempt = sup->attempt;
    message.u.file_part.process = process;
    message.u.file_part.offset = head->offset;
    message.u.file_part.size = head->size;
    message.u.file_part.data = data;
    message.u.file_part.again = again;
    message.u.file_part.text = str_printable(safe, sizeof(safe), text, strlen(text));
    sup_tell(sup, &message);
}

static void refuse(struct sup *sup, const struct wire_message *message, const char *text, bool again)
{
    tell(sup, message->id, (uint32_t)message->u.read_file.process, &(struct head){.offset = 0}, "", text, again);
}

/* ---- the child ---- */

static _Noreturn void answer(const struct head *head, const char *bytes, size_t size)
{
    bool sent = write(STDOUT_FILENO, head, sizeof(*head)) == (ssize_t)sizeof(*head) &&
                write(STDOUT_FILENO, bytes, size) == (ssize_t)size;
    _exit(sent ? 0 : 1);
}

static _Noreturn void child_read(const struct sup *sup, const struct process *process, const char *path, int64_t offset,
                                 int out_fd)
{
    static char bytes[PART_BYTES];
    struct head head = {.error = 0};
    struct stat status;
    if (sup->rt)
        sched_rank(0, (struct order_rank){SCHED_OTHER, 0}, false); /* what is at path may cost CPU time */
    child_become_user(&sup->user, out_fd);
    int fd = chdir(process->dir) < 0 ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0) {
        head.error = errno;
        answer(&head, bytes, 0);
    }
    if (!S_ISREG(status.st_mode)) {
        head.error = NO_FILE;
        answer(&head, bytes, 0);
    }
    head.size = status.st_size;
    head.offset = offset >= 0 ? offset : head.size > -offset ? head.size + offset : 0;
    ssize_t got = pread(fd, bytes, sizeof(bytes), head.offset);
    if (got < 0)
        head.error = errno;
    answer(&head, bytes, got > 0 ? (size_t)got : 0);
}

/* ---- the supervisor ---- */

static int begin(struct sup *sup, const struct process *process, const char *path, int64_t offset)
{
    struct reader *reader = &sup->reader;
    int pair[2], pidfd = -1;
    pid_t pid;
    reader->bytes = malloc(sizeof(struct head) + PART_BYTES);
    reader->size = 0;
    if (!reader->bytes || pipe2(pair, O_CLOEXEC) < 0) {
        free(reader->bytes);
        return -ENOMEM;
    }
    pid = group_fork(sup->job_fd, &pidfd);
    if (pid == 0)
        child_read(sup, process, path, offset, pair[1]);
    close(pair[1]);
    if (pid < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
        close(pair[0]);
        if (pidfd >= 0)
            close(pidfd);
        free(reader->bytes);
        return pid < 0 ? pid : -errno;
    }
    reader->fd = pair[0];
    reader->pidfd = pidfd;
    return 0;
}

void reader_begin(struct sup *sup, const struct wire_message *message)
{
    const struct wire_read_file *read = &message->u.read_file;
    const struct process *process = process_find(sup, (uint32_t)read->process);
    const char *path = process && process->role == ROLE_COMMAND ? process->files[read->errors] : NULL;
    int64_t now = mono_ms(mono_now());
    if (!sup->begun || sup->quit || !path || !process->dir) {
        refuse(sup, message, "this process has not been started here, or has no file to write to", false);
        return;
    }
    if (sup->reader.fd >= 0 || pace_wait_ms(&sup->reader.pace, &read_limit, now) > 0) {
        refuse(sup, message, "another part is being read", true);
        return;
    }
    pace_take(&sup->reader.pace, &read_limit, now);
    sup->reader.request = message->id;
    sup->reader.process = process->number;
    sup->reader.deadline_ms = now + READ_MS;
    if (begin(sup, process, path, read->offset) < 0)
        refuse(sup, message, "no process can be started that reads it; are limits on processes or memory reached?",
               true);
}

static void end(struct sup *sup)
{
    struct reader *reader = &sup->reader;
    close(reader->fd);
    if (reader->pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, reader->pidfd, SIGKILL, NULL, 0); /* if it has not ended */
        close(reader->pidfd);
    }
    free(reader->bytes);
    reader->fd = reader->pidfd = -1;
    reader->bytes = NULL;
}

static void tell_part(struct sup *sup)
{
    static char data[2 * PART_BYTES + 1];
    const struct reader *reader = &sup->reader;
    struct head head;
    char text[200] = "";
    size_t count = reader->size - sizeof(head);
    memcpy(&head, reader->bytes, sizeof(head));
    hex_write((const uint8_t *)reader->bytes + sizeof(head), count, data);
    if (head.error == NO_FILE)
        snprintf(text, sizeof(text), "the output goes to what is no file with an end, such as a terminal or /dev/null");
    else if (head.error)
        snprintf(text, sizeof(text), "its output cannot be read by %.64s: %s", sup->user.name, strerror(head.error));
    tell(sup, reader->request, reader->process, &head, data, text, false);
}

void reader_step(struct sup *sup, bool readable)
{
    struct reader *reader = &sup->reader;
    const struct head none = {.offset = 0};
    ssize_t got = -1;
    if (reader->fd < 0)
        return;
    if (readable)
        got = read(reader->fd, reader->bytes + reader->size, sizeof(struct head) + PART_BYTES - reader->size);
    if (got > 0)
        reader->size += (size_t)got;
    assert(reader->size <= sizeof(struct head) + PART_BYTES);
    if (got == 0 && reader->size >= sizeof(struct head)) /* also when all of the room is used: nothing more comes */
        tell_part(sup);
    else if (got == 0)
        tell(sup, reader->request, reader->process, &none, "", "who read it was ended: is the job ending?", true);
    else if (mono_ms(mono_now()) >= reader->deadline_ms)
        tell(sup, reader->request, reader->process, &none, "",
             "its disk does not answer in time, or the host is too busy", true);
    else
        return;
    end(sup);
}

void reader_fini(struct sup *sup)
{
    if (sup->reader.fd >= 0)
        end(sup);
}
