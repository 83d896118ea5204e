#include "config.h"

#include "lib/job/mail_at.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 60 };

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

int mail_at_parse(const char *list, struct mail_at *at, char why[MAIL_AT_WHY])
{
    *at = (struct mail_at){.begin = false};
    for (;; list++) {
        size_t length = strcspn(list, ",");
        bool begin = is_word(list, length, "begin"), end = is_word(list, length, "end"),
             fail = is_word(list, length, "fail");

        if (!begin && !end && !fail) {
            snprintf(why, MAIL_AT_WHY, "'%.*s' is none of begin, end, fail; several are separated by commas",
                     (int)(length < SHOWN ? length : SHOWN), list);
            return -1;
        }
        at->begin |= begin;
        at->end |= end;
        at->fail |= fail;
        list += length;
        if (!*list)
            return 0;
    }
}

void mail_at_text(const struct mail_at *at, char text[MAIL_AT_TEXT])
{
    snprintf(text, MAIL_AT_TEXT, "%s%s%s%s%s", at->begin ? "begin" : "", at->begin && (at->end || at->fail) ? "," : "",
             at->end ? "end" : "", at->end && at->fail ? "," : "", at->fail ? "fail" : "");
}
