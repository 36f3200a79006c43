/* What a lane does with a job that ended in an error: a function of the error's class, and of nothing else.
 *
 * | class            | what happens                                                              | strike |
 * |------------------|---------------------------------------------------------------------------|--------|
 * | ok               | result stored, acknowledged                                               |        |
 * | reject           | `failed` result stored, acknowledged; never tried again                   |        |
 * | busy             | given back: record to queued with the reason, epoch + 1, acknowledged     |        |
 * | device           | given back; E_DEVICE_LOST as if the worker had died, so without an attempt | yes    |
 * | check            | computed again elsewhere (opinion.h): becomes reject or device            |        |
 * | world            | tried again here with back-off, then given back                           |        |
 * | stop             | `cancelled` or `expired` result stored, acknowledged                      |        |
 * | usage, bug       | `failed` result stored, acknowledged, logged as an error                  |        |
 *
 * Threads  any; pure.
 */
#pragma once
#include "node/base/err.h"

enum fate {
    FATE_DONE,
    FATE_FAIL,
    FATE_GIVE_BACK,
    FATE_SETTLE,
    FATE_TRY_AGAIN, /* here; the second answer is FATE_GIVE_BACK */
    FATE_STOP
};
struct verdict {
    enum fate fate;
    bool strike; /* against the device */
    bool alarm;  /* someone must look at it */
    bool death;  /* of the worker: uses up no attempt */
};
struct verdict verdict_of(enum err code);
