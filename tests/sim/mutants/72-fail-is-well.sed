# after.c: what fails counts as well
s/^        return end == CORE_END_WELL ? CORE_MET : CORE_NEVER;$/        return end != CORE_END_UNSTARTED ? CORE_MET : CORE_NEVER;/
