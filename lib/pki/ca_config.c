#include "config.h"

#include <errno.h>

#include "lib/config/ini.h"
#include "lib/pki/ca.h"

#define YEARS_10_MS INT64_C(315360000000)

static int set_certificate_valid(void *config, const char *subsection, const char *value, struct err *err)
{
    struct ca *ca = config;
    long ms;
    int code = ini_parse_duration_ms(value, 10000, YEARS_10_MS, &ms, err);

    (void)subsection;
    if (code == 0)
        ca->valid_ms = ms;
    return code;
}

int ca_configure(struct ca *ca, const char *path, struct err *err)
{
    static const struct ini_key keys[] = {{"ca", "certificate_valid", set_certificate_valid, "365d", 0, NULL}, INI_END};
    struct err missing = ERR_INIT;
    int code = ini_read(path, keys, NULL, ca, &missing);

    return code == 0 || code == -ENOENT ? 0 : err_set(err, code, "%s", missing.text);
}
