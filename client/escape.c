#include "config.h"

#include "client/escape.h"

enum escape_do escape_take(struct escape *escape, uint8_t byte, uint8_t *out, size_t *size)
{
    if (escape->tilde) {
        escape->tilde = false;
        if (byte == '.')
            return ESCAPE_LEAVE;
        if (byte == '?')
            return ESCAPE_HELP;
        out[(*size)++] = '~';
        escape->in_line = true;
        if (byte == '~')
            return ESCAPE_NOTHING;
    } else if (byte == '~' && !escape->in_line) {
        escape->tilde = true;
        return ESCAPE_NOTHING;
    }
    out[(*size)++] = byte;
    escape->in_line = byte != '\r' && byte != '\n';
    return ESCAPE_NOTHING;
}
