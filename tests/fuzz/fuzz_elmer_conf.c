/* fuzz_elmer_conf.c - elmer.conf as it may be written by anybody with an editor. What is accepted makes a core that
 * works; what is refused gets a sentence with the file in it. The file is in memory: files.c stands in for fopen(3). */
#include "config.h"

#include <string.h>

#include "elmer/settings.h"
#include "lib/base/str.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"

static void check_hosts(const struct settings *settings, struct core *core)
{
    FUZZ_CHECK(settings->nhosts > 0, "no host");
    for (size_t i = 0; i < settings->nhosts; i++) {
        const struct host_settings *host = &settings->hosts[i];

        FUZZ_CHECK(str_valid_hostname(host->name), "host %s", host->name);
        FUZZ_CHECK(core_add_host(core, host->name) == (int)i, "host %s", host->name);
        for (int k = 1; k < host->ncpus; k++)
            FUZZ_CHECK(host->cpus[k] > host->cpus[k - 1], "CPUs of %s", host->name);
    }
}

static void check_settings(const struct settings *settings)
{
    struct core_options options = settings->core;
    struct core *core;

    options.seed = options.seed != 0 ? options.seed : 1;
    core = core_create(&options);
    FUZZ_CHECK(core != NULL, "the core refuses what the configuration allows");
    check_hosts(settings, core);
    FUZZ_CHECK(settings->host_timeout_ms >= 2 * settings->heartbeat_ms, "timeout");
    FUZZ_CHECK(settings->report_ms >= 100 && settings->max_nprocs >= 1 && settings->minimum_uid >= 0, "a number");
    FUZZ_CHECK(strlen(settings->socket) < 108 && strlen(settings->host_socket) < 108, "a socket's path");
    core_destroy(core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings settings;
    struct err err = ERR_INIT;
    int result;

    files_put("/fuzz/elmer.conf", data, size);
    result = settings_load(&settings, "/fuzz/elmer.conf", true, &err);
    files_clear();
    if (result != 0) {
        FUZZ_CHECK(result < 0 && strstr(err.text, "elmer.conf"), "%d \"%s\"", result, err.text);
        return 0;
    }
    check_settings(&settings);
    settings_fini(&settings);
    return 0;
}
