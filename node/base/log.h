/* Logs: logfmt on standard error, event first: `job.refused job=… class=busy need_bytes=…`.
 *
 * Only daemon, coordinator and cli log; libraries return faults. `error`: someone must act. `warn`: something was
 * lost, going on. `info`: one line per job and per change of state. JSON lines on request. Values with spaces or
 * quotes are quoted by the caller through log_quote().
 *
 * Threads  any; a line is written with one write().
 */
#pragma once
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_setup(enum log_level least, int json); /* before threads start */
void log_context(
    const char *fields); /* appended to every line of the process: "node=w1 gpu=0"; copied */
void log_line(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *log_quote(char *out, size_t out_bytes, const char *text); /* returns out */

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
