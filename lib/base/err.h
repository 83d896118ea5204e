/* err.h - an error for people: what, why, what to do. Owned by the caller; the first error wins. */
#ifndef LIB_BASE_ERR_H
#define LIB_BASE_ERR_H

#include <stdarg.h>

struct err {
    char text[1024];
};
#define ERR_INIT                                                                                                       \
    {                                                                                                                  \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* Fill in the text unless there is one (err may be NULL); returns code, so that `return err_set(err, -EINVAL, "...")`
 * works. */
int err_set(struct err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* which looks at one file at a time: an error is no success */
static inline int err_code(int code)
{
    if (code == 0)
        __builtin_unreachable();
    return code;
}
#define err_set(err, code, ...) ((void)(err_set)(err, code, __VA_ARGS__), err_code(code))
#endif
/* Put "prefix: " before the text. */
void err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void err_clear(struct err *err);

#endif
