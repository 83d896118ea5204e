/* test_environment.c - what a job's process finds in its environment on its host. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rsd/config.h"
#include "rsd/sup/environment.h"
#include "rsd/sup/launchers.h"
#include "rsd/sup/parameters.h"
#include "rsd/sup/polling.h"
#include "rsd/sup/helpers.h"
#include "tests/unit/scratch.h"

static char home[] = "/home/a", name[] = "a", shell[] = "/bin/sh";
static const struct sup sup = {
    .user = {.home = home, .name = name, .shell = shell}, .tmpdir = "/t", .daemon = "/opt/p/pvmd"};

static const char *value(char **environment, const char *variable)
{
    size_t length = strlen(variable);
    for (; *environment; environment++)
        if (strncmp(*environment, variable, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static char **make_on(enum job_role role, const char *const *given, size_t processors)
{
    struct wire_strs strs = {.items = (const char **)given};
    while (given[strs.count])
        strs.count++;
    char **environment = environment_make(&sup, role, &strs, "/t/hostfile", processors);
    assert_non_null(environment);
    return environment;
}

static char **make(enum job_role role, const char *const *given)
{
    return make_on(role, given, 1);
}

static const char *const pvm_job[] = {
    "PVM_TMP=/x", "PATH=/mine:/bin", "LD_PRELOAD=/evil.so", "GCONV_PATH=/evil", "BASH_ENV=/evil", "OTHER=1", NULL};

static void test_helpers_load_nothing(void **state)
{
    static const enum job_role helpers[] = {ROLE_DAEMON, ROLE_AGENT};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char **environment = make(helpers[i], pvm_job);
        assert_null(value(environment, "LD_PRELOAD"));
        assert_null(value(environment, "GCONV_PATH"));
        assert_null(value(environment, "BASH_ENV"));
        assert_string_equal(value(environment, "OTHER"), "1");
        assert_string_equal(value(environment, "PVM_TMP"), "/t");
        environment_free(environment);
    }
}

static void test_tasks_get_it_back(void **state)
{
    const char *const own[] = {"PVM_TMP=/x", "LD_LIBRARY_PATH=/l", "PVM_EXPORT=MINE", NULL};
    const char *const none[] = {"PVM_TMP=/x", NULL}, *const plain[] = {"LD_LIBRARY_PATH=/l", NULL};
    char **environment = make(ROLE_COMMAND, pvm_job);
    (void)state;
    assert_string_equal(value(environment, "LD_PRELOAD"), "/evil.so");
    assert_string_equal(value(environment, "PVM_EXPORT"), "LD_PRELOAD:GCONV_PATH:BASH_ENV");
    environment_free(environment);
    environment = make(ROLE_COMMAND, own);
    assert_string_equal(value(environment, "PVM_EXPORT"), "MINE:LD_LIBRARY_PATH");
    environment_free(environment);
    environment = make(ROLE_COMMAND, none);
    assert_null(value(environment, "PVM_EXPORT"));
    environment_free(environment);
    environment = make(ROLE_COMMAND, plain); /* a job without PVM */
    assert_null(value(environment, "PVM_EXPORT"));
    environment_free(environment);
}

static void test_where_programs_are_found(void **state)
{
    const char *const own[] = {"PVM_TMP=/x", "PVM_PATH=/a:/b", NULL};
    char **environment = make(ROLE_DAEMON, pvm_job);
    (void)state;
    assert_string_equal(value(environment, "PVM_PATH"), "$HOME/pvm3/bin/$PVM_ARCH:$PVM_ROOT/bin/$PVM_ARCH:/opt/p");
    environment_free(environment);
    environment = make(ROLE_DAEMON, own);
    assert_string_equal(value(environment, "PVM_PATH"), "/a:/b:/opt/p");
    environment_free(environment);
}

/* What rsd puts into the environment of a supervisor is what the supervisor finds there. */
static void test_programs_of_helpers(void **state)
{
    static struct rsd_config config = {.pvmd = "/opt/p/pvmd", .agent = "/opt/p/agent"};
    static char text[RSD_HELPERS][RSD_HELPER_BYTES];
    struct sup found = {.count = 0};
    (void)state;
    helpers_find(&found);
    assert_string_equal(found.daemon, ELMER_PVMD);
    assert_string_equal(found.agent, ELMER_LIBEXECDIR "/elmer-pvm-agent");
    rsd_config_helpers(&config, text);
    for (unsigned i = 0; i < RSD_HELPERS; i++)
        assert_int_equal(putenv(text[i]), 0);
    helpers_find(&found);
    assert_string_equal(found.daemon, "/opt/p/pvmd");
    assert_string_equal(found.agent, "/opt/p/agent");
    memset(config.pvmd, 'x', sizeof(config.pvmd) - 1); /* the longest paths */
    memset(config.agent, 'y', sizeof(config.agent) - 1);
    rsd_config_helpers(&config, text);
    helpers_find(&found);
    assert_string_equal(found.daemon, config.pvmd);
    assert_string_equal(found.agent, config.agent);
}

enum { MANY_VARIABLES = 60000 };

/* CPU time for an environment of so many variables, the least of five. */
static double cost_ms(int variables)
{
    static char text[MANY_VARIABLES][16];
    static const char *given[MANY_VARIABLES + 2];
    double least = 0;
    given[0] = "PVM_TMP=/x";
    for (int i = 0; i < variables; i++) {
        snprintf(text[i], sizeof(text[i]), "LD_%05d=", i);
        given[i + 1] = text[i];
    }
    given[variables + 1] = NULL;
    for (int round = 0; round < 5; round++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        char **environment = make(ROLE_COMMAND, given);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        double ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
        least = round == 0 || ms < least ? ms : least;
        assert_true(strlen(value(environment, "PVM_EXPORT")) < 1024);
        environment_free(environment);
    }
    return least;
}

/* It is made at the rank of daemons: the largest environment that can come must not cost its square, which would be a
 * hundred times what a tenth of it costs. Its caches hold less of it, so it is not ten times either. */
static void test_a_large_one_is_cheap(void **state)
{
    double tenth = cost_ms(MANY_VARIABLES / 10), all = cost_ms(MANY_VARIABLES);
    (void)state;
    print_message("%d variables: %.1f ms, a tenth of them %.2f ms\n", MANY_VARIABLES, all, tenth);
    assert_true(all < 30 * tenth);
}

static void test_threads_follow_the_processors(void **state)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "JULIA_NUM_THREADS", "RAYON_NUM_THREADS", "GOMAXPROCS",
                                        "PYTHON_CPU_COUNT"};
    static const char *const none[] = {NULL};
    char **environment = make_on(ROLE_COMMAND, none, 12);
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_string_equal(value(environment, names[i]), "12");
    assert_string_equal(value(environment, "ELMER_ADDED"),
                        "OMP_NUM_THREADS=12 JULIA_NUM_THREADS=12 RAYON_NUM_THREADS=12 GOMAXPROCS=12 "
                        "PYTHON_CPU_COUNT=12");
    assert_null(value(environment, "OPENBLAS_NUM_THREADS")); /* or it would go over what a script exports */
    assert_null(value(environment, "MKL_NUM_THREADS"));
    environment_free(environment);
    environment = make_on(ROLE_DAEMON, none, 3); /* its tasks inherit them */
    assert_string_equal(value(environment, "GOMAXPROCS"), "3");
    environment_free(environment);
    environment = make_on(ROLE_AGENT, none, 3);
    assert_null(value(environment, "GOMAXPROCS"));
    environment_free(environment);
    environment = make_on(ROLE_COMMAND, none, 0);
    assert_null(value(environment, "GOMAXPROCS"));
    assert_null(value(environment, "ELMER_ADDED"));
    environment_free(environment);
}

static void test_launchers(void **state)
{
    static const char *const given[] = {"ELMER_ADDRESS=127.0.0.1", NULL}, *const none[] = {NULL},
                             *const nowhere[] = {"ELMER_ADDRESS=192.0.2.7", NULL},
                             *const chosen[] = {"ELMER_ADDRESS=127.0.0.1", "UCX_NET_DEVICES=ib0", NULL};
    char **environment = make(ROLE_COMMAND, given);
    (void)state;
    assert_string_equal(value(environment, "OMPI_MCA_plm_rsh_agent"), ELMER_BINDIR "/erun");
    assert_string_equal(value(environment, "OMPI_MCA_orte_default_hostfile"), "/t/hosts.slots");
    assert_string_equal(value(environment, "OMPI_MCA_hwloc_base_binding_policy"), "none");
    assert_string_equal(value(environment, "OMPI_MCA_odls_base_sigkill_timeout"), "0");
    assert_string_equal(value(environment, "OMPI_MCA_btl_tcp_if_include"), "127.0.0.0/8");
    assert_string_equal(value(environment, "OMPI_MCA_oob_tcp_if_include"), "127.0.0.0/8");
    assert_string_equal(value(environment, "PRTE_MCA_prte_if_include"), "127.0.0.0/8");
    assert_string_equal(value(environment, "HYDRA_LAUNCHER"), "rsh");
    assert_string_equal(value(environment, "HYDRA_LAUNCHER_EXEC"), ELMER_BINDIR "/erun");
    assert_string_equal(value(environment, "HYDRA_HOST_FILE"), "/t/hosts.count");
    assert_string_equal(value(environment, "HYDRA_IFACE"), "lo");
    assert_string_equal(value(environment, "UCX_NET_DEVICES"), "lo");
    assert_string_equal(value(environment, "I_MPI_HYDRA_BOOTSTRAP_EXEC"), ELMER_BINDIR "/erun");
    environment_free(environment);
    environment = make_on(ROLE_COMMAND, given, 2); /* another host has another one */
    assert_string_equal(value(environment, "ELMER_ADDED_DEVICES"), "lo");
    assert_null(strstr(value(environment, "ELMER_ADDED"), "UCX")); /* which older couriers take for a number */
    environment_free(environment);
    environment = make_on(ROLE_COMMAND, chosen, 2);
    assert_null(value(environment, "ELMER_ADDED_DEVICES"));
    environment_free(environment);
    for (int i = 0; i < 2; i++) { /* an address that nobody knows, or that is not here: they choose */
        environment = make(ROLE_COMMAND, i ? none : nowhere);
        assert_null(value(environment, "HYDRA_IFACE"));
        assert_null(value(environment, "UCX_NET_DEVICES"));
        assert_null(value(environment, "OMPI_MCA_btl_tcp_if_include"));
        assert_null(value(environment, "PRTE_MCA_prte_if_include"));
        assert_string_equal(value(environment, "HYDRA_LAUNCHER"), "rsh");
        environment_free(environment);
    }
    environment = make(ROLE_DAEMON, given); /* and nothing of that for helpers */
    assert_null(value(environment, "HYDRA_LAUNCHER"));
    environment_free(environment);
}

static void test_a_mask_without_room(void **state)
{
    static const struct {
        const char *mask, *open_mpi;
    } cases[] = {{"255.255.255.0", "192.0.2.0/24"},
                 {"255.255.255.252", "192.0.2.4/30"},
                 {"255.255.255.254", "wg0"},
                 {"255.255.255.255", "wg0"},
                 {"0.0.0.0", "0.0.0.0/0"}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct launchers_network network = {.name = ""};
        launchers_network_of(&network, "wg0", inet_addr("192.0.2.7"), inet_addr(cases[i].mask));
        assert_string_equal(network.name, "wg0");
        assert_string_equal(network.open_mpi, cases[i].open_mpi);
    }
}

static void test_launchers_of_the_user(void **state)
{
    static const char *const given[] = {"ELMER_ADDRESS=127.0.0.1",
                                        "HYDRA_LAUNCHER=ssh",
                                        "OMPI_MCA_plm_rsh_agent=ssh -q",
                                        "OMPI_MCA_btl_tcp_if_exclude=docker0",
                                        "UCX_NET_DEVICES=ib0",
                                        "I_MPI_HYDRA_BOOTSTRAP_EXEC=/x",
                                        "OMPI_MCA_orte_default_hostfile=/h",
                                        NULL};
    char **environment = make(ROLE_COMMAND, given);
    (void)state;
    assert_string_equal(value(environment, "HYDRA_LAUNCHER"), "ssh");
    assert_null(value(environment, "HYDRA_LAUNCHER_EXEC")); /* his launcher has its own program */
    assert_string_equal(value(environment, "OMPI_MCA_plm_rsh_agent"), "ssh -q");
    assert_string_equal(value(environment, "OMPI_MCA_orte_default_hostfile"), "/h");
    assert_null(value(environment, "OMPI_MCA_btl_tcp_if_include")); /* Open MPI takes one of the two */
    assert_string_equal(value(environment, "OMPI_MCA_oob_tcp_if_include"), "127.0.0.0/8");
    assert_string_equal(value(environment, "UCX_NET_DEVICES"), "ib0");
    assert_string_equal(value(environment, "I_MPI_HYDRA_BOOTSTRAP_EXEC"), "/x");
    assert_null(value(environment, "I_MPI_HYDRA_BOOTSTRAP"));
    environment_free(environment);
    for (int i = 0; i < 2; i++) {
        const char *const his[] = {"ELMER_ADDRESS=127.0.0.1",
                                   i ? "OMPI_MCA_oob_tcp_if_exclude=docker0" : "PRTE_MCA_prte_if_exclude=docker0",
                                   NULL};
        environment = make(ROLE_COMMAND, his);
        assert_null(value(environment, "PRTE_MCA_prte_if_include"));
        assert_string_equal(value(environment, "OMPI_MCA_btl_tcp_if_include"), "127.0.0.0/8");
        environment_free(environment);
    }
    for (int i = 0; i < 2; i++) { /* which hydra reads second */
        const char *const second[] = {i ? "HYDRA_BOOTSTRAP_EXEC=/x" : "HYDRA_BOOTSTRAP=ssh", NULL};
        environment = make(ROLE_COMMAND, second);
        assert_null(value(environment, "HYDRA_LAUNCHER"));
        assert_null(value(environment, "HYDRA_LAUNCHER_EXEC"));
        assert_string_equal(value(environment, "HYDRA_HOST_FILE"), "/t/hosts.count");
        environment_free(environment);
    }
}

/* What of the three networks is left where a user has this in his file: "btl", "oob" and "prte", or some of them. */
static const char *left(const char *dir, const char *text, const char *const *given)
{
    static char said[16];
    struct wire_strs strs = {.items = (const char **)given};
    char **environment = make(ROLE_COMMAND, given), *all[100] = {NULL};
    while (given[strs.count])
        strs.count++;
    for (size_t i = 0; environment[i]; i++) { /* what is taken out is not freed: its process becomes the command */
        assert_true(i + 1 < sizeof(all) / sizeof(all[0]));
        all[i] = environment[i];
    }
    if (text)
        assert_true(scratch_put(dir, ".openmpi/mca-params.conf", text));
    parameters_obey(environment, &strs, dir);
    snprintf(said, sizeof(said), "%s%s%s", value(environment, "OMPI_MCA_btl_tcp_if_include") ? "btl" : "",
             value(environment, "OMPI_MCA_oob_tcp_if_include") ? "oob" : "",
             value(environment, "PRTE_MCA_prte_if_include") ? "prte" : "");
    assert_string_equal(value(environment, "OMPI_MCA_hwloc_base_binding_policy"), "none");
    assert_string_equal(value(environment, "UCX_NET_DEVICES"), "lo");
    for (size_t i = 0; all[i]; i++)
        free(all[i]);
    free(environment);
    return said;
}

static void test_launchers_of_a_file(void **state)
{
    static const char *const given[] = {"ELMER_ADDRESS=127.0.0.1", NULL}, *const his[] = {
                                                                              "ELMER_ADDRESS=127.0.0.1",
                                                                              "OMPI_MCA_btl_tcp_if_include=x", NULL};
    char dir[] = "/tmp/elmer-environment-XXXXXX", path[80], *long_file = malloc(200000);
    (void)state;
    assert_non_null(scratch_dir(dir));
    assert_true(scratch_mkdir(dir, ".openmpi"));
    assert_string_equal(left(dir, NULL, given), "btloobprte");
    assert_string_equal(left(dir, "", given), "btloobprte");
    assert_string_equal(left(dir, "# x\nbtl = tcp\n  btl_tcp_if_exclude\t= docker0", given), "oobprte");
    assert_string_equal(left(dir, "oob_tcp_if_include=eth1\nbtl_tcp_if_exclude=lo\n", given), "");
    assert_string_equal(left(dir, "#btl_tcp_if_exclude = lo\nbtl_tcp_if_excluded = 1\nbtl_tcp_if = 2\n", given),
                        "btloobprte");
    assert_string_equal(left(dir, "btl_tcp_if_exclude = docker0\n", his), "btloobprte"); /* that is his */
    assert_string_equal(left(dir, "prte_if_exclude = docker0\n", given), "btloob");
    assert_true(scratch_mkdir(dir, ".prte") && scratch_put(dir, ".prte/mca-params.conf", "prte_if_include = eth1\n"));
    assert_string_equal(left(dir, "", given), "btloob");
    assert_true(scratch_put(dir, ".prte/mca-params.conf", ""));
    assert_non_null(long_file);
    memset(long_file, '\n', 200000);
    snprintf(long_file + 199960, 40, "btl_tcp_if_exclude = lo\n");
    assert_string_equal(left(dir, long_file, given), "btloobprte");
    free(long_file);
    snprintf(path, sizeof(path), "%s/.openmpi/mca-params.conf", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for what comes there */
    assert_string_equal(left(dir, NULL, given), "btloobprte");
}

/* What is set, by name; NULL: it is not. */
static const char *polled(const char *const *given, const char *library, const char *wanted)
{
    static struct polling polling;
    struct wire_strs strs = {.items = (const char **)given};
    while (given[strs.count])
        strs.count++;
    polling_set(&polling, &strs, library);
    for (size_t i = 0; i < polling.count; i++)
        if (strcmp(polling.settings[i].name, wanted) == 0)
            return polling.settings[i].value;
    return NULL;
}

static void test_who_waits_leaves_it(void **state)
{
    static const char *const given[] = {"ELMER_NPROCS=2", NULL}, *const one[] = {"ELMER_NPROCS=1", NULL},
                             *const none[] = {NULL}, *const spin[] = {"ELMER_NPROCS=2", "ELMER_SPIN=1", NULL};
    static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
                                        "OMPI_MCA_mpi_yield_when_idle", "LD_PRELOAD"};
    (void)state;
    assert_string_equal(polled(given, "/bin/sh", "OMP_WAIT_POLICY"), "passive");
    assert_string_equal(polled(given, "/bin/sh", "GOMP_SPINCOUNT"), "0");
    assert_string_equal(polled(given, "/bin/sh", "KMP_BLOCKTIME"), "0");
    assert_string_equal(polled(given, "/bin/sh", "OMPI_MCA_mpi_yield_when_idle"), "1");
    assert_string_equal(polled(given, "/bin/sh", "LD_PRELOAD"), "/bin/sh");
    assert_string_equal(polled(given, "/bin/sh", "ASAN_OPTIONS"), "verify_asan_link_order=0");
    assert_null(polled(given, "/nowhere/library.so", "LD_PRELOAD")); /* the loader would complain of each program */
    assert_string_equal(polled(given, "/nowhere/library.so", "OMP_WAIT_POLICY"), "passive");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_null(polled(one, "/bin/sh", names[i]));
        assert_null(polled(none, "/bin/sh", names[i]));
        assert_int_equal(polled(spin, "/bin/sh", names[i]) ? 1 : 0, strcmp(names[i], "LD_PRELOAD") == 0);
    }
    char **environment = make(ROLE_COMMAND, given);
    assert_string_equal(value(environment, "OMP_WAIT_POLICY"), "passive");
    environment_free(environment);
    environment = make(ROLE_DAEMON, given);
    assert_null(value(environment, "OMP_WAIT_POLICY"));
    environment_free(environment);
}

static void test_who_waits_as_the_user_says(void **state)
{
    static const char *const active[] = {"ELMER_NPROCS=2", "OMP_WAIT_POLICY=active", "LD_PRELOAD=", NULL};
    static const char *const others[] = {"ELMER_NPROCS=2", "KMP_BLOCKTIME=200", "OMPI_MCA_mpi_yield_when_idle=0",
                                         "ASAN_OPTIONS=detect_leaks=0", NULL};
    (void)state;
    assert_null(polled(active, "/bin/sh", "OMP_WAIT_POLICY"));
    assert_null(polled(active, "/bin/sh", "GOMP_SPINCOUNT"));
    assert_null(polled(active, "/bin/sh", "KMP_BLOCKTIME"));
    assert_null(polled(active, "/bin/sh", "LD_PRELOAD"));
    assert_null(polled(active, "/bin/sh", "ASAN_OPTIONS"));
    assert_null(polled(others, "/bin/sh", "KMP_BLOCKTIME"));
    assert_null(polled(others, "/bin/sh", "OMPI_MCA_mpi_yield_when_idle"));
    assert_null(polled(others, "/bin/sh", "LD_PRELOAD"));
    assert_string_equal(polled(others, "/bin/sh", "GOMP_SPINCOUNT"), "0");
}

static void test_threads_of_the_user(void **state)
{
    const char *const general[] = {"OMP_NUM_THREADS=2", "GOMAXPROCS=", NULL};
    const char *const special[] = {"OPENBLAS_NUM_THREADS=1", "ELMER_ADDED=GOMAXPROCS=7", NULL};
    char **environment = make_on(ROLE_COMMAND, general, 12);
    (void)state;
    assert_string_equal(value(environment, "OMP_NUM_THREADS"), "2");
    assert_string_equal(value(environment, "GOMAXPROCS"), ""); /* set to nothing is set */
    assert_string_equal(value(environment, "RAYON_NUM_THREADS"), "12");
    environment_free(environment);
    environment = make_on(ROLE_COMMAND, special, 12);
    assert_string_equal(value(environment, "OPENBLAS_NUM_THREADS"), "1");
    assert_string_equal(value(environment, "OMP_NUM_THREADS"), "12");
    assert_string_equal(value(environment, "GOMAXPROCS"), "12");
    assert_null(strstr(value(environment, "ELMER_ADDED"), "OPENBLAS"));
    assert_null(strstr(value(environment, "ELMER_ADDED"), "=7"));
    environment_free(environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_helpers_load_nothing),       cmocka_unit_test(test_tasks_get_it_back),
        cmocka_unit_test(test_where_programs_are_found),   cmocka_unit_test(test_programs_of_helpers),
        cmocka_unit_test(test_a_large_one_is_cheap),       cmocka_unit_test(test_threads_follow_the_processors),
        cmocka_unit_test(test_threads_of_the_user),        cmocka_unit_test(test_launchers),
        cmocka_unit_test(test_launchers_of_the_user),      cmocka_unit_test(test_launchers_of_a_file),
        cmocka_unit_test(test_a_mask_without_room),        cmocka_unit_test(test_who_waits_leaves_it),
        cmocka_unit_test(test_who_waits_as_the_user_says),
    };
    return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
