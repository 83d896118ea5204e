/* test_job_header.c - the structs of elmer.h are what job.def says, in the places that installed programs know. With
 * --print FILE: that header as it should be (make update-elmer-h). */
#include "config.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/job/fields.h"

enum { TEXT_MAX = 1 << 20 };

#define BEGIN "    /* from job.def: make update-elmer-h */\n"
#define END   "    /* end of what is from job.def */\n"

struct member {
    int place;                        /* in the struct, from 1 */
    const char *type, *name, *number; /* number: of the items of a list; NULL */
    const char *about;
};

#define MEMBER_OF_OPTION(place, type, about)                YES, place, #type, NULL, NULL, about
#define MEMBER_OF_OWN_OPTION(place, type, about)            YES, place, #type, NULL, NULL, about
#define MEMBER_OF_MEMBER(place, type, about)                YES, place, #type, NULL, NULL, about
#define MEMBER_OF_MEMBERS(place, type, list, number, about) YES, place, #type, #list, #number, about
#define MEMBER_OF_NO                                        NO, 0, "", NULL, NULL, ""
#define MEMBER(...)                                         MEMBER_(__VA_ARGS__)
#define MEMBER_(answer, place, type, list, number, about, name)                                                        \
    JOB_CODE(answer, {place, type, list ? list : name, number, about}, )

#define OPTION_ASKED(name, type, core, since, shown, line, seen, json, option, member) MEMBER(MEMBER_OF_##option, #name)
#define MEMBER_ASKED(name, type, core, since, shown, line, seen, json, option, member) MEMBER(MEMBER_OF_##member, #name)
#define MEMBER_KEPT(name, type, cell, core, column, shown, line, seen, json, member)   MEMBER(MEMBER_OF_##member, #name)
#define MEMBER_MADE(name, type, shown, line, seen, json, member)                       MEMBER(MEMBER_OF_##member, #name)

static struct member options[] = {JOB_FIELDS(OPTION_ASKED, JOB_NONE, JOB_NONE)};
static struct member members[] = {JOB_FIELDS(MEMBER_ASKED, MEMBER_KEPT, MEMBER_MADE)};

static int by_place(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return x->place - y->place;
}

/* A pointer's star stands at the name; bool is a macro and has been expanded. */
static void print_member(FILE *out, const struct member *member)
{
    const char *type = strcmp(member->type, "_Bool") == 0 ? "bool" : member->type;
    const char *space = strchr(type, '*') ? "" : " ";
    char text[200];
    int width = member->about[0] != '\0' ? 36 : 0;

    if (member->number)
        (void)snprintf(text, sizeof(text), "%s%s%s; size_t %s;", type, space, member->name, member->number);
    else
        (void)snprintf(text, sizeof(text), "%s%s%s;", type, space, member->name);
    fprintf(out, "    %-*s%s%s%s\n", width, text, width > 0 ? " /* " : "", member->about, width > 0 ? " */" : "");
}

/* False: two have the same place. Numbers may be left out: what counts is their order. */
static bool print_struct(FILE *out, struct member *list, size_t count)
{
    qsort(list, count, sizeof(*list), by_place);
    for (size_t i = 0; i < count; i++) {
        if (list[i].place <= (i > 0 ? list[i - 1].place : 0)) {
            fprintf(stderr, "job.def: %s is at place %d, as is another one\n", list[i].name, list[i].place);
            return false;
        }
        print_member(out, &list[i]);
    }
    return true;
}

/* The text with what is between the marks made anew: first the options, then the job. */
static bool print_header(FILE *out, const char *text)
{
    for (int i = 0; i < 2; i++) {
        const char *begin = strstr(text, BEGIN), *end = begin ? strstr(begin, END) : NULL;

        if (!end)
            return false;
        fwrite(text, 1, (size_t)(begin - text) + strlen(BEGIN), out);
        if (!(i == 0 ? print_struct(out, options, sizeof(options) / sizeof(*options))
                     : print_struct(out, members, sizeof(members) / sizeof(*members))))
            return false;
        text = end;
    }
    fputs(text, out);
    return true;
}

int main(int argc, char **argv)
{
    bool print = argc > 1 && strcmp(argv[1], "--print") == 0;
    char *text = NULL, *wanted = NULL;
    size_t size;
    FILE *out = open_memstream(&wanted, &size);
    int result = 1;
    struct err err = ERR_INIT;

    if (!out)
        return 1;
    if (file_read(AT_FDCWD, TOP_SRCDIR "/libelmer/elmer.h", TEXT_MAX, &text, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (!print_header(out, text) || fclose(out) != 0)
        return 1;
    if (print && fputs(wanted, stdout) >= 0)
        result = 0;
    else if (!print && strcmp(text, wanted) == 0)
        result = 0;
    else
        fprintf(stderr, "libelmer/elmer.h does not say what job.def says: run make update-elmer-h\n");
    free(text);
    free(wanted);
    return result;
}
