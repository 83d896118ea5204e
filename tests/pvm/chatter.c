/* chatter - a PVM program for the tests of the agent.
 *   chatter parent N LINES [catch]  spawn N children that print LINES lines each; wait for their ends; catch:
 * pvm_catchout() chatter child LINES             lines of many lengths in pieces that do not respect lines, the last
 * without newline chatter leave                   spawn a task that sleeps, and end chatter sleeper print a line and
 * its pid, sleep chatter forge TID               send TID what only a daemon may: a request to start a daemon; and
 * rubbish chatter add HOST                add a host, print PVM's answer
 */
#include "config.h"

#include <stdio.h> /* before pvm3.h, or there is no pvm_catchout */
#include <pvm3.h>
#include <pvmproto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHILDREN_MAX = 64, GONE = 1, SECONDS = 60 };

static int fail(const char *what)
{
    fprintf(stderr, "chatter: %s failed\n", what);
    return 1;
}

static int spawn_self(char **argv, int n, int *tids)
{
    char self[4096];
    static char anywhere[] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0)
        return -1;
    self[length] = '\0';
    return pvm_spawn(self, argv, PvmTaskDefault, anywhere, n, tids);
}

static int parent(int n, char *lines, int catch)
{
    int tids[CHILDREN_MAX];
    char mode[] = "child";
    char *argv[] = {mode, lines, NULL};
    if (n < 1 || n > CHILDREN_MAX || (catch && pvm_catchout(stdout) < 0))
        return fail("pvm_catchout");
    if (spawn_self(argv, n, tids) != n || pvm_notify(PvmTaskExit, GONE, n, tids) < 0)
        return fail("pvm_spawn");
    for (int i = 0; i < n; i++)
        if (pvm_recv(-1, GONE) < 0)
            return fail("pvm_recv");
    pvm_exit();
    return 0;
}

/* "line TID I LINES xxx..x end": what the test looks for. */
static int child(int lines)
{
    static char text[3000];
    int tid = pvm_mytid();
    if (tid < 0)
        return fail("pvm_mytid");
    for (int i = 0; i < lines; i++) {
        int fill = (i * 37) % 2000;
        int head = snprintf(text, sizeof(text), "line %x %d %d ", (unsigned)tid, i, lines);
        memset(text + head, 'x', (size_t)fill);
        int size =
            head + fill +
            snprintf(text + head + fill, sizeof(text) - (size_t)(head + fill), " end%s", i + 1 < lines ? "\n" : "");
        for (int done = 0, piece; done < size; done += piece) {
            piece = size - done < 700 ? size - done : 700;
            if (write(1, text + done, (size_t)piece) != piece)
                return fail("write");
        }
    }
    pvm_exit();
    return 0;
}

static int leave(void)
{
    int tid;
    char mode[] = "sleeper";
    char *argv[] = {mode, NULL};
    if (spawn_self(argv, 1, &tid) != 1)
        return fail("pvm_spawn");
    pvm_exit();
    return 0;
}

static int sleeper(void)
{
    pvm_mytid();
    printf("sleeper %d\n", (int)getpid());
    fflush(stdout);
    sleep(SECONDS);
    return 0;
}

static int forge(int victim)
{
    int one = 1, tid = 0x80000;
    char empty[] = "", host[] = "ws2", command[] = "/bin/false";
    pvm_setopt(PvmResvTids, 1);
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&one, 1, 1);
    pvm_pkint(&tid, 1, 1);
    pvm_pkstr(empty);
    pvm_pkstr(host);
    pvm_pkstr(command);
    pvm_pkstr(empty);
    pvm_pkstr(empty);
    if (pvm_send(victim, SM_STHOST) < 0)
        return fail("pvm_send");
    for (int i = 0; i < 1000; i++)
        if (pvm_send(victim, 1 + i) < 0)
            return fail("pvm_send");
    pvm_exit();
    return 0;
}

static int add(char *host)
{
    int result = 0;
    int added = pvm_addhosts(&host, 1, &result);
    printf("added %d code %d\n", added, result);
    pvm_exit();
    return 0;
}

int main(int argc, char **argv)
{
    alarm(SECONDS); /* nobody waits for ever in a test */
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "parent") == 0 && argc >= 4)
        return parent(atoi(argv[2]), argv[3], argc > 4);
    if (strcmp(mode, "child") == 0 && argc == 3)
        return child(atoi(argv[2]));
    if (strcmp(mode, "leave") == 0)
        return leave();
    if (strcmp(mode, "sleeper") == 0)
        return sleeper();
    if (strcmp(mode, "forge") == 0 && argc == 3)
        return forge((int)strtol(argv[2], NULL, 16));
    if (strcmp(mode, "add") == 0 && argc == 3)
        return add(argv[2]);
    return fail("reading the arguments");
}
