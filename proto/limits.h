/* Every limit of the wire format, in one place. What exceeds one is refused before anything is allocated for it. */
#pragma once

enum {
    WIRE_VERSION = 1,
    JOB_BYTES_MAX = 256 * 1024,        /* packed descriptor */
    JOB_INLINE_BYTES_MAX = 128 * 1024, /* frame sequence inside a descriptor */
    JOB_PARTITIONS_MAX = 64,
    JOB_LABEL_BYTES_MAX = 128,
    JOB_PRIORITY_COUNT = 4, /* 0 urgent … 3 low */
    JOB_PRIORITY_DEFAULT = 2,
    RESULT_BYTES_MAX = 256 * 1024,   /* packed result */
    RECORD_BYTES_MAX = 512 * 1024,   /* packed job record: descriptor and history */
    MESSAGE_BYTES_MAX = 1024 * 1024, /* any protobuf message but a frame */
    HEARTBEAT_BYTES_MAX = 2 * 1024,
    EVENT_BYTES_MAX = 4 * 1024,
    CONTROL_BYTES_MAX = 4 * 1024, /* requests on ctl subjects, their replies, cancel marks */
    LANE_INFO_BYTES_MAX = 64 * 1024,
    KEY_RECORD_BYTES_MAX = 4 * 1024,
    LEASE_BYTES_MAX = 4 * 1024,
    ASSIGNMENT_BYTES_MAX = JOB_BYTES_MAX + 4 * 1024,
    MESSAGE_UNKNOWN_FIELDS_MAX = 16,
    MESSAGE_DEPTH_MAX = 8,
    MESSAGE_ITEMS_MAX = 64 * 1024, /* fields and repeated entries together */
    FRAME_RAW_BYTES_MIN = 4 * 1024,
    FRAME_RAW_BYTES_MAX = 4 * 1024 * 1024,
    FRAME_HEADER_BYTES_MAX = 96, /* delimiter and all fields but the payload */
    BODY_SECTIONS_MAX = 8,
    BODY_FRAMES_MAX = 1 << 20,
    OBJECT_STEPS_MAX = 4096, /* that an object reference tells */
    ID_BYTES_MAX = 64,
    SUBJECT_BYTES_MAX = 384, /* any subject we build, with NUL */
    CIRCUIT_TOKEN_DIGITS = 16
};
