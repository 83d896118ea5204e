/* policy.c - the policies by number and by name. */
#include "elmer/core/policy/policy.h"

#include <assert.h>
#include <string.h>

static const struct policy *const policies[POLICY_COUNT] = {
#define POLICY(constant, name) [POLICY_##constant] = &policy_##name,
#include CORE_POLICIES
#undef POLICY
};

static const char *const words[POLICY_COUNT] = {
#define POLICY(constant, name) [POLICY_##constant] = #name,
#include CORE_POLICIES
#undef POLICY
};

const struct policy *policy_by_number(enum core_policy number)
{
    assert((unsigned)number < POLICY_COUNT);
    return policies[number];
}

int core_policy_by_name(const char *name)
{
    for (int i = 0; i < POLICY_COUNT; i++)
        if (strcmp(name, words[i]) == 0)
            return i;
    return -1;
}

const char *core_policy_name(enum core_policy policy)
{
    return (unsigned)policy < POLICY_COUNT ? words[policy] : "unknown";
}

const char *core_policy_names(void)
{
    static const char names[] = ""
#define POLICY(constant, name) " " #name
#include CORE_POLICIES
#undef POLICY
        ;

    return names + 1;
}
