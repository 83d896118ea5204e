/* signer.h - asking elmer-signer for a certificate. */
#ifndef ELMER_MEMBERSHIP_SIGNER_H
#define ELMER_MEMBERSHIP_SIGNER_H

#include "elmer/engine/engine.h"

struct signer_ask;

/* certificate is PEM, or NULL: then text says why not, for people on both sides. ticket: the certificate of the ticket
 * key of a sign_host, else "". */
typedef void (*signer_answer)(const char *certificate, const char *ticket, const char *text, void *data);

/* Send sign_host, sign_join, sign_rejoin or sign_renew (copied by being sent; socket and the texts must live until the
 * answer). The answer comes once, from a later turn of the loop. NULL: too many are under way. */
struct signer_ask *signer_ask(const struct room *room, const char *socket, const struct wire_message *request,
                              signer_answer answer, void *data);
/* No answer will come. NULL is fine. */
void signer_abandon(struct signer_ask *ask);

#endif
