/* links.h - in place of libelmer/net: links whose other ends are the input. What the program sends over one is encoded,
 * decoded again and handed to the target; it must be a message that its side may send. */
#ifndef ELMER_TESTS_FUZZ_LINKS_H
#define ELMER_TESTS_FUZZ_LINKS_H

#include <sys/types.h>

#include "lib/net/link.h"
#include "tests/fuzz/fuzz.h"

struct tls_peer;

#ifndef LINKS
#define LINKS 16
#endif

/* role: who the program under test is. A WIRE_FROM_HOST is that to elmer and to its root half; to programs of users it
 * speaks as elmer. */
void links_begin(unsigned role);
/* Closes what is left; listeners must have been closed. */
void links_end(void);
/* The n-th listener accepts a peer; its number, or -1: refused, or no such listener. */
int links_accept(size_t listener, uid_t uid);
/* What the next one that is accepted shows: its certificate (NULL: none), and the minor version that it speaks. Else it
 * depends on the uid, and is the newest. */
void links_introduce(const char *name, const char *serial, unsigned minor);
/* The capability in the hello of all peers, until the next call. */
void links_have(const char *capability);
/* What the program says of the certificate of a peer. */
int links_judge(const struct tls_peer *peer, struct err *err);
/* Nobody can listen, for this reason; 0: anybody. */
void links_refuse_listeners(int code);
void links_refuse_tcp(int code); /* those with TLS alone */
bool links_open(size_t link);
/* The first link of that peer, or -1. */
int links_find(unsigned peer);
/* One that dials, or is around a socket, is ready now. */
void links_answer(size_t link);
/* A message of its peer: dropped if that may not send it. Takes it over. */
void links_say(size_t link, struct wire_message *message);
/* The peer is gone. */
void links_cut(size_t link);
/* on_close of those that the program has closed. */
void links_turn(void);
/* So much has been sent but not taken. */
void links_set_unsent(size_t link, size_t bytes);
/* Where what is unsent is counted; NULL. */
struct budget *links_budget(size_t link);
/* All of it is taken. */
void links_room(size_t link);

/* Of the target. */
void links_heard(size_t link, const struct wire_message *message);

#endif
