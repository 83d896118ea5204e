/* fake_address.h - in place of lib/net/address.c: what a name stands for, and which addresses this host has. */
#ifndef ELMER_FAKE_ADDRESS_H
#define ELMER_FAKE_ADDRESS_H

/* Every text stands for itself, and is here. */
void fake_address_begin(void);
/* All texts stand for this one; "": the name service does not answer. */
void fake_address_stands_for(const char *text);
/* This host has not got it; NULL: it has all. */
void fake_address_gone(const char *text);

#endif
