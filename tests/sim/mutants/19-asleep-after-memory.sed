# queue.c: memory that is given back does not wake who asks for it
s/room_is_asked(&demand) ? UINT32_MAX : changed/changed/
