#include "config.h"

#include "lib/run/look.h"

static uint8_t *put(uint8_t *at, uint64_t number, unsigned bytes)
{
    while (bytes-- > 0)
        *at++ = (uint8_t)(number >> (8 * bytes));
    return at;
}

static uint64_t get(const uint8_t **at, unsigned bytes)
{
    uint64_t number = 0;
    while (bytes-- > 0)
        number = number << 8 | *(*at)++;
    return number;
}

void run_look_pack(const struct run_look *look, uint8_t bytes[RUN_LOOK_BYTES])
{
    bytes = put(bytes, look->session, 8);
    bytes = put(bytes, look->seen, 8);
    bytes = put(bytes, look->rows, 4);
    (void)put(bytes, look->columns, 4);
}

bool run_look_unpack(const uint8_t *bytes, size_t size, struct run_look *look)
{
    if (size != RUN_LOOK_BYTES)
        return false;
    look->session = get(&bytes, 8);
    look->seen = get(&bytes, 8);
    look->rows = (uint32_t)get(&bytes, 4);
    look->columns = (uint32_t)get(&bytes, 4);
    return true;
}

void run_looking_pack(const struct run_looking *looking, uint8_t bytes[RUN_LOOKING_BYTES])
{
    bytes = put(bytes, looking->session, 8);
    bytes = put(bytes, looking->from, 8);
    bytes = put(bytes, looking->lost, 8);
    bytes = put(bytes, looking->came, 8);
    (void)put(bytes, looking->went, 8);
}

bool run_looking_unpack(const uint8_t *bytes, size_t size, struct run_looking *looking)
{
    if (size != RUN_LOOKING_BYTES)
        return false;
    looking->session = get(&bytes, 8);
    looking->from = get(&bytes, 8);
    looking->lost = get(&bytes, 8);
    looking->came = get(&bytes, 8);
    looking->went = get(&bytes, 8);
    return looking->session > 0 && looking->went <= looking->came;
}
