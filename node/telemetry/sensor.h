/* Sensors of a GPU, read through NVIDIA's management library, which is looked for when the process runs.
 *
 * Without the library, or without a card that answers to the name, sensors_open gives NULL and every reading is absent; nothing
 * else depends on them. A call takes the driver between microseconds and twenty milliseconds, so they are read by a thread that nobody waits
 * for, and what is dear or changes seldom is not asked for every time: the link's speed each ten seconds, its two rates in turn, the count of
 * energy each minute. What was not asked for keeps the value it had.
 *
 * Owner    whoever opened it. Threads one.
 */
#pragma once
#include "node/base/err.h"

/* The order of enum Sensor in proto/telemetry.proto, from 1. */
enum sensor {
    SENSOR_UTILISATION_PERMILLE,
    SENSOR_MEMORY_UTILISATION_PERMILLE,
    SENSOR_POWER_MILLIWATT,
    SENSOR_ENERGY_MILLIJOULE, /* since sensors_open */
    SENSOR_TEMPERATURE_CELSIUS,
    SENSOR_CLOCK_CORE_MEGAHERTZ,
    SENSOR_CLOCK_MEMORY_MEGAHERTZ,
    SENSOR_PCIE_RECEIVE_BYTES_PER_SECOND,
    SENSOR_PCIE_TRANSMIT_BYTES_PER_SECOND,
    SENSOR_PCIE_GENERATION,
    SENSOR_PCIE_WIDTH,
    SENSOR_PCIE_GENERATION_MAX,
    SENSOR_PCIE_WIDTH_MAX,
    SENSORS_COUNT
};

struct readings {
    uint64_t values[SENSORS_COUNT];
    bool known[SENSORS_COUNT];
    uint64_t memory_used_bytes, memory_bytes; /* of the card; 0: not known */
};

struct sensors;
/* The card whose UUID stands in `device` ("cuda: NVIDIA H200 GPU-…"). *out is NULL when there is nothing to read. */
void sensors_open(struct sensors **out, const char *device);
void sensors_close(struct sensors **s);                     /* for AUTO */
void sensors_read(struct readings *out, struct sensors *s); /* NULL: nothing is known */
