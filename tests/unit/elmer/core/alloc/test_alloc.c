/* test_alloc.c - the allocators alone: a view made by hand, and what they choose from it. */
#include "elmer/core/alloc/alloc.h"
#include "elmer/core/policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { HOSTS = 6, CPUS = 4, DRAWS = 3000 };

static const int cpu_numbers[CPUS] = {0, 1, 4, 5};

struct table {
    struct core_options options;
    struct alloc_processor processors[HOSTS][6]; /* by CPU number */
    struct alloc_host hosts[HOSTS];
    const struct alloc_host *pointers[HOSTS];
    int notes[HOSTS];
    struct alloc_view view;
    uint64_t random;
    struct core_processor chosen[HOSTS * CPUS];
};

static void init(struct table *t, int nhosts, const int *ncpus)
{
    memset(t, 0, sizeof(*t));
    core_options_default(&t->options);
    t->view = (struct alloc_view){
        .options = &t->options, .now_ms = 100000, .hosts = t->pointers, .nhosts = nhosts, .notes = t->notes};
    for (int h = 0; h < nhosts; h++) {
        t->hosts[h] = (struct alloc_host){.index = 10 + 3 * h,
                                          .cpus = cpu_numbers,
                                          .ncpus = ncpus[h],
                                          .processors = t->processors[h],
                                          .reported = true,
                                          .report_begin_ms = 97000,
                                          .report_end_ms = 99000};
        t->pointers[h] = &t->hosts[h];
        for (int i = 0; i < CPUS; i++)
            t->processors[h][cpu_numbers[i]].present = true;
    }
}

static void put_jobs(struct table *t, int h, int i, int jobs, int next_level)
{
    t->processors[h][cpu_numbers[i]].jobs = (uint8_t)jobs;
    t->processors[h][cpu_numbers[i]].next_level = (uint8_t)next_level;
}

static void put_busy(struct table *t, int h, int i, double busy)
{
    t->processors[h][cpu_numbers[i]].busy = t->processors[h][cpu_numbers[i]].foreign = busy;
}

static void count_levels(struct table *t)
{
    for (int h = 0; h < t->view.nhosts; h++) {
        memset(t->hosts[h].at_level, 0, sizeof(t->hosts[h].at_level));
        for (int i = 0; i < t->hosts[h].ncpus; i++)
            t->hosts[h].at_level[t->processors[h][cpu_numbers[i]].next_level]++;
    }
}

/* Every choice must keep the contract, whoever made it. */
static uint32_t choose(struct table *t, enum core_allocator allocator, uint32_t nprocs)
{
    struct alloc_request request = {.nprocs = nprocs};
    uint32_t missing;

    count_levels(t);
    missing = alloc_by_number(allocator)->choose(&t->view, &request, &t->random, t->chosen);

    for (uint32_t i = 0; missing == 0 && i < nprocs; i++) {
        const struct core_processor *at = &t->chosen[i];
        int h = (at->host - 10) / 3;
        assert_in_range(h, 0, t->view.nhosts - 1);
        assert_int_equal(at->host, 10 + 3 * h);
        assert_true(at->cpu == cpu_numbers[0] || at->cpu == cpu_numbers[1] || at->cpu == cpu_numbers[2] ||
                    at->cpu == cpu_numbers[3]);
        assert_true(t->processors[h][at->cpu].next_level < t->options.levels);
        assert_true(i == 0 || at->host > t->chosen[i - 1].host ||
                    (at->host == t->chosen[i - 1].host && at->cpu > t->chosen[i - 1].cpu));
    }
    return missing;
}

static int hosts_chosen(const struct table *t, uint32_t nprocs)
{
    int n = 0;

    for (uint32_t i = 0; i < nprocs; i++)
        n += i == 0 || t->chosen[i].host != t->chosen[i - 1].host;
    return n;
}

static int level_chosen(const struct table *t, uint32_t nprocs)
{
    int level = 0;

    for (uint32_t i = 0; i < nprocs; i++) {
        int next = t->processors[(t->chosen[i].host - 10) / 3][t->chosen[i].cpu].next_level;
        level = next > level ? next : level;
    }
    return level;
}

/* ---- all ---- */

static void test_names(void **state)
{
    char known[200] = "";

    (void)state;
    for (int i = 0; i < ALLOCATOR_COUNT; i++) {
        assert_int_equal(core_allocator_by_name(core_allocator_name((enum core_allocator)i)), i);
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i > 0 ? " " : "",
                 core_allocator_name((enum core_allocator)i));
    }
    assert_string_equal(core_allocator_names(), known);
    assert_string_equal(core_allocator_names(), "v1 v2 spread pack cube-fl cube-afl");
    assert_int_equal(core_allocator_by_name(""), -1);
    assert_string_equal(core_allocator_name(ALLOCATOR_COUNT), "unknown");
    assert_string_equal(core_policy_names(), "fcfs");
    assert_int_equal(core_policy_by_name("fcfs"), POLICY_FCFS);
    assert_int_equal(core_policy_by_name("lcfs"), -1);
    assert_string_equal(core_policy_name(POLICY_COUNT), "unknown");
}

/* They say how many are missing, draw nothing, and the same state gives the same choice. */
static void test_refusal_and_repeat(void **state)
{
    static const int ncpus[] = {2, 4, 1};
    struct core_processor first[HOSTS * CPUS];
    struct table t;

    (void)state;
    for (int a = 0; a < ALLOCATOR_ANYWHERE; a++) {
        init(&t, 3, ncpus);
        put_jobs(&t, 1, 0, 1, 3);
        put_jobs(&t, 1, 3, 3, 3);
        t.random = 99;
        assert_int_equal(choose(&t, (enum core_allocator)a, 6), 1);
        assert_int_equal(choose(&t, (enum core_allocator)a, 65536), 65531);
        assert_int_equal(t.random, 99);
        assert_int_equal(choose(&t, (enum core_allocator)a, 3), 0);
        memcpy(first, t.chosen, sizeof(first));
        t.random = 99;
        assert_int_equal(choose(&t, (enum core_allocator)a, 3), 0);
        assert_memory_equal(first, t.chosen, 3 * sizeof(*first));
        assert_int_equal(choose(&t, (enum core_allocator)a, 5), 0);
        t.view.nhosts = 0;
        assert_int_equal(choose(&t, (enum core_allocator)a, 1), 1);
    }
}

/* Ties are the seed's: on equal hosts each single processor comes equally often. */
static void test_ties_are_even(void **state)
{
    static const int ncpus[] = {2, 2, 2};
    struct table t;

    (void)state;
    for (int a = 0; a < ALLOCATOR_ANYWHERE; a++) {
        int counts[3][6] = {{0}};
        init(&t, 3, ncpus);
        for (int i = 0; i < DRAWS; i++) {
            assert_int_equal(choose(&t, (enum core_allocator)a, 1), 0);
            counts[(t.chosen[0].host - 10) / 3][t.chosen[0].cpu]++;
        }
        for (int h = 0; h < 3; h++)
            for (int i = 0; i < 2; i++) /* 500 expected, standard deviation 20 */
                assert_in_range(counts[h][cpu_numbers[i]], 400, 600);
    }
}

/* ---- spread ---- */

static void test_spread(void **state)
{
    static const int ncpus[] = {4, 4};
    struct table t;

    (void)state;
    init(&t, 2, ncpus);
    for (int i = 0; i < 4; i++)
        put_jobs(&t, 0, i, 1, 1);
    put_jobs(&t, 1, 0, 2, 2);
    put_jobs(&t, 1, 1, 1, 2); /* a staircase: one job, at level 1 */
    put_busy(&t, 1, 2, 0.99);
    put_busy(&t, 1, 3, 0.99);
    assert_int_equal(choose(&t, ALLOCATOR_SPREAD, 2), 0); /* empty ones, however busy */
    assert_int_equal(t.chosen[0].host, 13);
    assert_int_equal(t.chosen[0].cpu, 4);
    assert_int_equal(t.chosen[1].cpu, 5);
    put_busy(&t, 0, 0, 0.5);
    put_busy(&t, 0, 1, 0.5);
    put_busy(&t, 0, 2, 0.5);
    put_busy(&t, 0, 3, 0.6);
    put_busy(&t, 1, 1, 0.1);
    assert_int_equal(choose(&t, ALLOCATOR_SPREAD, 6), 0); /* it counts jobs, not levels; then the least busy */
    assert_int_equal(t.chosen[2].cpu, 4);
    assert_int_equal(t.chosen[3].host, 13);
    assert_int_equal(t.chosen[3].cpu, 1);
    assert_int_equal(choose(&t, ALLOCATOR_SPREAD, 8), 0);
}

/* What is not known is busy; less than a percent makes no difference; what Elmer's ended jobs used does not count. */
static void test_spread_reports(void **state)
{
    static const int ncpus[] = {1, 1, 1};
    struct table t;
    int counts[3] = {0};

    (void)state;
    init(&t, 3, ncpus);
    put_busy(&t, 0, 0, 0.0);
    put_busy(&t, 1, 0, 0.9);
    put_busy(&t, 2, 0, 0.0);
    t.hosts[0].reported = false;
    t.hosts[2].report_end_ms = t.view.now_ms - t.options.fresh_ms - 1;
    assert_int_equal(choose(&t, ALLOCATOR_SPREAD, 1), 0);
    assert_int_equal(t.chosen[0].host, 13);
    put_busy(&t, 1, 0, 1.7); /* rounding of a host may bring more than all */
    for (int i = 0; i < DRAWS; i++) {
        assert_int_equal(choose(&t, ALLOCATOR_SPREAD, 1), 0);
        counts[(t.chosen[0].host - 10) / 3]++;
    }
    for (int h = 0; h < 3; h++)
        assert_in_range(counts[h], 900, 1100);
    t.hosts[0].reported = true;
    t.hosts[2].report_end_ms = 99000;
    put_busy(&t, 0, 0, 0.004);
    put_busy(&t, 2, 0, -0.001);
    memset(counts, 0, sizeof(counts));
    for (int i = 0; i < DRAWS; i++) {
        assert_int_equal(choose(&t, ALLOCATOR_SPREAD, 1), 0);
        counts[(t.chosen[0].host - 10) / 3]++;
    }
    assert_in_range(counts[0], 1350, 1650);
    assert_int_equal(counts[1], 0);
    t.processors[1][0].foreign = 0;
    t.processors[0][0].foreign = 0.1;
    t.processors[2][0].foreign = 0.1;
    assert_int_equal(choose(&t, ALLOCATOR_SPREAD, 1), 0);
    assert_int_equal(t.chosen[0].host, 13);
}

/* ---- pack ---- */

static void test_pack(void **state)
{
    static const int ncpus[] = {2, 4, 3, 1};
    struct table t;
    int counts[4] = {0};

    (void)state;
    init(&t, 4, ncpus);
    assert_int_equal(choose(&t, ALLOCATOR_PACK, 4), 0);
    assert_int_equal(hosts_chosen(&t, 4), 1);
    assert_int_equal(choose(&t, ALLOCATOR_PACK, 7), 0);
    assert_int_equal(hosts_chosen(&t, 7), 2);
    assert_int_equal(choose(&t, ALLOCATOR_PACK, 10), 0);
    assert_int_equal(hosts_chosen(&t, 10), 4);
    for (int i = 0; i < 4; i++)
        put_jobs(&t, 1, i, 1, 1);
    assert_int_equal(choose(&t, ALLOCATOR_PACK, 4), 0); /* one host at level 1 before two at level 0 */
    assert_int_equal(hosts_chosen(&t, 4), 1);
    assert_int_equal(level_chosen(&t, 4), 1);
    assert_int_equal(choose(&t, ALLOCATOR_PACK, 3), 0); /* of one host, the better level */
    assert_int_equal(hosts_chosen(&t, 3), 1);
    assert_int_equal(level_chosen(&t, 3), 0);
    for (int i = 0; i < DRAWS; i++) { /* two of one host: ws1 and ws3, neither for being the larger */
        assert_int_equal(choose(&t, ALLOCATOR_PACK, 2), 0);
        counts[(t.chosen[0].host - 10) / 3]++;
    }
    assert_in_range(counts[0], 1350, 1650);
    assert_in_range(counts[2], 1350, 1650);
}

/* Against all sets of hosts, on drawn tables. */
static void test_pack_is_best(void **state)
{
    uint64_t chance = 7;
    struct table t;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        int ncpus[HOSTS], nhosts = 1 + (int)alloc_random_below(&chance, HOSTS), best_hosts = HOSTS + 1, best_level = 0;
        uint32_t nprocs = 1 + (uint32_t)alloc_random_below(&chance, HOSTS * 2), missing;
        for (int h = 0; h < nhosts; h++)
            ncpus[h] = 1 + (int)alloc_random_below(&chance, CPUS);
        init(&t, nhosts, ncpus);
        t.random = chance;
        for (int h = 0; h < nhosts; h++)
            for (int i = 0; i < ncpus[h]; i++) {
                int level = (int)alloc_random_below(&chance, 5);
                put_jobs(&t, h, i, level, level);
            }
        for (unsigned set = 1; set < 1u << nhosts; set++) {
            uint32_t count = 0;
            int size = 0;
            for (int h = 0; h < nhosts; h++)
                for (int i = 0; i < ncpus[h]; i++) {
                    size += i == 0 && (set & 1u << h) != 0;
                    count += (set & 1u << h) != 0 && t.processors[h][cpu_numbers[i]].next_level < t.options.levels;
                }
            if (count >= nprocs && size < best_hosts)
                best_hosts = size;
        }
        missing = choose(&t, ALLOCATOR_PACK, nprocs);
        assert_int_equal(missing == 0, best_hosts <= HOSTS);
        if (missing > 0)
            continue;
        assert_int_equal(hosts_chosen(&t, nprocs), best_hosts);
        for (best_level = 0;; best_level++) {
            bool enough = false;
            for (unsigned set = 1; set < 1u << nhosts; set++) {
                uint32_t count = 0;
                int size = 0;
                for (int h = 0; h < nhosts; h++) {
                    size += (set & 1u << h) != 0;
                    for (int i = 0; i < ncpus[h]; i++)
                        count += (set & 1u << h) != 0 && t.processors[h][cpu_numbers[i]].next_level <= best_level;
                }
                enough |= size == best_hosts && count >= nprocs;
            }
            if (enough)
                break;
        }
        assert_int_equal(level_chosen(&t, nprocs), best_level);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),          cmocka_unit_test(test_refusal_and_repeat),
        cmocka_unit_test(test_ties_are_even),  cmocka_unit_test(test_spread),
        cmocka_unit_test(test_spread_reports), cmocka_unit_test(test_pack),
        cmocka_unit_test(test_pack_is_best),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
