/* launchers.c - mpirun and mpiexec, as they come.
 *
 * Open MPI 4 reads OMPI_MCA_*, its successors PRTE_MCA_*, MPICH's hydra HYDRA_*, that of Intel I_MPI_HYDRA_*. All four
 * start what they need on other hosts by something that looks like rsh: erun. They get the hosts of the job with the
 * number of its processors there, and leave binding alone: a process is bound to the job's processors already.
 *
 * MPI's ranks connect to each other by what network interfaces they find, and one that the hosts do not share, like a
 * bridge of containers with the same address everywhere, makes them hang or fail. elmer knows by which address the
 * others see this host (ELMER_ADDRESS): the interface that has it is the one. UCX, and so Debian's MPICH, wants its
 * name, which should be the same on all hosts then; Open MPI the network, or the name as well where the mask leaves no
 * room for other hosts (a machine of a cloud, a tunnel): the address of the first host alone would be no network of
 * another one, which makes its ranks hang.
 */
#include "config.h"

#include "rsd/sup/launchers.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

_Static_assert(LAUNCHERS_NAME >= IF_NAMESIZE, "names of interfaces");

/* ---- the network ---- */

static int bits_of(in_addr_t mask)
{
    int bits = 0;
    for (uint32_t left = ntohl(mask); left & 0x80000000U; left <<= 1)
        bits++;
    return bits;
}

void launchers_network_of(struct launchers_network *network, const char *name, in_addr_t address, in_addr_t mask)
{
    struct in_addr masked = {.s_addr = address & mask};
    char text[INET_ADDRSTRLEN];
    int bits = bits_of(mask);
    snprintf(network->name, sizeof(network->name), "%s", name);
    if (bits > LAUNCHERS_BITS)
        snprintf(network->open_mpi, sizeof(network->open_mpi), "%s", name);
    else
        snprintf(network->open_mpi, sizeof(network->open_mpi), "%s/%d", inet_ntop(AF_INET, &masked, text, sizeof(text)),
                 bits);
}

static bool has_address(const struct ifaddrs *entry, in_addr_t wanted)
{
    struct sockaddr_in address;
    if (!entry->ifa_addr || !entry->ifa_netmask || entry->ifa_addr->sa_family != AF_INET)
        return false;
    memcpy(&address, entry->ifa_addr, sizeof(address));
    return address.sin_addr.s_addr == wanted;
}

bool launchers_find_network(const char *address, struct launchers_network *network)
{
    struct ifaddrs *all, *entry;
    struct sockaddr_in mask;
    struct in_addr wanted;
    *network = (struct launchers_network){.name = ""};
    if (inet_pton(AF_INET, address, &wanted) != 1 || getifaddrs(&all) < 0)
        return false;
    for (entry = all; entry && !has_address(entry, wanted.s_addr);)
        entry = entry->ifa_next;
    if (entry) {
        memcpy(&mask, entry->ifa_netmask, sizeof(mask));
        launchers_network_of(network, entry->ifa_name, wanted.s_addr, mask.sin_addr.s_addr);
    }
    freeifaddrs(all);
    return entry != NULL;
}

/* ---- what they read ---- */

static void set(struct launchers *l, const struct wire_strs *given, const char *name, const char *value)
{
    if (*value && !environment_value(given, name) && l->count < LAUNCHERS_SETTINGS)
        l->settings[l->count++] = (struct setting){name, value};
}

/* Open MPI 5's daemons, by today's name or that of Open MPI 4. */
static bool chooses_network_of_prte(const struct wire_strs *given)
{
    static const char *const names[] = {"PRTE_MCA_prte_if_exclude", "PRTE_MCA_oob_tcp_if_include",
                                        "PRTE_MCA_oob_tcp_if_exclude", "OMPI_MCA_oob_tcp_if_include",
                                        "OMPI_MCA_oob_tcp_if_exclude"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (environment_value(given, names[i]))
            return true;
    }
    return false;
}

static void set_open_mpi(struct launchers *l, const struct wire_strs *given)
{
    set(l, given, "OMPI_MCA_plm_rsh_agent", ELMER_BINDIR "/erun");
    set(l, given, "OMPI_MCA_orte_default_hostfile", l->slots);
    set(l, given, "OMPI_MCA_hwloc_base_binding_policy", "none");
    set(l, given, "OMPI_MCA_odls_base_sigkill_timeout", "0"); /* else ranks that are told to end wait for a second */
    if (!environment_value(given, "OMPI_MCA_oob_tcp_if_exclude"))
        set(l, given, "OMPI_MCA_oob_tcp_if_include", l->network.open_mpi);
    if (!environment_value(given, "OMPI_MCA_btl_tcp_if_exclude"))
        set(l, given, "OMPI_MCA_btl_tcp_if_include", l->network.open_mpi);
    set(l, given, "PRTE_MCA_plm_ssh_agent", ELMER_BINDIR "/erun");
    set(l, given, "PRTE_MCA_prte_default_hostfile", l->slots);
    set(l, given, "PRTE_MCA_hwloc_default_binding_policy", "none");
    set(l, given, "PRTE_MCA_odls_base_sigkill_timeout", "0");
    if (!chooses_network_of_prte(given))
        set(l, given, "PRTE_MCA_prte_if_include", l->network.open_mpi);
}

/* By either of hydra's two names; ours would go over the second. */
static bool chooses_launcher(const struct wire_strs *given)
{
    return environment_value(given, "HYDRA_LAUNCHER") || environment_value(given, "HYDRA_LAUNCHER_EXEC") ||
           environment_value(given, "HYDRA_BOOTSTRAP") || environment_value(given, "HYDRA_BOOTSTRAP_EXEC");
}

/* Who has chosen a launcher has one: its program is his business. */
static void set_hydra(struct launchers *l, const struct wire_strs *given)
{
    if (!chooses_launcher(given)) {
        set(l, given, "HYDRA_LAUNCHER", "rsh");
        set(l, given, "HYDRA_LAUNCHER_EXEC", ELMER_BINDIR "/erun");
    }
    set(l, given, "HYDRA_HOST_FILE", l->colons);
    set(l, given, "HYDRA_BINDING", "none");
    set(l, given, "HYDRA_IFACE", l->network.name);
    set(l, given, "UCX_NET_DEVICES", l->network.name);
    if (!environment_value(given, "UCX_NET_DEVICES"))
        set(l, given, "ELMER_ADDED_DEVICES", l->network.name); /* lib/run/added.h */
    if (!environment_value(given, "I_MPI_HYDRA_BOOTSTRAP") && !environment_value(given, "I_MPI_HYDRA_BOOTSTRAP_EXEC")) {
        set(l, given, "I_MPI_HYDRA_BOOTSTRAP", "rsh");
        set(l, given, "I_MPI_HYDRA_BOOTSTRAP_EXEC", ELMER_BINDIR "/erun");
    }
    set(l, given, "I_MPI_HYDRA_HOST_FILE", l->colons);
    set(l, given, "I_MPI_HYDRA_IFACE", l->network.name);
}

void launchers_set(struct launchers *l, const struct sup *sup, const struct wire_strs *given)
{
    const char *address = environment_value(given, "ELMER_ADDRESS");
    *l = (struct launchers){.count = 0};
    snprintf(l->slots, sizeof(l->slots), "%s/" LAUNCHERS_SLOTS, sup->tmpdir);
    snprintf(l->colons, sizeof(l->colons), "%s/" LAUNCHERS_COLONS, sup->tmpdir);
    if (address)
        (void)launchers_find_network(address, &l->network);
    set_open_mpi(l, given);
    set_hydra(l, given);
}
