/* fuzz_rsd_conf.c - rsd.conf, read by root. */
#include "config.h"

#include <string.h>

#include "lib/base/str.h"
#include "rsd/config.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"

static void check_config(const struct rsd_config *config)
{
    FUZZ_CHECK(config->mode < RSD_MODE_COUNT, "mode %d", (int)config->mode);
    FUZZ_CHECK(str_valid_hostname(config->name), "name %s", config->name);
    FUZZ_CHECK(config->rundir[0] == '/' && config->supervisor[0] == '/' && config->network[0] == '/' &&
                   config->escapes[0] == '/' && config->proc_stat[0] == '/',
               "a path");
    FUZZ_CHECK(config->cgroup_root[0] == '/' || config->cgroup_root[0] == '\0', "cgroup_root %s", config->cgroup_root);
    FUZZ_CHECK(config->user[0] != '\0' && config->minimum_uid < UINT32_MAX, "user %s", config->user);
    FUZZ_CHECK(!strpbrk(config->deny_users, "\t,:/\n") && !strpbrk(config->deny_groups, "\t,:/\n"), "deny_");
    FUZZ_CHECK(config->account[0] == '/' || config->account[0] == '\0', "account %s", config->account);
    FUZZ_CHECK(config->elmer[0] == '/' || strrchr(config->elmer, ':'), "elmer = %s", config->elmer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rsd_config config;
    struct err err = ERR_INIT;
    int result;

    rsd_config_default(&config);
    files_put("/fuzz/rsd.conf", data, size);
    result = rsd_config_read(&config, "/fuzz/rsd.conf", false, NULL, &err);
    files_clear();
    if (result == 0)
        check_config(&config);
    else
        FUZZ_CHECK(result < 0 && strstr(err.text, "rsd.conf"), "%d \"%s\"", result, err.text);
    return 0;
}
