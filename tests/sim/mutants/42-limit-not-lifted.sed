# user.c: nobody looks at the queue again when a user has a place
s/^        queue_changed_supply(core);$/        return;/
