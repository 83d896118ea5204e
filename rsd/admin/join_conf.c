#include <config.h>

#include "lib/base/str.h"
#include "rsd/admin/join.h"

char *join_conf_text(const char *elmer, const char *name)
{
    return str_format("# Written by rsd --join; it counts more than rsd.conf.\n[rsd]\nelmer = %s\n%s%s%s", elmer,
                      name ? "name = " : "", name ? name : "", name ? "\n" : "");
}
