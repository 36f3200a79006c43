/* A budget of bytes: reserve before use, or be refused at the door.
 *
 * Admission reserves all that a job's plan asks for; nothing after it allocates. So a full node says "busy" and never runs
 * out of memory in the middle of a proof. A budget counts; it holds no memory itself.
 *
 * Threads  any; lock-free.
 * Errors   E_LIMIT with what was wanted, what is free and the limit. Never waits.
 */
#pragma once
#include "node/base/err.h"

struct budget;

/* `name` is lent for the budget's life: "host memory". */
FALLIBLE budget_new(struct budget **out, const char *name, uint64_t limit_bytes);
void budget_free(struct budget **b); /* for AUTO; asserts that all is released */

FALLIBLE budget_reserve(struct budget *b, uint64_t bytes, const char *what); /* "job 17" */
void budget_release(struct budget *b, uint64_t bytes);

uint64_t budget_limit_bytes(const struct budget *b);
uint64_t budget_used_bytes(const struct budget *b);
uint64_t budget_peak_bytes(const struct budget *b);

/* What this process may plan with: the control group's limit or the machine's memory, less an eighth for the libraries,
 * stacks and page tables that no plan counts. */
uint64_t budget_host_bytes(void);
