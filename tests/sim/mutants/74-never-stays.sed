# after.c: who can never run is not cancelled
s/^    for (int i = 0; i < DOOMED_IN_A_STEP \&\& /    for (int i = 0; i < 0 \&\& /
