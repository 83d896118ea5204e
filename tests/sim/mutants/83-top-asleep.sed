# queue.c: nobody looks who is first then
s/^        queue_changed_supply(core); .* begins anew .*$/        core->queue.refused = core->queue.refused;/
