/* log.h - one line per fact, to the journal (priority prefix <N>) when stderr is it, else to stderr with the program's
 * name. */
#ifndef LIB_BASE_LOG_H
#define LIB_BASE_LOG_H

#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* Call once, first; program is kept. Lines above max are dropped; ELMER_LOG=debug in the environment lets all through.
 * Never blocks: a line that stderr does not take at once is dropped and counted. */
void log_open(const char *program, enum log_level max);
/* From now on lines go to the journal with fields and the number of their entry in the catalog, where stderr is the
 * journal. Not for a process that ends at once or moves to another unit: the journal finds out whose a line is when it
 * reads it. A child of this process writes as before. */
void log_fields(void);
/* From now on lines go there instead, with the format that they have been made of; the function must not log. */
void log_divert(void (*to)(enum log_level level, const char *format, const char *text, void *data), void *data);
/* A line that another program has diverted, as if it were ours: the format is what the catalog knows it by. */
void log_diverted(enum log_level level, const char *format, const char *text);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For lines that a peer can cause: at most burst per interval; says once how many it left out. Control characters in
 * arguments must have been made printable by the caller with str_printable(). Returns true if the line may be logged.
 */
struct log_limit {
    int64_t window_start_ms;
    unsigned count, swallowed;
};
int log_allowed(struct log_limit *limit, unsigned burst, unsigned interval_ms);

/* For lines that one peer can cause for years, because it tries again and again: the same text about the same peer a
 * few times in an hour, of as many as there is room for. Else as log_allowed(). */
enum { LOG_REPEATS = 64, LOG_REPEATS_MAX = 5, LOG_REPEATS_MS = 3600000 };
struct log_repeats {
    struct {
        uint64_t hash;
        struct log_limit limit;
    } items[LOG_REPEATS];
};
int log_repeats_allowed(struct log_repeats *repeats, const char *about, const char *text);

#endif
