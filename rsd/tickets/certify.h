/* certify.h - a host's ticket key gets its certificate. */
#ifndef RSD_TICKETS_CERTIFY_H
#define RSD_TICKETS_CERTIFY_H

/* `key` of lib/ticket/program.h; pin is the hash of the CA's certificate, hexadecimal. An exit status. */
int certify(const char *dir, const char *host, const char *pin);

#endif
