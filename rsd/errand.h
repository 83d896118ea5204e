/* errand.h - what an administrator asks of rsd is done by another program, so that it is not in the one that stays. */
#ifndef RSD_ERRAND_H
#define RSD_ERRAND_H

/* Execute program with these arguments of rsd. An operand, which is a token, is overwritten at once, as every user of
 * the host reads the arguments of a process; the program finds "-" in its place and the token in a line of its standard
 * input. It returns only if that fails, with -errno. */
int errand_hand_over(const char *program, int argc, char **argv);

#endif
