# array.c: a task has its place of before where its array was moved
s/^    return array->place == array->id + array->ntasks ? array->id + ordinal : array->place;$/    return array->id + ordinal;/
