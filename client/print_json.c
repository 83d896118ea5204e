#include "config.h"

#include "client/print_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/common.h"

void print_json(const char *schema, const char *name, json_t *list)
{
    json_t *top = must(json_pack("{s:s, s:o}", "schema", schema, name, list));
    char *text = must(json_dumps(top, JSON_COMPACT | JSON_REAL_PRECISION(6)));

    puts(text);
    free(text);
    json_decref(top);
}
