/* test_facts.c - what a host says of itself in its hello. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "rsd/net/facts.h"
#include "rsd/net/launchers.h"
#include "tests/unit/scratch.h"

static char dir[] = "/tmp/elmer-facts-XXXXXX";

static bool offers_pvm(const struct rsd_config *config)
{
    struct wire_host_hello hello = {.pvm = !strstr(config->pvmd, "pvmd")}; /* set either way */
    launchers_offer(config, &hello);
    return hello.pvm;
}

static void test_launchers(void **state)
{
    struct rsd_config config = {.pvmd = "/nowhere/pvmd"};
    (void)state;
    assert_false(offers_pvm(&config));
    snprintf(config.pvmd, sizeof(config.pvmd), "%s/other", dir);
    assert_false(offers_pvm(&config));
    assert_true(scratch_put(dir, "pvmd", "#!/bin/sh\n"));
    snprintf(config.pvmd, sizeof(config.pvmd), "%s/pvmd", dir);
    assert_int_equal(chmod(config.pvmd, 0644), 0);
    assert_false(offers_pvm(&config));
    assert_int_equal(chmod(config.pvmd, 0755), 0);
#ifdef HAVE_PVM
    assert_true(offers_pvm(&config));
#else
    assert_false(offers_pvm(&config)); /* there is no agent for it */
#endif
}

static bool loopback(const char *first, const char *second)
{
    struct sockaddr_in in[2] = {{.sin_family = AF_INET}, {.sin_family = AF_INET}};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct addrinfo last = {.ai_family = AF_INET, .ai_addr = (struct sockaddr *)&in[1]};
    struct addrinfo middle = {.ai_family = AF_INET, .ai_addr = (struct sockaddr *)&in[0]};
    struct addrinfo info = {.ai_family = AF_INET6, .ai_addr = (struct sockaddr *)&in6};
    info.ai_next = first ? &middle : NULL;
    middle.ai_next = second ? &last : NULL;
    assert_true(!first || inet_pton(AF_INET, first, &in[0].sin_addr) == 1);
    assert_true(!second || inet_pton(AF_INET, second, &in[1].sin_addr) == 1);
    return facts_loopback(&info);
}

static void test_memory_for_jobs(void **state)
{
    struct rsd_config config = {.memory_percent = 100};
    struct wire_root_state root = {.mode = "rt", .mode_reason = "", .limits_memory = true};
    struct wire_host_hello hello = {.memory_bytes = 0};
    (void)state;
    assert_int_equal(facts_memory_for_jobs(&config, 1001), 1001);
    config.memory_percent = 80;
    assert_int_equal(facts_memory_for_jobs(&config, 1001), 800);
    assert_int_equal(facts_memory_for_jobs(&config, -1), 0);
    config = (struct rsd_config){.memory_bytes = 500};
    assert_int_equal(facts_memory_for_jobs(&config, 1001), 500);
    assert_int_equal(facts_memory_for_jobs(&config, 400), 400);
    config = (struct rsd_config){.memory_percent = 100};
    facts_tell(&config, &root, &hello);
    assert_true(hello.memory_bytes > 1 << 20 && hello.limits_memory);
    assert_string_equal(hello.mode, "rt");
}

/* The first address of each list is ::1, which does not count: virtual machines use IPv4. */
static void test_own_name(void **state)
{
    (void)state;
    assert_true(facts_loopback(NULL));
    assert_true(loopback(NULL, NULL));
    assert_true(loopback("127.0.1.1", NULL));
    assert_true(loopback("10.1.2.3", "127.0.0.1"));
    assert_false(loopback("10.1.2.3", NULL));
    assert_false(loopback("10.1.2.3", "192.0.2.127"));
}

static void test_boot(void **state)
{
    char boot[65], again[65], few[9];
    (void)state;
    facts_boot(boot, sizeof(boot));
    facts_boot(again, sizeof(again));
    assert_int_equal(strlen(boot), 36);
    assert_null(strchr(boot, '\n'));
    assert_string_equal(boot, again);
    facts_boot(few, sizeof(few)); /* what there is room for */
    assert_int_equal(strlen(few), 8);
    assert_memory_equal(few, boot, 8);
}

static void memory_is(const char *text, int64_t bytes, int64_t free_bytes)
{
    char path[200];
    int64_t all = 0, available = 0;
    FILE *file;
    snprintf(path, sizeof(path), "%s/meminfo", dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    facts_memory(path, &all, &available);
    assert_int_equal(all, bytes);
    assert_int_equal(available, free_bytes);
}

static void test_memory(void **state)
{
    int64_t bytes, free_bytes;
    (void)state;
    facts_memory("/proc/meminfo", &bytes, &free_bytes);
    assert_true(free_bytes > 0 && free_bytes <= bytes);
    facts_memory("/no/such/file", &bytes, &free_bytes);
    assert_int_equal(bytes, -1);
    assert_int_equal(free_bytes, -1);
    memory_is("MemTotal:        2048 kB\nMemFree:  9 kB\nMemAvailable:       7 kB\n", 2097152, 7168);
    memory_is("MemTotal: x kB\nMemAvailable: -7 kB\n", -1, -1);
    memory_is("MemTotal: 9223372036854775807 kB\n", -1, -1); /* in bytes it would not be a number */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers), cmocka_unit_test(test_own_name), cmocka_unit_test(test_memory_for_jobs),
        cmocka_unit_test(test_boot),      cmocka_unit_test(test_memory),
    };
    if (!scratch_dir(dir))
        return 1;
    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
