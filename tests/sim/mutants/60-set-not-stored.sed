# setting.c: what an administrator has set is not stored
s/^        emit_owe_setting(core, setting);$/        ;/
