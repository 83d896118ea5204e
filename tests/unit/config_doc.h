/* config_doc.h - a table of keys and the manual page of the file say the same. */
#ifndef TESTS_UNIT_CONFIG_DOC_H
#define TESTS_UNIT_CONFIG_DOC_H

#include "lib/config/ini.h"

/* page: such as "man/rsd.conf.5". Every key that can be used is in the page, below its section, with its default after
 * "Default:", and the page has no others. Fails the test with all that is wrong. */
void config_doc_check(const char *page, const struct ini_key *keys);

#endif
