#include "config.h"

#include "client/since.h"

#include "client/common.h"
#include "lib/base/moment.h"

bool since_parse(const char *text, int64_t *ms)
{
    struct wall moment;

    if (!moment_parse(text, wall_now(), &moment)) {
        usage_error("--since %s: want " MOMENT_FORMS, text);
        return false;
    }
    *ms = moment.ms;
    return true;
}
