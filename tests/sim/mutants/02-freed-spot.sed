# cluster.c: a new job takes the first free level, above earlier jobs
s/while (level > 0 && row\[level - 1\] == NULL)/for (level = 0; level < CORE_MAX_LEVELS \&\& row[level] != NULL; level++) ; while (0)/
