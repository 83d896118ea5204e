/* bomb.c - many processes that spin, for the system tests: a hostile job, bounded in time by itself.
 *
 * bomb [--ignore-term] [--sessions] [--wait] COUNT SECONDS
 *   --ignore-term  SIGTERM does nothing
 *   --sessions     each process in a session of its own, where the kernel's autogroups give it a share of its own
 *   --wait         they wait instead of spinning: what as many cost that do nothing
 * They begin to spin when all of them are there; then it writes "ready". Each ends by an alarm, which nothing here
 * catches.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static bool waiting;

static _Noreturn void spin(unsigned seconds)
{
    const time_t end = time(NULL) + (time_t)seconds;
    alarm(seconds);
    while (waiting)
        pause();
    while (time(NULL) < end)
        for (volatile int i = 0; i < 100000; i++)
            ;
    _exit(0);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"ignore-term", 0, NULL, 'i'}, {"sessions", 0, NULL, 's'}, {"wait", 0, NULL, 'w'}, {NULL, 0, NULL, 0}};
    bool sessions = false;
    int count, made = 1, gate[2];
    unsigned seconds;
    for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        if (c == 'i')
            signal(SIGTERM, SIG_IGN);
        else if (c == 's')
            sessions = true;
        else if (c == 'w')
            waiting = true;
        else
            return 2;
    }
    if (optind != argc - 2)
        return 2;
    count = atoi(argv[optind]);
    seconds = (unsigned)atoi(argv[optind + 1]);
    if (count < 1 || count > 2000 || seconds < 1 || seconds > 600) {
        fputs("bomb: 1..2000 processes, 1..600 seconds\n", stderr);
        return 2;
    }
    alarm(seconds);
    if (pipe(gate) < 0)
        return 1;
    for (; made < count; made++) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0) {
            char none;
            close(gate[1]);
            (void)!read(gate[0], &none, 1); /* until nobody can write any more */
            if (sessions)
                setsid();
            spin(seconds);
        }
    }
    close(gate[1]);
    printf("ready %d\n", made);
    fflush(stdout);
    spin(seconds);
}
