# reconcile.c: what a returning host holds is not ended
s/if (host->leftovers\[i\].send)$/if (false)/
