/* A management library of one card that exists for the test alone: the functions that sensor.c calls, as NVIDIA's manual declares them.
 * It gives no clock of the memory, and counts its energy from 5 kJ on.
 */
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct utilisation {
    unsigned gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
static int card, users;
/* How often it was asked: for its energy, for the link as it is, for the link's rates. */
EXPORT unsigned card_asked_energy, card_asked_link, card_asked_rates;
unsigned card_asked_energy, card_asked_link, card_asked_rates;
static unsigned long long energy_mj = 5000000;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilisation *out);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value);
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value);
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value);
EXPORT int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius);
EXPORT int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *mhz);
EXPORT int nvmlDeviceGetPcieThroughput(void *device, unsigned counter, unsigned *kb_s);

static int give(void *device, unsigned *out, unsigned value) {
    if (device != &card || users != 1) {
        return INVALID_ARGUMENT;
    }
    *out = value;
    return SUCCESS;
}

int nvmlInit_v2(void) {
    users++;
    return SUCCESS;
}
int nvmlShutdown(void) {
    users--;
    return SUCCESS;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    if (strcmp(uuid, "GPU-5ca1ab1e-0000-4000-8000-000000000001") != 0) {
        return NOT_FOUND;
    }
    *device = &card;
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, struct utilisation *out) {
    out->memory = 12;
    return give(device, &out->gpu, 97);
}
int nvmlDeviceGetMemoryInfo(void *device, struct memory *out) {
    *out = (struct memory){1000, 400, 600};
    return device == &card ? SUCCESS : INVALID_ARGUMENT;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj) {
    *mj = energy_mj;
    energy_mj += 250;
    card_asked_energy++;
    return device == &card ? SUCCESS : INVALID_ARGUMENT;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) {
    return give(device, mw, 412345);
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value) {
    card_asked_link++;
    return give(device, value, 4);
}
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value) {
    return give(device, value, 8);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value) {
    return give(device, value, 5);
}
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
    return sensor == 0 ? give(device, celsius, 61) : INVALID_ARGUMENT;
}
int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *mhz) {
    return which == 1 ? give(device, mhz, 1980) : NOT_SUPPORTED;
}
int nvmlDeviceGetPcieThroughput(void *device, unsigned counter, unsigned *kb_s) {
    card_asked_rates++;
    return give(device, kb_s, counter == 0 ? 7 : counter == 1 ? 3000 : 0);
}
