#include "config.h"

#include <errno.h>

#include "lib/config/ini.h"
#include "lib/pki/ca.h"

#define YEARS_10_MS INT64_C(315360000000)

static int set_certificate_valid(void *config, const char *subsection, const char *value, struct err *err)
{
    struct ca *ca = config;
    long ms;
    int result = ini_parse_duration_ms(value, 10000, YEARS_10_MS, &ms, err);

    (void)subsection;
    if (result == 0)
        ca->valid_ms = ms;
    return result;
}

int ca_configure(struct ca *ca, const char *path, struct err *err)
{
    static const struct ini_key keys[] = {{"ca", "certificate_valid", set_certificate_valid, "365d", 0, NULL}, INI_END};
    struct err missing = ERR_INIT;
    int result = ini_read(path, keys, NULL, ca, &missing);

    return result == 0 || result == -ENOENT ? 0 : err_set(err, result, "%s", missing.text);
}
