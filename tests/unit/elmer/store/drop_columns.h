/* drop_columns.h - what came with schemas 12 and 13, for tests of stores that are older. */
#ifndef TESTS_UNIT_ELMER_STORE_DROP_COLUMNS_H
#define TESTS_UNIT_ELMER_STORE_DROP_COLUMNS_H

#define DROP_SCHEMA_12                                                                                                 \
    "ALTER TABLE state DROP COLUMN array; "                                                                            \
    "ALTER TABLE state DROP COLUMN ntasks; "                                                                           \
    "ALTER TABLE state DROP COLUMN tasks_ok; "                                                                         \
    "ALTER TABLE state DROP COLUMN tasks_failed; "                                                                     \
    "ALTER TABLE state DROP COLUMN task; "                                                                             \
    "ALTER TABLE state DROP COLUMN task_limit; "                                                                       \
    "ALTER TABLE state DROP COLUMN next_task; "                                                                        \
    "ALTER TABLE state DROP COLUMN gone; "                                                                             \
    "ALTER TABLE state DROP COLUMN line; "

#endif
