/* Pages about one thing. Each draws from the pen's line downwards. */
#include "node/cli/top_pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- One device --- */

bool top_lane_is_silent(const struct top_pen *pen, const struct watch_lane *lane) {
    return watch_is_silent(lane, pen->now_ms);
}

const char *top_lane_state(const struct top_pen *pen, const struct watch_lane *lane) {
    static const char *const words[] = {"?", "starting", "ready", "draining", "fenced", "stopped"};
    return top_lane_is_silent(pen, lane)   ? "silent"
           : lane->state < COUNT_OF(words) ? words[lane->state]
                                           : "?";
}

void top_draw_hand(const struct top_pen *pen, const struct watch_lane *lane,
                   const struct watch_hand *h) {
    char where[32], age[16], key[13], part[16] = "";
    int wide = pen->width > 100 ? 36 : 22;
    snprintf(where, sizeof where, "%.11s.%u", lane->node, lane->gpu);
    if (h->partition) {
        snprintf(part, sizeof part, "/%u", h->partition);
    }
    int name = wide - (int)strlen(part), len = (int)strlen(h->job);
    pen_put(pen, 1, PLAIN, "%.*s%s%*s %-9.9s %-13s %-9s %-9s %3u%% %s", name, h->job, part,
            len < name ? name - len : 0, "", h->tenant, where, h->stage, h->step, h->permille / 10,
            pen_span_text(age, h->age_ns));
    if (pen->width > 110) {
        pen_put(pen, pen->width - 16, DIM, "%s", pen_key_text(key, &h->key));
    }
}

static void draw_accounts(struct top_pen *pen, const struct watch_lane *lane) {
    struct watch_minute m = watch_minute_of(lane);
    const struct watch_sample *last =
        lane->samples_count ? &lane->samples[lane->samples_count - 1] : NULL;
    char total[16];
    pen_put(pen, 1, TITLE, "%-18s %10s %9s", "account", "all", "minute");
    pen->line++;
    for (int i = 0; last && i < LEDGER_ACCOUNTS_COUNT; i++) {
        enum ledger_account account = (enum ledger_account)i;
        if (last->ns[i] == 0) {
            continue;
        }
        uint64_t permille = m.wall_ns ? m.ns[i] * 1000 / m.wall_ns : 0;
        permille = permille > 1000 ? 1000 : permille; /* a proof that began before the minute */
        pen_put(pen, 1, pen_letter_colour(watch_letter(account)), "%-18s",
                ledger_account_name(account));
        pen_put(pen, 20, PLAIN, "%10s %6" PRIu64 ".%" PRIu64 "%%",
                pen_span_text(total, last->ns[i]), permille / 10, permille % 10);
        int cells = pen->width / 2 - 45;
        for (int k = 0; k < cells && (uint64_t)k < permille * (uint64_t)cells / 1000; k++) {
            pen_put(pen, 42 + k, pen_letter_colour(watch_letter(account)), "%c",
                    watch_letter(account));
        }
        pen->line++;
    }
    if (last && last->open_ns) {
        pen_put(pen, 1, GOOD, "%-18s", "computing now");
        pen_put(pen, 20, PLAIN, "%10s", pen_span_text(total, last->open_ns));
        pen->line++;
    }
}

static void draw_sensors(struct top_pen *pen, const struct watch_lane *lane) {
    static const struct {
        const char *name, *unit;
        double factor;
    } sensors[WATCH_SENSORS_MAX] = {
        [1] = {"busy", "%", 0.1},         [2] = {"memory busy", "%", 0.1},
        [3] = {"power", "W", 0.001},      [4] = {"energy", "kJ", 1e-6},
        [5] = {"temperature", "C", 1},    [6] = {"core clock", "MHz", 1},
        [7] = {"memory clock", "MHz", 1}, [8] = {"PCIe in", "MB/s", 1e-6},
        [9] = {"PCIe out", "MB/s", 1e-6}, [10] = {"PCIe generation", "", 1},
        [11] = {"PCIe lanes", "", 1},
    };
    int column = pen->width / 2;
    char used[16], limit[16];
    for (size_t i = 0; i < lane->memory_count; i++) {
        const struct watch_number *n = &lane->memory[i];
        pen_put(pen, column, PLAIN, "%-17s %s%s%s", n->name, pen_bytes_text(used, n->value),
                n->limit ? " of " : "", n->limit ? pen_bytes_text(limit, n->limit) : "");
        pen->line++;
    }
    for (size_t i = 0; i < WATCH_SENSORS_MAX; i++) {
        if (lane->known[i] && sensors[i].name) {
            pen_put(pen, column, PLAIN, "%-17s %.1f %s", sensors[i].name,
                    (double)lane->readings[i] * sensors[i].factor, sensors[i].unit);
            pen->line++;
        }
    }
    for (size_t i = 0; i < lane->counters_count; i++) {
        pen_put(pen, column, PLAIN, "%-17.17s %" PRIu64, lane->counters[i].name,
                lane->counters[i].value);
        pen->line++;
    }
}

void top_draw_device(struct top_pen *pen, const struct watch_lane *lane) {
    char bar[512], key[13], prove[16];
    struct watch_minute m = watch_minute_of(lane);
    int cells = pen->width - 14 < 400 ? pen->width - 14 : 400;
    pen_put(pen, 0, TITLE, "%s.%u", lane->node, lane->gpu);
    pen_put(pen, (int)strlen(lane->node) + 6, lane->state == 2 ? GOOD : BAD, "%s %s",
            top_lane_state(pen, lane), lane->reason);
    pen_put(pen, pen->width / 2, PLAIN, "%s", lane->device);
    pen->line++;
    pen_put(pen, 0, PLAIN, "last minute");
    watch_bar(bar, (size_t)(cells > 0 ? cells : 0), &m);
    pen_bar(pen, 12, bar);
    pen->line += 2;
    int top = pen->line;
    draw_accounts(pen, lane);
    int bottom = pen->line;
    pen->line = top;
    draw_sensors(pen, lane);
    pen->line = (pen->line > bottom ? pen->line : bottom) + 1;
    for (size_t i = 0; i < lane->keys_count; i++) {
        pen_put(pen, 1, PLAIN, "key %s %s  %s a proof", pen_key_text(key, &lane->keys[i]),
                lane->key_loaded[i] ? "loaded" : "on disk",
                lane->key_prove_ns[i] ? pen_span_text(prove, lane->key_prove_ns[i]) : "?");
        pen->line++;
    }
    for (size_t i = 0; i < lane->hand_count; i++) {
        top_draw_hand(pen, lane, &lane->hand[i]);
        pen->line++;
    }
    if (lane->error_ms) {
        pen_put(pen, 1, BAD, "last error: %s %s %s", lane->error, lane->error_job,
                lane->error_detail);
        pen->line++;
    }
}

/* --- One queue --- */

static const struct watch_queue *find_queue(const struct watch_fleet *fleet, uint32_t priority,
                                            const struct sha256 *key) {
    for (size_t i = 0; i < fleet->queues_count; i++) {
        const struct watch_queue *q = &fleet->queues[i];
        if (q->priority == priority && !memcmp(&q->key, key, sizeof *key)) {
            return q;
        }
    }
    return NULL;
}

static void draw_lanes_with(struct top_pen *pen, const struct watch *picture,
                            const struct sha256 *key) {
    char prove[16], name[WATCH_ID_BYTES + 16];
    int first = pen->line;
    for (size_t i = 0; i < picture->lanes_count; i++) {
        const struct watch_lane *lane = &picture->lanes[i];
        for (size_t k = 0; k < lane->keys_count; k++) {
            if (!memcmp(&lane->keys[k], key, sizeof *key)) {
                snprintf(name, sizeof name, "%s.%u", lane->node, lane->gpu);
                pen_put(pen, 1, PLAIN, "%-18.18s %-9s key %-8s %s a proof", name,
                        top_lane_state(pen, lane), lane->key_loaded[k] ? "loaded" : "on disk",
                        lane->key_prove_ns[k] ? pen_span_text(prove, lane->key_prove_ns[k]) : "?");
                pen->line++;
            }
        }
    }
    if (pen->line == first) {
        pen_put(pen, 1, DIM, "none yet: it is fetched with the first job");
        pen->line++;
    }
}

static void draw_hands_of(struct top_pen *pen, const struct watch *picture, uint32_t priority,
                          const struct sha256 *key) {
    for (size_t i = 0; i < picture->lanes_count; i++) {
        const struct watch_lane *lane = &picture->lanes[i];
        for (size_t k = 0; k < lane->hand_count && !top_lane_is_silent(pen, lane); k++) {
            const struct watch_hand *h = &lane->hand[k];
            if (h->priority == priority && !memcmp(&h->key, key, sizeof *key)) {
                top_draw_hand(pen, lane, h);
                pen->line++;
            }
        }
    }
}

static bool is_open(const struct watch_job *job) {
    static const char *const words[] = {"queued", "placed", "running", "proved"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!strcmp(words[i], job->state)) {
            return true;
        }
    }
    return false;
}

static void draw_jobs_of(struct top_pen *pen, const struct watch *picture, uint32_t priority,
                         const struct sha256 *key) {
    char age[16];
    for (size_t i = 0; i < picture->jobs_count; i++) {
        const struct watch_job *job = &picture->jobs[i];
        if (job->has_key && job->priority == priority && !memcmp(&job->key, key, sizeof *key) &&
            is_open(job)) {
            uint64_t ms = pen->now_ms > job->first_ms ? pen->now_ms - job->first_ms : 0;
            pen_put(pen, 1, PLAIN, "%-22.22s %-9.9s %-8s %-7s %s", job->job, job->tenant,
                    job->state, pen_span_text(age, ms * 1000000), job->label);
            pen->line++;
        }
    }
}

void top_draw_queue(struct top_pen *pen, const struct watch *picture, uint32_t priority,
                    const struct sha256 *key) {
    const struct watch_queue *q = find_queue(&picture->fleet, priority, key);
    char text[13], oldest[16], work[16];
    pen_put(pen, 0, TITLE, "%s priority, key %s", pen_priority_text(priority),
            pen_key_text(text, key));
    pen_put(pen, 40, PLAIN, "%s", q ? q->label : "");
    pen->line++;
    if (q) {
        pen_put(pen, 1, PLAIN, "%u partitions wait, the oldest for %s; they take %s of one device",
                q->partitions, pen_span_text(oldest, q->oldest_ns),
                q->work_ns ? pen_span_text(work, q->work_ns) : "an unknown time");
    } else {
        pen_put(pen, 1, PLAIN, "nothing waits any more");
    }
    pen->line += 2;
    pen_put(pen, 1, TITLE, "devices that have the key");
    pen->line++;
    draw_lanes_with(pen, picture, key);
    pen->line++;
    pen_put(pen, 1, TITLE, "in hand");
    pen->line++;
    draw_hands_of(pen, picture, priority, key);
    pen->line++;
    pen_put(pen, 1, TITLE, "open jobs, of those heard of since top began");
    pen->line++;
    draw_jobs_of(pen, picture, priority, key);
}

/* --- One job --- */

static void draw_steps(struct top_pen *pen, const struct watch_job *job) {
    int left = 44, cells = pen->width - left - 1;
    char took[16], rate[48], bytes[16];
    uint64_t total_ns = job->total_ns ? job->total_ns : 1;
    /* Where they do not all fit, those that took less than a thousandth are only counted. */
    bool short_screen = (int)job->steps_count > pen->height - pen->line;
    unsigned left_out = 0;
    for (size_t i = 0; i < job->steps_count; i++) {
        const struct watch_step *step = &job->steps[i];
        if (short_screen && step->ns < total_ns / 1000) {
            left_out++;
            continue;
        }
        snprintf(took, sizeof took, "%.1f ms", (double)step->ns / 1e6);
        rate[0] = 0;
        if (step->bytes && step->ns) {
            snprintf(rate, sizeof rate, "%s %.2f GB/s", pen_bytes_text(bytes, step->bytes),
                     (double)step->bytes / (double)step->ns);
        }
        bool ok = !strcmp(step->outcome, "ok");
        pen_put(pen, 1, ok ? PLAIN : BAD, "%-10.10s %11s  %-19.19s", step->name, took,
                ok ? rate : step->outcome);
        uint64_t start = step->start_ns < total_ns ? step->start_ns : total_ns;
        uint64_t end = step->ns < total_ns - start ? start + step->ns : total_ns;
        int from = (int)((double)start / (double)total_ns * cells),
            to = (int)((double)end / (double)total_ns * cells);
        for (int k = from; k < cells && (k < to || k == from); k++) {
            pen_put(pen, left + k, ok ? GOOD : BAD, "=");
        }
        pen->line++;
    }
    if (left_out) {
        pen_put(pen, 1, DIM, "and %u shorter steps", left_out);
        pen->line++;
    }
}

static void draw_in_hand(struct top_pen *pen, const struct watch_lane *lane, const char *tenant,
                         const char *job) {
    char text[16];
    for (size_t i = 0; i < lane->hand_count; i++) {
        const struct watch_hand *h = &lane->hand[i];
        if (!strcmp(h->job, job) && !strcmp(h->tenant, tenant)) {
            pen_put(pen, 1, GOOD, "partition %u in hand of %s.%u: %s %s %u%%, %s so far",
                    h->partition, lane->node, lane->gpu, h->stage, h->step, h->permille / 10,
                    pen_span_text(text, h->age_ns));
            pen->line++;
        }
    }
}

static void draw_story(struct top_pen *pen, const struct watch_job *job) {
    pen_put(pen, 1, TITLE, "last partition on %s.%u", job->node, job->gpu);
    pen->line++;
    pen_put(pen, 1, PLAIN, "took %.1f ms, %.1f ms of them of the device",
            (double)job->total_ns / 1e6, (double)job->device_ns / 1e6);
    if (job->energy_mj) {
        pen_put(pen, 50, PLAIN, "%.1f J", (double)job->energy_mj / 1e3);
    }
    pen->line++;
    draw_steps(pen, job);
}

void top_draw_job(struct top_pen *pen, const struct watch *picture, const char *tenant,
                  const char *job_id) {
    const struct watch_job *job = watch_find_job(picture, tenant, job_id);
    char key[13];
    pen_put(pen, 0, TITLE, "job %s of tenant %s", job_id, tenant);
    pen->line += 2;
    for (size_t i = 0; i < picture->lanes_count; i++) {
        draw_in_hand(pen, &picture->lanes[i], tenant, job_id);
    }
    if (!job) {
        pen_put(pen, 1, PLAIN, "no event of it was heard in the last quarter of an hour");
        return;
    }
    pen_put(pen, 1, job->failed ? BAD : PLAIN, "%s %s %s", job->state, job->error, job->reason);
    pen->line++;
    pen_put(pen, 1, PLAIN, "key %s  priority %u  partitions %u  %s",
            job->has_key ? pen_key_text(key, &job->key) : "?", job->priority, job->partitions,
            job->label);
    pen->line += 2;
    if (job->steps_count) {
        draw_story(pen, job);
    }
}

void top_draw_help(struct top_pen *pen) {
    static const char *const lines[] = {
        "Tab       next section        Enter  look into the selected device, queue, job",
        "up, down  select              Esc    back",
        "s         sort the section    /      show only what contains a text",
        "q         leave               ?      this page",
        "",
        "The bars show the last minute of each device. What is not # is time in",
        "which it did not compute, by cause:",
        "  ^ upload   data is still on its way into the device",
        "  f fetch    data is on its way from the server",
        "  d decode   ... is being decoded",
        "  p memory   ... waits for memory",
        "  k key      the job's key is being fetched, opened or loaded",
        "  r record   the job's record is being read or moved",
        "  n finish   the last job is being finished",
        "  l lock     a job is ready and not picked up yet",
        "  x fenced   the lane takes no work",
        "  .          there was nothing to do",
    };
    pen_put(pen, 0, TITLE, "bellows top");
    pen->line += 2;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        pen_put(pen, 1, PLAIN, "%s", lines[i]);
        pen->line++;
    }
}
