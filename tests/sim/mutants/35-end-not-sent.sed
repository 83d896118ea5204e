# life.c: a job that lost a host is not ended on the others
s/^            part_end(core, part);$/            part->state = PART_ENDING;/
