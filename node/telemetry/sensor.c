/* The management library by name, its functions by name: the few we call, declared here as its manual documents them. A function that an
 * older library lacks, or a value that a card does not give, leaves its reading absent.
 */
#include "node/telemetry/sensor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "node/base/mem.h"

/* In NVML 0 is success and a device is an opaque pointer. */
typedef int nvml_plain(void);
typedef int nvml_by_uuid(const char *uuid, void **device);
typedef int nvml_number(void *device, unsigned *value);
typedef int nvml_chosen(void *device, unsigned which, unsigned *value);
typedef int nvml_long(void *device, unsigned long long *value);
struct nvml_utilisation {
    unsigned gpu_percent, memory_percent;
};
struct nvml_memory {
    unsigned long long total_bytes, free_bytes, used_bytes;
};
typedef int nvml_rates(void *device, struct nvml_utilisation *out);
typedef int nvml_bytes(void *device, struct nvml_memory *out);
enum {
    NVML_TEMPERATURE_GPU = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_PCIE_TX = 0,
    NVML_PCIE_RX = 1
};

struct sensors {
    void *library; /* owned: dlclose */
    void *device;  /* lent from the library */
    bool running;
    uint64_t energy_start;
    nvml_plain *init, *shutdown;
    nvml_by_uuid *by_uuid;
    nvml_rates *utilisation;
    nvml_bytes *memory;
    nvml_long *energy;
    nvml_number *power, *generation, *width, *generation_max, *width_max;
    nvml_chosen *temperature, *clock, *pcie;
};

#define SYMBOL(field, name)                                                                        \
    { offsetof(struct sensors, field), name }
static const struct {
    size_t at;
    const char *name;
} symbols[] = {
    SYMBOL(init, "nvmlInit_v2"),
    SYMBOL(shutdown, "nvmlShutdown"),
    SYMBOL(by_uuid, "nvmlDeviceGetHandleByUUID"),
    SYMBOL(utilisation, "nvmlDeviceGetUtilizationRates"),
    SYMBOL(memory, "nvmlDeviceGetMemoryInfo"),
    SYMBOL(energy, "nvmlDeviceGetTotalEnergyConsumption"),
    SYMBOL(power, "nvmlDeviceGetPowerUsage"),
    SYMBOL(generation, "nvmlDeviceGetCurrPcieLinkGeneration"),
    SYMBOL(width, "nvmlDeviceGetCurrPcieLinkWidth"),
    SYMBOL(generation_max, "nvmlDeviceGetMaxPcieLinkGeneration"),
    SYMBOL(width_max, "nvmlDeviceGetMaxPcieLinkWidth"),
    SYMBOL(temperature, "nvmlDeviceGetTemperature"),
    SYMBOL(clock, "nvmlDeviceGetClockInfo"),
    SYMBOL(pcie, "nvmlDeviceGetPcieThroughput"),
};

static void load_symbols(struct sensors *s) {
    for (size_t i = 0; i < COUNT_OF(symbols); i++) {
        void *symbol = dlsym(s->library, symbols[i].name);
        memcpy((char *)s + symbols[i].at, &symbol,
               sizeof symbol); /* object and function pointers are one size */
    }
}

static bool find_device(struct sensors *s, const char *device) {
    char uuid[64];
    const char *start = strstr(device, "GPU-");
    if (!start || !s->init || !s->by_uuid) {
        return false;
    }
    snprintf(uuid, sizeof uuid, "%.*s", (int)strcspn(start, " "), start);
    s->running = s->init() == 0;
    return s->running && s->by_uuid(uuid, &s->device) == 0;
}

void sensors_open(struct sensors **out, const char *device) {
    AUTO(sensors_close) struct sensors *s = NULL;
    *out = NULL;
    if (mem_new(&s, 1, sizeof *s) != OK) {
        return;
    }
    s->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!s->library) {
        return;
    }
    load_symbols(s);
    if (find_device(s, device)) {
        uint64_t energy = 0;
        s->energy_start = sensors_energy(&energy, s) ? energy : 0;
        *out = TAKE(s);
    }
}

void sensors_close(struct sensors **s) {
    if (!*s) {
        return;
    }
    if ((*s)->running && (*s)->shutdown) {
        (*s)->shutdown();
    }
    if ((*s)->library) {
        dlclose((*s)->library);
    }
    mem_free_ptr(s);
}

bool sensors_energy(uint64_t *millijoule, struct sensors *s) {
    unsigned long long value;
    if (!s || !s->energy || s->energy(s->device, &value) != 0) {
        return false;
    }
    *millijoule = value - s->energy_start;
    return true;
}

static void put(struct readings *out, enum sensor sensor, uint64_t value) {
    out->values[sensor] = value;
    out->known[sensor] = true;
}

static void read_number(struct readings *out, enum sensor sensor, const struct sensors *s,
                        nvml_number *call) {
    unsigned value;
    if (call && call(s->device, &value) == 0) {
        put(out, sensor, value);
    }
}

static void read_chosen(struct readings *out, enum sensor sensor, const struct sensors *s,
                        nvml_chosen *call, unsigned which, uint64_t factor) {
    unsigned value;
    if (call && call(s->device, which, &value) == 0) {
        put(out, sensor, value * factor);
    }
}

void sensors_read(struct readings *out, struct sensors *s) {
    struct nvml_utilisation rates;
    struct nvml_memory memory;
    uint64_t energy;
    memset(out, 0, sizeof *out);
    if (!s) {
        return;
    }
    if (s->utilisation && s->utilisation(s->device, &rates) == 0) {
        put(out, SENSOR_UTILISATION_PERMILLE, rates.gpu_percent * UINT64_C(10));
        put(out, SENSOR_MEMORY_UTILISATION_PERMILLE, rates.memory_percent * UINT64_C(10));
    }
    if (s->memory && s->memory(s->device, &memory) == 0) {
        out->memory_used_bytes = memory.used_bytes;
        out->memory_bytes = memory.total_bytes;
    }
    if (sensors_energy(&energy, s)) {
        put(out, SENSOR_ENERGY_MILLIJOULE, energy);
    }
    read_number(out, SENSOR_POWER_MILLIWATT, s, s->power);
    read_number(out, SENSOR_PCIE_GENERATION, s, s->generation);
    read_number(out, SENSOR_PCIE_WIDTH, s, s->width);
    read_number(out, SENSOR_PCIE_GENERATION_MAX, s, s->generation_max);
    read_number(out, SENSOR_PCIE_WIDTH_MAX, s, s->width_max);
    read_chosen(out, SENSOR_TEMPERATURE_CELSIUS, s, s->temperature, NVML_TEMPERATURE_GPU, 1);
    read_chosen(out, SENSOR_CLOCK_CORE_MEGAHERTZ, s, s->clock, NVML_CLOCK_SM, 1);
    read_chosen(out, SENSOR_CLOCK_MEMORY_MEGAHERTZ, s, s->clock, NVML_CLOCK_MEMORY, 1);
    read_chosen(out, SENSOR_PCIE_RECEIVE_BYTES_PER_SECOND, s, s->pcie, NVML_PCIE_RX, 1024);
    read_chosen(out, SENSOR_PCIE_TRANSMIT_BYTES_PER_SECOND, s, s->pcie, NVML_PCIE_TX, 1024);
}
