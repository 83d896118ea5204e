#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/seat.h"

struct terminal_lab lab;
const char *const seat_shell[] = {"/bin/bash", "--norc", "--noprofile", "-i", NULL};

int seat_teardown(void **state)
{
    (void)state;
    terminal_down(&lab);
    return 0;
}

int64_t soon(void)
{
    return mono_ms(mono_now()) + LAB_WAIT_MS;
}

static void keep(struct seat *seat, const void *bytes, size_t size)
{
    if (seat->size + size + 1 > seat->room) {
        seat->room = 2 * (seat->size + size + 1);
        seat->text = realloc(seat->text, seat->room);
        assert_non_null(seat->text);
    }
    memcpy(seat->text + seat->size, bytes, size);
    seat->size += size;
    seat->text[seat->size] = 0;
}

static void hear(struct seat *seat, const struct run_frame *frame)
{
    switch ((int)frame->type) {
    case RUN_LOOKING:
        assert_true(run_looking_unpack(frame->data, frame->size, &seat->looking));
        seat->shown = true;
        seat->seen = seat->looking.from;
        break;
    case RUN_OUT:
        keep(seat, frame->data, frame->size);
        seat->seen += frame->size;
        if (seat->gives_back)
            run_link_send_number(&seat->link, RUN_TAKEN, RUN_OUT, (uint32_t)frame->size);
        break;
    case RUN_TAKEN:
        seat->came += run_number(frame->data);
        break;
    case RUN_EXIT:
        seat->exited = true;
        seat->status = run_number(frame->data);
        seat->signal = run_number(frame->data + 4);
        break;
    case RUN_REFUSED:
        snprintf(seat->refused, sizeof(seat->refused), "%.*s", (int)frame->size, (const char *)frame->data);
        break;
    default:
        fail_msg("frame %d", (int)frame->type);
    }
}

void turn(struct seat *seat)
{
    struct pollfd fd = {.fd = seat->link.fd, .events = run_link_events(&seat->link)};
    struct run_frame frame;
    (void)poll(&fd, 1, 20);
    run_link_step(&seat->link, fd.revents);
    while (run_link_next(&seat->link, &frame) > 0)
        hear(seat, &frame);
}

void ask(struct seat *seat, struct run_look look)
{
    uint8_t bytes[RUN_LOOK_BYTES];
    seat->gives_back = true;
    run_look_pack(&look, bytes);
    run_link_send(&seat->link, RUN_LOOK, 0, bytes, sizeof(bytes));
}

void look_with(struct seat *seat, struct run_look look)
{
    struct claim claim = LAB_CLAIM;
    assert_true(terminal_connect(&lab, &claim, &seat->link));
    ask(seat, look);
    UNTIL(seat, seat->shown);
}

void look(struct seat *seat)
{
    *seat = (struct seat){.shown = false};
    look_with(seat, (struct run_look){.seen = RUN_LOOK_UNSEEN, .rows = 40, .columns = 132});
}

void leave(struct seat *seat)
{
    run_link_fini(&seat->link);
    free(seat->text);
    *seat = (struct seat){.shown = false};
}

void forget(struct seat *seat)
{
    seat->size = 0;
    if (seat->text)
        seat->text[0] = 0;
}

void type(struct seat *seat, const char *text)
{
    run_link_send(&seat->link, RUN_IN, 0, text, strlen(text));
}

bool shows(const struct seat *seat, const char *text)
{
    return seat->text && strstr(seat->text, text);
}

void command(struct seat *seat, const char *line, const char *expected)
{
    char typed[200];
    forget(seat);
    snprintf(typed, sizeof(typed), "%s\r", line);
    type(seat, typed);
    UNTIL(seat, shows(seat, expected) && strcmp(seat->text + seat->size - 7, "ready> ") == 0);
}
