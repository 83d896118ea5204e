/* eadmin.h - the verbs of eadmin. Each gets its own arguments and returns the exit code. */
#ifndef CLIENT_EADMIN_H
#define CLIENT_EADMIN_H

#include "client/common.h"

/* Of the table in eadmin.c. */
enum {
    OPTION_HOSTS = OPTION_FIRST_FREE,
    OPTION_LISTEN,
    OPTION_NOW,
    OPTION_RESTORE,
    OPTION_FORCE,
    OPTION_USES,
    OPTION_NAME,
    OPTION_ADDRESS,
    OPTION_VALID,
    OPTION_REASON,
    OPTION_WAIT,
    OPTION_KILL_AFTER,
    OPTION_SINCE,
    OPTION_JSON,
    OPTION_USER,
    OPTION_NO_JOBS,
    OPTION_DEFAULT
};
/* options_next() with those options of the table that the verb takes, ended by 0, and the common ones. */
int eadmin_option(int argc, char **argv, const char *order, const int *takes);

/* A verb that takes --json alone (eadmin_ask.c): reads its arguments and calls answer, or refuses them. Returns the
 * exit code of the command. */
int eadmin_query(int argc, char **argv, int (*answer)(bool json));

/* On the queue host, as root (eadmin_ca.c). */
int eadmin_init(int argc, char **argv);
int eadmin_token(int argc, char **argv);  /* eadmin_token.c */
int eadmin_backup(int argc, char **argv); /* eadmin_backup.c */
/* So that jobs submitted here have tickets that the cluster's hosts believe (eadmin_ticket.c); says why not. */
struct ca;
void eadmin_certify_ticket_key(const struct ca *ca, const char *host);
/* Of elmer, from anywhere (eadmin_ask.c). */
struct wire_message;
/* One that is answered by done, whose text it prints. Returns the exit code. */
int eadmin_ask(struct wire_message *request);
int eadmin_done(struct elmer *elmer, struct wire_message *request);
/* Has elmer write down what this command has done itself; where it does not, that is said, and all goes on. host "":
 * about none. */
void eadmin_note(const char *what, const char *host, const char *text);
int eadmin_hosts(int argc, char **argv);
int eadmin_hold(int argc, char **argv);
int eadmin_release(int argc, char **argv);
/* eadmin_drain.c */
int eadmin_remove(int argc, char **argv);
int eadmin_drain(int argc, char **argv);
int eadmin_resume(int argc, char **argv);
/* eadmin_doctor.c */
int eadmin_doctor(int argc, char **argv);
/* eadmin_power.c */
int eadmin_shutdown(int argc, char **argv);
int eadmin_reboot(int argc, char **argv);
/* eadmin_log.c */
int eadmin_log(int argc, char **argv);
/* On the host whose files are meant (eadmin_config.c). */
int eadmin_config(int argc, char **argv);
/* eadmin_set.c */
int eadmin_set(int argc, char **argv);
int eadmin_show(int argc, char **argv);

#endif
