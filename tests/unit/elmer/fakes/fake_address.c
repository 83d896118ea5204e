#include "config.h"

#include "tests/unit/elmer/fakes/fake_address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/net/address.h"

static const char *stands_for, *gone;

void fake_address_begin(void)
{
    stands_for = gone = NULL;
}

void fake_address_stands_for(const char *text)
{
    stands_for = text;
}

void fake_address_gone(const char *text)
{
    gone = text;
}

int address_resolve(const char *text, const char *keep, char out[ADDRESS_TEXT], struct err *err)
{
    (void)keep;
    if (stands_for && !*stands_for)
        return err_set(err, -EINVAL, "cannot find the address of %s: the service is away", text);
    snprintf(out, ADDRESS_TEXT, "%s", stands_for ? stands_for : text);
    return 0;
}

bool address_is_here(const char *text)
{
    return !gone || strcmp(gone, text) != 0;
}
