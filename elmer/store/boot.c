#include "config.h"

#include "elmer/store/boot.h"

#include <ctype.h>
#include <fcntl.h>
#include <unistd.h>

/* The first 60 of the 122 random bits of the kernel's boot id. */
static int64_t read_number(void)
{
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
    int64_t number = 0;
    int digits = 0;
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n && digits < 15; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isxdigit(c))
            continue;
        number = number << 4 | (isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
        digits++;
    }
    return digits == 15 ? number : 0;
}

int64_t boot_number(void)
{
    static int64_t number = -1;
    if (number < 0)
        number = read_number();
    return number;
}
