# array.c: a task has its place of before where its array was moved
s/^    return core_at_own_place(array) ? array->id + ordinal : array->place;$/    return array->id + ordinal;/
