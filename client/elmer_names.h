/* elmer_names.h - what elmer's certificate names: host names and numeric addresses, each once. By one of them each host
 * of the cluster reaches elmer, and eadmin init is not told by which. */
#ifndef CLIENT_ELMER_NAMES_H
#define CLIENT_ELMER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct ca;
struct settings;

enum { ELMER_NAMES_MAX = 64 };

struct elmer_names {
    const char *items[ELMER_NAMES_MAX]; /* ours */
    size_t count;
};

/* One that is there already is added, too. False: it is none, or there are too many. */
bool elmer_names_add(struct elmer_names *names, const char *name);
/* Those of this host and of the files; elmer's own is the first. */
void elmer_names_add_own(struct elmer_names *names, const struct settings *settings);
/* Those of elmer's certificates of before: the latest, which the CA keeps, and the one in the directory pki, which is
 * the user elmer's and counts only as what this CA has signed for elmer. */
void elmer_names_add_earlier(struct elmer_names *names, const struct ca *ca, const char *pki);
void elmer_names_fini(struct elmer_names *names);

#endif
