/* wire.h - messages as C structs, and their JSON form. Everything comes from messages.def. */
#ifndef LIB_WIRE_WIRE_H
#define LIB_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { WIRE_MAJOR = 1, WIRE_MINOR = 12, WIRE_MAX_FRAME = 1 << 20, WIRE_MAX_DEPTH = 8 };

enum { WIRE_TERMINAL_MINOR = 10 }; /* an rsd of this one gives a job's command a terminal */
enum { WIRE_MACHINE_MINOR = 10 };  /* an rsd of this one has what holds a virtual machine without a command */
enum { WIRE_MEMORY_MINOR = 10 };   /* an rsd of this one limits the memory of jobs that have asked for some */
enum { WIRE_WARRANT_MINOR = 10 };  /* an elmer of this one takes what administrators sign elsewhere */
enum { WIRE_WAITS_MINOR = 9 };     /* an rsd and a supervisor of this one know how processes wait */
enum { WIRE_LINES_MINOR = 9 };     /* an rsd of this one knows lines of tasks */
enum { WIRE_READ_MINOR = 8 };      /* an rsd and a supervisor of this one read output for its owner */
enum { WIRE_ARRAY_MINOR = 8 };     /* an rsd of this one knows tasks of arrays */
enum { WIRE_ADDRESS_MINOR = 7 };   /* a host of this one knows that Elmer sets ELMER_ADDRESS */
enum { WIRE_LIMIT_MINOR = 6 };     /* an rsd of this one says what CPU time jobs use, and can signal them */
enum { WIRE_TICKET_MINOR = 5 };    /* without hello, on the socket for tickets: see lib/ticket */
enum { WIRE_AGE_MINOR = 3 };       /* an rsd of this one says how old a report is */
enum { WIRE_LEASE_MINOR = 2 };     /* an rsd of this one can hold a lease */

enum wire_sender {
    WIRE_FROM_CLIENT = 1,
    WIRE_FROM_ELMER = 2,
    WIRE_FROM_HOST = 4,
    WIRE_FROM_ROOT = 8,
    WIRE_FROM_SUPERVISOR = 16,
    WIRE_FROM_AGENT = 32,
    WIRE_FROM_ANY = 63,
    WIRE_FROM_JOINER = 64 /* has no certificate: not even part of ANY, it may say hello and what names it */,
    WIRE_FROM_SIGNER = 128 /* elmer-signer, nothing but its answer */
};

/* A test of versions brings a table with a history. */
#ifndef WIRE_MESSAGES
#define WIRE_MESSAGES "lib/wire/messages.def"
#endif

/* Lists. Items belong to whoever filled them in; those of a decoded message to the message. */
struct wire_strs {
    const char **items;
    size_t count;
};
struct wire_uints {
    uint64_t *items;
    size_t count;
};
struct wire_doubles {
    double *items;
    size_t count;
};

/* struct wire_NAME for each WIRE_STRUCT and WIRE_MESSAGE: BOOL bool, UINT uint64_t, INT int64_t, DOUBLE double, STR
 * const char * (NULL encodes as ""; decoded: never NULL), STRS struct wire_strs, ..; L(x, m) is struct { struct wire_x
 * *items; size_t count; } m. Empty messages have one unused member. */
#define WIRE_C_BOOL                   bool
#define WIRE_C_UINT                   uint64_t
#define WIRE_C_INT                    int64_t
#define WIRE_C_DOUBLE                 double
#define WIRE_C_STR                    const char *
#define WIRE_C_STRS                   struct wire_strs
#define WIRE_C_UINTS                  struct wire_uints
#define WIRE_C_DOUBLES                struct wire_doubles
#define F(kind, member, limit, since) WIRE_C_##kind member;
#define L(type, member, limit, since)                                                                                  \
    struct {                                                                                                           \
        struct wire_##type *items;                                                                                     \
        size_t count;                                                                                                  \
    } member;
#define WIRE_MESSAGE(name, senders, ...) WIRE_MESSAGE_SINCE(0, name, senders, __VA_ARGS__)
#define WIRE_STRUCT(name, ...)                                                                                         \
    struct wire_##name {                                                                                               \
        __VA_ARGS__                                                                                                    \
    };
#define WIRE_MESSAGE_SINCE(since, name, senders, ...)                                                                  \
    struct wire_##name {                                                                                               \
        char unused_;                                                                                                  \
        __VA_ARGS__                                                                                                    \
    };
#include WIRE_MESSAGES
#undef WIRE_STRUCT
#undef WIRE_MESSAGE_SINCE

enum wire_type {
#define WIRE_STRUCT(name, ...)
#define WIRE_MESSAGE_SINCE(since, name, senders, ...) WIRE_##name,
#include WIRE_MESSAGES
#undef WIRE_STRUCT
#undef WIRE_MESSAGE_SINCE
    WIRE_TYPE_COUNT
};

struct wire_message {
    enum wire_type type;
    uint64_t id;
    union {
#define WIRE_STRUCT(name, ...)
#define WIRE_MESSAGE_SINCE(since, name, senders, ...) struct wire_##name name;
#include WIRE_MESSAGES
#undef WIRE_STRUCT
#undef WIRE_MESSAGE_SINCE
    } u;
    size_t bytes; /* of the JSON of a decoded message */
    void *memory; /* of a decoded message; NULL in one that was filled in */
};
#undef F
#undef L

/* Codes of the message error; shared by daemons and commands, which turn them into exit codes. */
#define WIRE_CODE_REFUSED       "refused"       /* exit 1 */
#define WIRE_CODE_USAGE         "usage"         /* exit 2 */
#define WIRE_CODE_NO_SUCH_JOB   "no-such-job"   /* exit 3 */
#define WIRE_CODE_WRONG_STATE   "wrong-state"   /* exit 3 */
#define WIRE_CODE_UNREACHABLE   "unreachable"   /* exit 4: rsd has no link to elmer */
#define WIRE_CODE_NOT_PERMITTED "not-permitted" /* exit 5 */
#define WIRE_CODE_UNAVAILABLE   "unavailable"   /* exit 6: not now, for a reason that passes, such as a full disk */
#define WIRE_CODE_VERSION       "version"
#define WIRE_CODE_BAD_MESSAGE                                                                                          \
    "bad-message" /* undecodable, unknown, or not allowed from this sender: the link is closed after it */

const char *wire_type_name(enum wire_type type);
/* What both ends speak that never tell each other a minor, see channel.h; and with this bit in it, a minor is that of
 * the messages that are later than these only. */
enum { WIRE_MINOR_LASTING = 0, WIRE_LATER_ONLY = 1 << 16 };
unsigned wire_minor_of(enum wire_type type, unsigned minor); /* of that message */
bool wire_may_send(enum wire_type type, unsigned sender);    /* sender: one WIRE_FROM_ bit */
/* May it stand in decide? The library signs these only, and elmer takes no other. */
bool wire_may_be_signed(enum wire_type type);

/* The JSON of a message, NUL-terminated, malloc'd; *size without the NUL. minor: what was negotiated. The text names
 * the field. -EMSGSIZE: beyond WIRE_MAX_FRAME or a field's limit; -EILSEQ: a string that is not UTF-8 (an environment
 * may contain such; JSON cannot carry it); -ERANGE: a number beyond its limit or not finite; -EPROTONOSUPPORT: a peer
 * of this minor does not know the message yet. */
int wire_encode(const struct wire_message *message, unsigned minor, char **json, size_t *size, struct err *err);
/* The same with the 4-byte big-endian length in front; *size with it. */
enum { WIRE_FRAME_HEADER = 4 };
void wire_frame_header(uint8_t *header, size_t size);
size_t wire_frame_length(const uint8_t *header); /* without it */
int wire_encode_frame(const struct wire_message *message, unsigned minor, uint8_t **frame, size_t *size,
                      struct err *err);
/* What the message asks for was not known in that minor, and encoding would leave it out: -EPROTONOSUPPORT and the
 * reason. A ticket asks for nothing: an elmer of before takes the submission without, and the hosts decide; nor does a
 * reason, which is for people. */
int wire_check_said(const struct wire_message *message, unsigned minor, struct err *err);
/* The least minor that has every field of the message that is not false, 0, "" or empty: encoded and decoded in it, the
 * message says the same. */
unsigned wire_minor_said(const struct wire_message *message);
/* Is a message of this type written the same in both minors? */
bool wire_is_same(enum wire_type type, unsigned minor, unsigned other);
/* Strict: unknown type or key, missing field, wrong type, over a limit, NUL or invalid UTF-8, too deep, trailing bytes:
 * -EBADMSG and the reason. Free with wire_message_fini(). */
int wire_decode(const char *json, size_t size, unsigned minor, struct wire_message *message, struct err *err);
void wire_message_fini(struct wire_message *message);
/* What somebody who passes a message on must know of it: -EBADMSG unless it is JSON and has a known type and an id. The
 * rest is for whoever decodes it. */
struct wire_head {
    enum wire_type type;
    uint64_t id;
    bool more; /* is the field of that name there and true? */
};
int wire_decode_head(const char *json, size_t size, unsigned minor, struct wire_head *head, struct err *err);

#endif
