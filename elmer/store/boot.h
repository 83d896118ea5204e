/* boot.h - which start of the machine this is. */
#ifndef ELMER_STORE_BOOT_H
#define ELMER_STORE_BOOT_H

#include <stdint.h>

/* Positive; 0: not known. What mono_now() said may be compared as long as this is the same. */
int64_t boot_number(void);

#endif
