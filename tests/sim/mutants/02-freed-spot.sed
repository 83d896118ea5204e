# cluster.c: a new job takes the first free level, above earlier jobs
s/while (level > 0 && !row\[level - 1\])/for (level = 0; level < CORE_MAX_LEVELS \&\& row[level]; level++) ; while (0)/
