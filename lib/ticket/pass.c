/* pass.c - see pass.h. */
#include "config.h"

#include "lib/ticket/pass.h"

#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/ticket/bytes.h"

static const char head[] = "elmer pass 1\n", head_looks[sizeof(head)] = "elmer look 1\n";

size_t pass_signed_bytes(const struct pass *pass, uint8_t *out)
{
    struct bytes_writer w = {out, 0};
    bytes_put(&w, pass->looks ? head_looks : head, sizeof(head) - 1);
    bytes_put_text(&w, pass->host, TICKET_HOST_MAX);
    bytes_put_number(&w, pass->job, 8);
    bytes_put_number(&w, pass->attempt, 4);
    bytes_put_number(&w, pass->uid, 4);
    bytes_put_text(&w, pass->user, TICKET_USER_MAX);
    bytes_put(&w, pass->public_key, sizeof(pass->public_key));
    bytes_put(&w, pass->key, sizeof(pass->key));
    bytes_put(&w, pass->certificate, sizeof(pass->certificate));
    return w.size;
}

void pass_encode(const struct pass *pass, char *out)
{
    uint8_t bytes[PASS_BYTES_MAX];
    struct bytes_writer w = {bytes, pass_signed_bytes(pass, bytes)};
    bytes_put(&w, pass->signature, sizeof(pass->signature));
    hex_write(bytes, w.size, out);
}

bool pass_decode(const char *text, struct pass *pass)
{
    uint8_t bytes[PASS_BYTES_MAX];
    struct bytes_reader r = bytes_of_text(text, bytes, sizeof(bytes));
    *pass = (struct pass){.job = 0};
    pass->looks = r.left >= sizeof(head) - 1 && memcmp(r.at, head_looks, sizeof(head) - 1) == 0;
    bytes_get_head(&r, pass->looks ? head_looks : head);
    bytes_get_text(&r, pass->host, TICKET_HOST_MAX);
    pass->job = bytes_get_number(&r, 8);
    pass->attempt = (uint32_t)bytes_get_number(&r, 4);
    pass->uid = (uint32_t)bytes_get_number(&r, 4);
    bytes_get_text(&r, pass->user, TICKET_USER_MAX);
    bytes_get(&r, pass->public_key, sizeof(pass->public_key));
    bytes_get(&r, pass->key, sizeof(pass->key));
    bytes_get(&r, pass->certificate, sizeof(pass->certificate));
    bytes_get(&r, pass->signature, sizeof(pass->signature));
    return !r.bad && r.left == 0 && str_valid_hostname(pass->host) && *pass->user && pass->job > 0 &&
           (!pass->looks || pass->attempt == 0);
}

static bool same_user(const struct pass *pass, const struct pass *own)
{
    return pass->uid == own->uid && strcmp(pass->user, own->user) == 0;
}

bool pass_is_of_job(const struct pass *pass, const struct pass *own)
{
    return !pass->looks && !own->looks && pass->job == own->job && pass->attempt == own->attempt &&
           same_user(pass, own);
}

bool pass_may_look(const struct pass *pass, const struct pass *process)
{
    return pass->looks && !process->looks && pass->job == process->job && same_user(pass, process);
}

/* ---- the group ---- */

/* ".../JOB.ATTEMPT/job", digits without zeros in front. */
static bool read_number(const char **at, char end, uint64_t *number)
{
    char digits[24];
    size_t length = strspn(*at, "0123456789");
    if (length == 0 || length >= sizeof(digits) || **at == '0' || (*at)[length] != end)
        return false;
    memcpy(digits, *at, length);
    digits[length] = 0;
    *at += length + 1;
    return str_to_u64(digits, number);
}

bool pass_job_of_group(const char *group, uint64_t *job, uint32_t *attempt)
{
    const char *leaf = strrchr(group, '/'), *name = leaf;
    uint64_t number;
    if (!leaf || leaf == group || strcmp(leaf, "/job") != 0)
        return false;
    while (name > group && name[-1] != '/')
        name--;
    if (!read_number(&name, '.', job) || !read_number(&name, '/', &number) || number > UINT32_MAX)
        return false;
    *attempt = (uint32_t)number;
    return name == leaf + 1;
}
