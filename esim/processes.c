#include "config.h"

#include "esim/processes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void processes_run(struct result *results, size_t count, int at_a_time, void (*work)(size_t i, void *data), void *data,
                   FILE *progress)
{
    int there = 0;

    fflush(NULL);
    for (size_t i = 0; i < count || there > 0;) {
        pid_t pid;
        if (there == at_a_time || i == count) {
            if (wait(NULL) > 0)
                there--;
            else if (errno == ECHILD) /* our parent has SIGCHLD ignored: all of them have ended */
                there = 0;
            continue;
        }
        if (progress)
            fprintf(progress, "\r%zu of %zu ", i + 1, count);
        pid = fork();
        if (pid == 0) {
            work(i, data);
            fflush(NULL);
            _exit(0);
        }
        if (pid < 0)
            snprintf(results[i].fault, sizeof(results[i].fault), "fork: %s", strerror(errno));
        there += pid > 0;
        i++;
    }
    for (size_t i = 0; i < count; i++)
        if (!results[i].done && results[i].fault[0] == '\0')
            snprintf(results[i].fault, sizeof(results[i].fault), "its process has ended before it had");
    if (progress)
        fprintf(progress, "\r\033[K");
}

void *processes_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}
