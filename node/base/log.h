/* Logs: logfmt on standard error, event first: `job.refused job=… class=busy need_bytes=…`.
 *
 * Only daemon, coordinator and cli log; libraries return faults. `error`: someone must act. `warn`: something was
 * lost, going on. `info`: one line per job and per change of state. JSON lines on request. Values with spaces or
 * quotes are quoted by the caller through log_quote(). Context, level and time end the line.
 *
 * A line is at most LOG_LINE_BYTES; a longer one is cut and ends in "…". Control characters become \xNN, so no value
 * can start a line of its own. Of one event at `warn` or `error` at most LOG_REPEATS_MAX lines appear in
 * LOG_REPEATS_NS; the next one after that says suppressed_count=N.
 *
 * In JSON every value is a string, except numbers under a name that carries a unit (_ns _bytes _count …).
 *
 * Threads  any; a line is written with one write().
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum { LOG_LINE_BYTES = 4096, LOG_REPEATS_MAX = 20 };
#define LOG_REPEATS_NS 10000000000u

void log_setup(enum log_level least,
               bool json); /* before threads start; without it: info, logfmt */
bool log_level_from_name(enum log_level *out, const char *name); /* debug info warn error */
/* Appended to every line of the process: "node=w1 gpu=0". Copied; before threads start. */
void log_context(const char *fields);
void log_line(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes `text` as one logfmt value, quoted when it must be, cut when it is too long. out_bytes ≥ 8. Returns out. */
const char *log_quote(char *out, size_t out_bytes, const char *text);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
