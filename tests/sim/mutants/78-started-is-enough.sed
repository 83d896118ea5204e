# after.c: a job that runs has ended
s/^        return after->kind == AFTER_START \&\& info->ran ? CORE_MET/        return info->ran ? CORE_MET/
