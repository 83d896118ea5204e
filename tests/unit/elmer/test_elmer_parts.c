/* test_elmer_parts.c - small parts of the queue daemon: configuration, map, deadlines, paths. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elmer/engine/deadline.h"
#include "lib/memory/map.h"
#include "elmer/launch/paths.h"
#include "elmer/settings.h"
#include "lib/base/clock.h"

/* ---- configuration ---- */

static int load(const char *text, struct settings *settings, struct err *err)
{
    char path[] = "/tmp/elmer-conf-XXXXXX";
    int fd = mkstemp(path);
    *err = (struct err)ERR_INIT;
    *settings = (struct settings){0};
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int code = settings_load(settings, path, true, err);
    unlink(path);
    return code;
}

static void wrong(const char *text, const char *words)
{
    struct settings settings;
    struct err err;
    int code = load(text, &settings, &err);
    if (code >= 0)
        fail_msg("accepted: %s", text);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
}

static void test_settings(void **state)
{
    struct settings s;
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(settings_load(&s, "/nonexistent/elmer.conf", false, &err), 0);
    assert_int_equal(s.nhosts, 1);
    assert_string_equal(s.hosts[0].name, s.name);
    assert_null(s.listen);
    assert_int_equal(s.core.levels, 3);
    assert_int_equal(s.core.allocator, ALLOCATOR_V2);
    assert_int_equal(s.core.fresh_ms, 6000);
    assert_int_equal(s.minimum_uid, 1000);
    settings_fini(&s);
    assert_int_equal(settings_load(&s, "/nonexistent/elmer.conf", true, &err), -ENOENT);

    assert_int_equal(
        load("[host b]\ncpus = 0-2,5\naddress = 10.0.0.2\n[elmer]\nhosts = a b, c\nlisten = 0.0.0.0:6500\ntransport = "
             "plain\nlevels = 4\nallocator = v1\n"
             "threshold = 0.5\nreport_interval = 500ms\nfresh_intervals = 4\nsettle = 1s\nkill_grace = 0\n",
             &s, &err),
        0);
    assert_int_equal(s.nhosts, 3);
    assert_string_equal(s.hosts[1].name, "b");
    assert_int_equal(s.hosts[1].ncpus, 4);
    assert_int_equal(s.hosts[1].cpus[3], 5);
    assert_string_equal(s.hosts[1].address, "10.0.0.2");
    assert_null(s.hosts[0].cpus);
    assert_int_equal(s.core.levels, 4);
    assert_int_equal(s.core.fresh_ms, 2000);
    assert_int_equal(s.core.settle_ms, 1000);
    assert_int_equal(s.kill_grace_ms, 0);
    settings_fini(&s);
}

static void test_settings_wrong(void **state)
{
    (void)state;
    wrong("[elmer]\nlevls = 3\n", ":2: ");
    wrong("[elmer]\nlevls = 3\n", "levels");
    wrong("[elmer]\nlevels = 17\n", "17");
    wrong("[elmer]\nlevels = 17\n", "16");
    wrong("[elmer]\nlevels = 0\n", "levels");
    wrong("[elmer]\nthreshold = 1.0\n", "threshold");
    wrong("[elmer]\nthreshold = nan\n", "nan");
    wrong("[elmer]\nallocator = v3\n", "v1 and v2");
    wrong("[elmer]\nlisten = 6500\n", "HOST:PORT");
    wrong("[elmer]\nlisten = 0.0.0.0:6500\ntransport = tls\n", "loopback");
    wrong("[elmer]\npki = certificates\n", "must begin with '/'");
    wrong("[elmer]\nhosts = a b a\n", "twice");
    wrong("[elmer]\nhosts = a -b\n", "-b");
    wrong("[elmer]\nhosts = ,\n", "no host");
    wrong("[elmer]\nhosts = a\n[host b]\ncpus = 0\n", ":4: section [host b]");
    wrong("[host b]\naddress = 10.0.0.1\n[elmer]\nhosts = a\n", ":2: section [host b]");
    wrong("[elmer]\nhosts = a\n[host a]\ncpus = 1,0\n", "increase");
    wrong("[elmer]\nhosts = a\n[host a]\ncpus = x\n", "CPU numbers");
    wrong("[elmer]\nhosts = a\n[host a]\ncpus = 0-70000\n", "CPU numbers");
    wrong("[elmer]\nhosts = a\n[host a]\ncpu = 0\n", "cpus");
    wrong("[elmer]\nstore = elmer.db\n", "'/'");
    wrong("[elmer]\nheartbeat = 20s\n", ":2: host_timeout");
    wrong("[elmer]\nheartbeat = 20s\nhost_timeout = 30s\n", ":3: host_timeout");
    wrong("[elmer]\nlease = 4s\n", "lease");
    wrong("[elmer]\nlease = 10s\n", ":2: lease (10000 ms) must be at least three times the heartbeat");
    wrong("[elmer]\nheartbeat = 10s\nlease = 20s\n", ":3: lease");
    wrong("[elmer]\nseed = -1\n", "seed");
    wrong("[elmer]\nkill_grace = soon\n", "soon");
    wrong("[emler]\nlevels = 3\n", "elmer");
}

/* ---- map ---- */

static void test_map(void **state)
{
    static char values[4096];
    bool there[4096] = {false};
    struct map map = {0};
    size_t count = 0;
    uint64_t random = 88172645463325252u;
    (void)state;
    assert_null(map_get(&map, 0));
    assert_null(map_remove(&map, 7));
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t key = random % 4096;
        if (random & (1u << 20)) {
            map_put(&map, key, &values[key]);
            count += !there[key];
            there[key] = true;
        } else {
            assert_ptr_equal(map_remove(&map, key), there[key] ? &values[key] : NULL);
            count -= there[key];
            there[key] = false;
        }
        assert_int_equal(map.count, count);
    }
    for (size_t key = 0; key < 4096; key++)
        assert_ptr_equal(map_get(&map, key), there[key] ? &values[key] : NULL);
    size_t cursor = 0, seen = 0;
    while (map_next(&map, &cursor))
        seen++;
    assert_int_equal(seen, count);
    map_fini(&map);
}

/* ---- deadlines ---- */

struct item {
    struct deadline deadline;
    struct deadlines *all;
    int again;
};
static int64_t last_fired;
static int fired;

static void fire(struct deadline *deadline)
{
    struct item *item = (struct item *)deadline;
    int64_t now = mono_ms(mono_now());
    assert_true(deadline->at_ms <= now);
    assert_true(deadline->at_ms >= last_fired || item->again >= 0);
    assert_int_equal(deadline->slot, 0);
    last_fired = deadline->at_ms;
    fired++;
    if (item->again > 0) {
        item->again--;
        deadline_set(item->all, deadline, now);
    } else if (!item->all->count) {
        deadlines_fini(item->all);
    }
}

static void test_deadlines(void **state)
{
    static struct item items[200];
    uv_loop_t loop;
    struct deadlines all;
    int64_t now = mono_ms(mono_now());
    (void)state;
    uv_loop_init(&loop);
    deadlines_init(&all, &loop);
    for (int i = 0; i < 200; i++) {
        items[i] = (struct item){.all = &all, .again = i == 0 ? 3 : -1};
        items[i].deadline.fire = fire;
        deadline_set(&all, &items[i].deadline, now + (i * 37) % 101);
    }
    for (int i = 1; i < 200; i += 2)
        deadline_clear(&all, &items[i].deadline);
    for (int i = 2; i < 200; i += 4)
        deadline_set(&all, &items[i].deadline, now + 5 + i % 7);
    deadline_clear(&all, &items[1].deadline); /* not armed */
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(fired, 100 + 3);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- paths ---- */

static void test_paths(void **state)
{
    struct arena memory = {0};
    struct err err = ERR_INIT;
    char large[5000];
    (void)state;
    assert_string_equal(path_expand(&memory, "/o/%j-%u-%x.%r%%", 42, "bob", "sim", 7), "/o/42-bob-sim.7%");
    assert_string_equal(path_expand(&memory, "", 1, "", "", 0), "");
    assert_int_equal(path_check("%j%u%x%r%%", "output", &err), 0);
    assert_int_equal(path_check("a%", "output", &err), -1);
    err = (struct err)ERR_INIT;
    assert_int_equal(path_check("a%\xc3\xa9", "output", &err), -1);
    assert_non_null(strstr(err.text, "%j"));
    assert_int_equal(path_check("a\nb", "output", &err), -1);
    memset(large, 'a', sizeof(large));
    large[4094] = '%';
    large[4095] = 'j';
    large[4096] = 0;
    assert_null(path_expand(&memory, large, 42, "", "", 0));
    assert_non_null(path_expand(&memory, large, 4, "", "", 0));
    arena_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),  cmocka_unit_test(test_settings_wrong), cmocka_unit_test(test_map),
        cmocka_unit_test(test_deadlines), cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
