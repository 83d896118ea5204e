/* mail_at.h - at what a user is sent mail about his job: "begin,end,fail". */
#ifndef LIB_JOB_MAIL_AT_H
#define LIB_JOB_MAIL_AT_H

#include <stdbool.h>

struct mail_at {
    bool begin; /* it has begun */
    bool end;   /* it has ended */
    bool fail;  /* it has ended, and not well */
};
/* 0, or -1 with what is wrong in why. An empty word is none of them. */
enum { MAIL_AT_WHY = 200, MAIL_AT_TEXT = 32 };
int mail_at_parse(const char *list, struct mail_at *at, char why[MAIL_AT_WHY]);
/* The words that are set, in that order; "": none is. */
void mail_at_text(const struct mail_at *at, char text[MAIL_AT_TEXT]);

#endif
