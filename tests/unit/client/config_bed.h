/* config_bed.h - a machine for the check of configurations: a directory with files and certificates, a name service
 * that knows what the test says, addresses that can be bound or not, and units of the daemons, if there are any. */
#ifndef TESTS_UNIT_CLIENT_CONFIG_BED_H
#define TESTS_UNIT_CLIENT_CONFIG_BED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BED_TEXT = 65536 };

struct bed {
    char dir[64], conf[100], pki[100];
    const char *user;                  /* who runs the test */
    char out[BED_TEXT], err[BED_TEXT]; /* of the last run; err has the names of files without directories */
    int ca_days;                       /* from now on which the next CA ends; 0: 4000 */
    int bind_error;                    /* errno of bind(2) to an internet address; 0: it works */
    const char *own;                   /* its numeric address, of IPv4; that of ws1 */
    const char *names[8][2];           /* name, numeric address; all others are unknown */
};
extern struct bed bed;

void bed_begin(void); /* anew */
void bed_put(const char *name, const char *text);
void bed_put_f(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Certificates for name (of elmer, if server) and more, or NULL, that end so many days from now. */
void bed_make_pki(bool server, const char *name, const char *more, int days);
/* A socket that serves "s" in the directory, as elmer's does; and one of the user (another one: root only) that listens
 * at that numeric address, at a port that is free. Both are the caller's to close. */
int bed_serve(void);
int bed_listen(const char *host, uid_t user, unsigned *port);
/* Run it with both outputs caught; returns what it returns. */
int bed_run(int (*call)(const char *path, bool required, const char *user), const char *user);
int bed_show(int (*call)(const char *path, bool required, bool defaults), bool defaults);
void bed_said(const char *words);     /* in err */
void bed_said_not(const char *words); /* neither in out nor in err */
int bed_lines(void);                  /* of err */

#endif
