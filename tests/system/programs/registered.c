/* registered - prints what elmer_register() says: the number, the word of errno where it is 0 or less, and the hosts.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "libelmer/elmer_reg.h"

int main(void)
{
    int n = elmer_register();
    char **hosts = elmer_hosts(NULL);

    printf("%d %s", n, n > 0 ? "-" : errno == ENOENT ? "ENOENT" : "another");
    for (; hosts && *hosts; hosts++)
        printf(" %s", *hosts);
    puts("");
    return 0;
}
