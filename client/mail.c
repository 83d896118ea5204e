/* mail.c - the text of a mail about a job. */
#include "config.h"

#include "client/mail.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/page.h"
#include "client/words.h"
#include "lib/base/str.h"

/* How it has ended: "exit 0", "killed, signal 15", "cancelled", "3 of 100 tasks failed". */
static char *outcome(const struct elmer_job *job)
{
    char result[WORDS_MAX];
    const char *text = words_outcome(result, job);
    const char *s = job->ntasks == 1 ? "" : "s";
    bool exited = strcmp(job->reason_code, "exited") == 0;

    if (job->ntasks > 0 && job->tasks_failed > 0)
        return must(str_format("%" PRIu32 " of %" PRIu32 " task%s failed", job->tasks_failed, job->ntasks, s));
    if (job->ntasks > 0)
        return must(str_format("%" PRIu32 " of %" PRIu32 " task%s ended well", job->tasks_ok, job->ntasks, s));
    if (exited && *text)
        return must(strdup(text));
    return must(str_format("%s%s%s", *job->reason_code ? job->reason_code : job->state, *text ? ", " : "", text));
}

/* For one line: the page has all of them. */
static char *few_hosts(const struct elmer_job *job)
{
    enum { SHOWN = 100 };
    char *hosts = words_hosts(job), *end, *text;

    if (strlen(hosts) <= SHOWN)
        return hosts;
    hosts[SHOWN] = '\0';
    end = strrchr(hosts, ',');
    if (end)
        *end = '\0';
    text = must(str_format("%s and more", hosts));
    free(hosts);
    return text;
}

char *mail_subject(const struct elmer_job *job, bool begin)
{
    char *hosts = few_hosts(job), *how = outcome(job), *text, *clean;
    bool never = elmer_job_ended(job) && job->started_ms < 0 && job->ntasks == 0;

    if (begin)
        text = str_format("job %" PRIu64 " (%s) has begun%s%s", job->id, job->name, *hosts ? " on " : "", hosts);
    else if (never)
        text = str_format("job %" PRIu64 " (%s) did not run: %s", job->id, job->name, how);
    else
        text = str_format("job %" PRIu64 " (%s) ended: %s", job->id, job->name, how);
    clean = printable(must(text));
    free(text);
    free(hosts);
    free(how);
    return clean;
}

static bool is_ascii(const char *text)
{
    while (*text && (unsigned char)*text < 0x80)
        text++;
    return *text == '\0';
}

/* In lines of at most 76 characters with the words before it, as RFC 2047 wants them, and no character of UTF-8 cut in
 * two. */
static void put_encoded(FILE *out, const char *text)
{
    static const char start[] = "=?UTF-8?Q?";
    enum { ROOM = 76 - sizeof("Subject: Elmer: ") - sizeof(start) };
    size_t used = 0;

    fputs(start, out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z');
        bool begins = (*c & 0xC0) != 0x80;

        if (begins && used > ROOM - 12) { /* the longest character takes that */
            fprintf(out, "?=\n %s", start);
            used = 0;
        }
        used += (size_t)fprintf(out, plain ? "%c" : "=%02X", *c);
    }
    fputs("?=", out);
}

static void put_subject(FILE *out, const struct elmer_job *job, bool begin)
{
    char *subject = mail_subject(job, begin);

    fputs("Subject: Elmer: ", out);
    if (is_ascii(subject))
        fputs(subject, out);
    else
        put_encoded(out, subject);
    fputs("\n", out);
    free(subject);
}

void mail_write(FILE *out, const struct elmer_job *job, bool begin, const char *user, const char *host, int64_t now_ms)
{
    char *mail_at = printable(job->mail_at);

    fprintf(out, "To: %s\n", user);
    put_subject(out, job, begin);
    fputs("Auto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
          "Content-Transfer-Encoding: 8bit\n\n",
          out);
    page_show(out, job, now_ms);
    fprintf(out, "\nYou asked for this when you submitted the job on %s%s%s. 'equery %" PRIu64 "' shows it, too.\n",
            host, *mail_at ? ": --mail-at " : "", mail_at, job->id);
    free(mail_at);
}
