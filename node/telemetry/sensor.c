/* The management library by name, its functions by name: the few we call, declared here as its manual documents them. A function that an
 * older library lacks, or a value that a card does not give, leaves its reading absent.
 */
#include "node/telemetry/sensor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
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

static const uint64_t COUNT_NS = UINT64_C(60000000000);
static const uint64_t LINK_NS = UINT64_C(10000000000);

struct sensors {
    void *library; /* owned: dlclose */
    void *device;  /* lent from the library */
    bool running;
    bool transmits; /* whose turn it is of the link's rates */
    struct readings last;
    double energy_mj;              /* since sensors_open */
    uint64_t energy_start;         /* the card's count then */
    uint64_t power_ns, counted_ns; /* when they were read last */
    uint64_t link_ns;              /* when the link was asked for last; 0: never */
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

/* Since the driver was loaded. */
static bool read_total_energy(uint64_t *mj, const struct sensors *s) {
    unsigned long long value;
    if (!s->energy || s->energy(s->device, &value) != 0) {
        return false;
    }
    *mj = value;
    return true;
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
        (void)read_total_energy(&s->energy_start, s);
        s->power_ns = s->counted_ns = clock_ns();
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

static void put(struct readings *out, enum sensor sensor, bool known, uint64_t value) {
    out->values[sensor] = known ? value : 0;
    out->known[sensor] = known;
}

static void read_number(struct readings *out, enum sensor sensor, const struct sensors *s,
                        nvml_number *call) {
    unsigned value = 0;
    bool known = call && call(s->device, &value) == 0;
    put(out, sensor, known, value);
}

static void read_chosen(struct readings *out, enum sensor sensor, const struct sensors *s,
                        nvml_chosen *call, unsigned which, uint64_t factor) {
    unsigned value = 0;
    bool known = call && call(s->device, which, &value) == 0;
    put(out, sensor, known, value * factor);
}

/* The card's own count of its energy takes the driver milliseconds of processor time to read, its power microseconds. So the energy is the
 * power summed up, put right by the count each COUNT_NS; it never falls. */
static void read_power(struct readings *out, struct sensors *s) {
    uint64_t now_ns = clock_ns(), counted_mj;
    read_number(out, SENSOR_POWER_MILLIWATT, s, s->power);
    s->energy_mj +=
        (double)out->values[SENSOR_POWER_MILLIWATT] * (double)(now_ns - s->power_ns) / 1e9;
    s->power_ns = now_ns;
    if (now_ns - s->counted_ns >= COUNT_NS && read_total_energy(&counted_mj, s)) {
        s->energy_mj = (double)(counted_mj - s->energy_start);
        s->counted_ns = now_ns;
    }
    uint64_t told_mj = out->values[SENSOR_ENERGY_MILLIJOULE], mj = (uint64_t)s->energy_mj;
    put(out, SENSOR_ENERGY_MILLIJOULE, out->known[SENSOR_POWER_MILLIWATT],
        mj > told_mj ? mj : told_mj);
}

static void read_link(struct readings *out, struct sensors *s) {
    uint64_t now_ns = clock_ns();
    if (!s->link_ns) {
        read_number(out, SENSOR_PCIE_GENERATION_MAX, s, s->generation_max);
        read_number(out, SENSOR_PCIE_WIDTH_MAX, s, s->width_max);
        read_chosen(out, SENSOR_PCIE_TRANSMIT_BYTES_PER_SECOND, s, s->pcie, NVML_PCIE_TX, 1024);
    }
    if (!s->link_ns || now_ns - s->link_ns >= LINK_NS) {
        read_number(out, SENSOR_PCIE_GENERATION, s, s->generation);
        read_number(out, SENSOR_PCIE_WIDTH, s, s->width);
        s->link_ns = now_ns;
    }
    if (s->transmits) {
        read_chosen(out, SENSOR_PCIE_TRANSMIT_BYTES_PER_SECOND, s, s->pcie, NVML_PCIE_TX, 1024);
    } else {
        read_chosen(out, SENSOR_PCIE_RECEIVE_BYTES_PER_SECOND, s, s->pcie, NVML_PCIE_RX, 1024);
    }
    s->transmits = !s->transmits;
}

void sensors_read(struct readings *out, struct sensors *s) {
    struct nvml_utilisation rates = {0};
    struct nvml_memory memory = {0};
    if (!s) {
        memset(out, 0, sizeof *out);
        return;
    }
    struct readings *r = &s->last;
    bool known = s->utilisation && s->utilisation(s->device, &rates) == 0;
    put(r, SENSOR_UTILISATION_PERMILLE, known, rates.gpu_percent * UINT64_C(10));
    put(r, SENSOR_MEMORY_UTILISATION_PERMILLE, known, rates.memory_percent * UINT64_C(10));
    known = s->memory && s->memory(s->device, &memory) == 0;
    r->memory_used_bytes = known ? memory.used_bytes : 0;
    r->memory_bytes = known ? memory.total_bytes : 0;
    read_power(r, s);
    read_chosen(r, SENSOR_TEMPERATURE_CELSIUS, s, s->temperature, NVML_TEMPERATURE_GPU, 1);
    read_chosen(r, SENSOR_CLOCK_CORE_MEGAHERTZ, s, s->clock, NVML_CLOCK_SM, 1);
    read_chosen(r, SENSOR_CLOCK_MEMORY_MEGAHERTZ, s, s->clock, NVML_CLOCK_MEMORY, 1);
    read_link(r, s);
    *out = *r;
}
