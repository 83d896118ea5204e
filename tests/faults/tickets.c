/* tickets.c - a world in which jobs need tickets. */
#include "config.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ticket/keys.h"
#include "tests/faults/world.h"
#include "tests/faults/world_internal.h"

enum { TICKET_USER = 3 }; /* sys: every Debian has it, and runs nothing as it */

/* By its name; what is there keeps its number. */
static void make_user(void)
{
    char line[1024];
    FILE *from = fopen("/etc/passwd", "re"), *to = fopen(WORLD "/passwd", "we");
    if (!from || !to) {
        world_must_fail("copy /etc/passwd");
        return;
    }
    while (fgets(line, sizeof(line), from))
        if (strncmp(line, "elmer-ticket:", 13) != 0)
            fputs(line, to);
    fprintf(to, "elmer-ticket:x:%d:%d::/:/bin/false\n", TICKET_USER, TICKET_USER);
    fclose(from);
    MUST(fclose(to));
    MUST(mount(WORLD "/passwd", "/etc/passwd", NULL, MS_BIND, NULL));
}

/* A directory that the machine need not have: a file system of the world is put over what there is of its path. */
static void make_place(const char *path)
{
    char part[200];
    struct stat st;
    size_t there = 0;
    for (size_t i = 1; i <= strlen(path); i++)
        if (path[i] == '/' || !path[i]) {
            snprintf(part, sizeof(part), "%.*s", (int)i, path);
            if (stat(part, &st) == 0)
                there = i;
        }
    if (there == strlen(path))
        return;
    snprintf(part, sizeof(part), "%.*s", (int)there, path);
    MUST(mount("place", part, "tmpfs", 0, "mode=0755,size=1m"));
    for (size_t i = there + 1; i <= strlen(path); i++)
        if (path[i] == '/' || !path[i]) {
            snprintf(part, sizeof(part), "%.*s", (int)i, path);
            MUST(mkdir(part, 0755));
        }
}

/* As who may read the keys. */
static _Noreturn void certify(void)
{
    static struct ticket_keys keys;
    uint8_t secret[TICKET_KEY_BYTES], authority[TICKET_KEY_BYTES], certificate[TICKET_SIGNATURE_BYTES];
    uint8_t bytes[TICKET_BYTES_MAX];
    struct err err = ERR_INIT;
    bool fine = ticket_key_create(secret, authority);
    MUST(setresgid(TICKET_USER, TICKET_USER, TICKET_USER));
    MUST(setresuid(TICKET_USER, TICKET_USER, TICKET_USER));
    for (int i = 0; i < HOSTS && fine; i++) {
        char dir[40], name[] = {(char)('a' + i), 0};
        snprintf(dir, sizeof(dir), WORLD "/host-%s/keys", name);
        fine = ticket_keys_open(&keys, dir, name, &err) == 0 &&
               ticket_sign_bytes(secret, bytes, ticket_certified_bytes(name, keys.key, bytes), certificate) &&
               ticket_keys_certify(&keys, authority, certificate, &err) == 0;
        ticket_keys_close(&keys);
    }
    if (!fine)
        printf("# %s\n", err.text);
    fflush(stdout);
    _exit(fine ? 0 : 1);
}

void world_with_tickets(struct world *world)
{
    int status = 0;
    world->tickets = true;
    make_user();
    make_place(ELMER_TICKET_DIR); /* by which libelmer knows that it is worth to wait for who signs */
    make_place(ELMER_RSD_RUNDIR);
    MUST(mount(WORLD "/host-a", ELMER_RSD_RUNDIR, NULL, MS_BIND, NULL));
    for (int i = 0; i < HOSTS; i++) {
        char dir[40];
        snprintf(dir, sizeof(dir), WORLD "/host-%c/keys", 'a' + i);
        MUST(mkdir(dir, 0700));
        MUST(chown(dir, TICKET_USER, TICKET_USER));
    }
    fflush(NULL);
    pid_t pid = fork();
    MUST(pid);
    if (pid == 0)
        certify();
    MUST(waitpid(pid, &status, 0));
    if (status != 0)
        world_must_fail("certify the hosts' keys");
}
