/* own_user.h - the user elmer-sup: of supervisors, of the keeper, and of who looks for what has left a job. */
#ifndef RSD_OWN_USER_H
#define RSD_OWN_USER_H

#include <sys/types.h>

#include "rsd/root/caps.h"

/* It is handed over in the environment of a program of ours. */
#define OWN_USER_VARIABLE "ELMER_SUPERVISOR_UID"
/* Where there is no such user: no user's by the plans of Debian and systemd, which nobody's is. */
enum { OWN_USER_NONE = 65533 };
/* What the variable says; an rsd of before says nothing. */
uid_t own_user(void);
/* The calling program has been executed as that user, and keeps what `who` may. 0 or -errno. */
int own_user_keep(enum caps_of who);

#endif
