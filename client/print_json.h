/* print_json.h - what commands print for programs. In a file of its own: a command without it does not load the library
 * that it is made with. */
#ifndef CLIENT_PRINT_JSON_H
#define CLIENT_PRINT_JSON_H

#include <jansson.h>

/* A line on stdout, {"schema":SCHEMA,NAME:[..]}. The list is released. Ends the program when out of memory. */
void print_json(const char *schema, const char *name, json_t *list);

#endif
