/* journal.h - lines to systemd's journal by its native protocol, which carries fields; for log.c. */
#ifndef LIB_BASE_JOURNAL_H
#define LIB_BASE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* A descriptor, close-on-exec, that never blocks; negative errno: there is no journal. */
int journal_open(const char *path);

/* Which message of the catalog it is, from the text of its format alone: 32 hexadecimal digits. "": the format says
 * nothing of its own. tests/lint/catalog does the same. */
enum { JOURNAL_ID_SIZE = 33 };
void journal_id(const char *format, char id[JOURNAL_ID_SIZE]);

/* What is sent: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, of warnings and errors MESSAGE_ID, and for each job=, host=,
 * hosts= and user= up to the first colon, quote or parenthesis, behind which texts of others may stand, ELMER_JOB,
 * ELMER_HOST, ELMER_USER. Returns the size. */
enum { JOURNAL_RECORD_MAX = 8192 };
size_t journal_record(const char *program, int priority, const char *format, const char *text,
                      char record[JOURNAL_RECORD_MAX]);

/* false: the journal does not take it now. */
bool journal_send(int fd, const char *record, size_t size);

#endif
