# setting.c: there is no way back to the configuration
s/value != SETTING_UNSET ? value : core_setting_default(core, setting))/value != SETTING_UNSET ? value : core_setting_value(core, setting))/
