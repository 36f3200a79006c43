/* The one switch from class to fate: whoever wants to know what an error means for a job asks here. */
#include "node/daemon/fate.h"

struct verdict verdict_of(enum err code) {
    switch (err_class(code)) {
    case CLASS_OK:
        return (struct verdict){.fate = FATE_DONE};
    case CLASS_REJECT:
        return (struct verdict){.fate = FATE_FAIL};
    case CLASS_BUSY:
        return (struct verdict){.fate = FATE_GIVE_BACK};
    case CLASS_DEVICE:
        return (struct verdict){
            .fate = FATE_GIVE_BACK, .strike = true, .death = code == E_DEVICE_LOST};
    case CLASS_CHECK:
        return (struct verdict){.fate = FATE_SETTLE};
    case CLASS_WORLD:
        return (struct verdict){.fate = FATE_TRY_AGAIN};
    case CLASS_STOP:
        return (struct verdict){.fate = FATE_STOP};
    case CLASS_USAGE:
    case CLASS_BUG:
        break;
    }
    return (struct verdict){.fate = FATE_FAIL, .alarm = true};
}
