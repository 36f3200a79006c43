/* Blocks, their descriptors, and one server over them. */
#include "node/daemon/pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/file.h"
#include "node/base/log.h"
#include "node/base/mem.h"

struct pages {
    struct metric_source sources[PAGES_BLOCKS_MAX];
    struct metric_block *blocks[PAGES_BLOCKS_MAX]; /* owned: mapped */
    int fds[PAGES_BLOCKS_MAX];
    unsigned count;
    enum metric_scope scope;
    struct pages_options options; /* texts are not kept */
    struct expose *expose;        /* owned; NULL: nowhere */
};

static void write_metrics(void *ctx, struct text *out) {
    struct pages *p = ctx;
    metrics_text(out, p->scope, p->sources, p->count);
}

static bool lane_is_ready(const struct metric_block *b) {
    return metric_get(b, METRIC_LANE_UP, 0) == 1 &&
           metric_get(b, METRIC_LANE_STATE, METRIC_LANE_STATE_READY) == 1;
}

static bool is_ready(void *ctx, char reason[EXPOSE_REASON_BYTES]) {
    struct pages *p = ctx;
    if (p->options.ready) {
        return p->options.ready(p->options.ready_ctx, reason);
    }
    for (unsigned i = 0; i < p->count; i++) {
        if (lane_is_ready(p->blocks[i])) {
            return true;
        }
    }
    snprintf(reason, EXPOSE_REASON_BYTES, "none of %u lanes is ready", p->count);
    return false;
}

static enum err make_blocks(struct pages *p, const struct pages_options *o) {
    char name[METRIC_LABELS_BYTES / 2];
    for (; p->count < o->blocks_count; p->count++) {
        unsigned idx = p->count;
        TRY(metric_block_share(&p->blocks[idx], &p->fds[idx]));
        fcntl(p->fds[idx], F_SETFD, FD_CLOEXEC);
        p->sources[idx].block = p->blocks[idx];
        if (o->node) {
            snprintf(p->sources[idx].labels, sizeof p->sources[idx].labels,
                     "node=\"%s\",gpu=\"%u\"", metric_escape(name, sizeof name, o->node), idx);
        }
    }
    return OK;
}

static enum err serve(struct pages *p, const struct pages_options *o) {
    bool asked = o->address[0] != 0;
    struct expose_options expose = {.address = asked ? o->address : o->fallback,
                                    .metrics = write_metrics,
                                    .ready = is_ready,
                                    .ctx = p};
    if (!strcmp(o->address, "off")) {
        return OK;
    }
    enum err code = expose_open(&p->expose, &expose);
    if (code == E_IO && !asked) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_info("pages.elsewhere", "detail=%s", log_quote(quoted, sizeof quoted, err_detail()));
        return OK;
    }
    TRY(code);
    log_info("pages.served", "url=%s/metrics", expose_url(p->expose));
    return OK;
}

enum err pages_open(struct pages **out, const struct pages_options *options) {
    AUTO(pages_close) struct pages *p = NULL;
    ASSERT(options->blocks_count <= PAGES_BLOCKS_MAX);
    TRY(mem_new(&p, 1, sizeof *p));
    p->options = *options;
    p->scope = options->node ? METRIC_SCOPE_LANE : METRIC_SCOPE_COORDINATOR;
    TRY(make_blocks(p, options));
    TRY(serve(p, options));
    if (options->url_file) {
        const char *url = pages_url(p);
        TRY(file_write_all(options->url_file, bytes_of(url, strlen(url))));
    }
    *out = TAKE(p);
    return OK;
}

void pages_stop(struct pages *p) {
    if (p) {
        expose_close(&p->expose);
    }
}

void pages_close(struct pages **p) {
    if (!*p) {
        return;
    }
    pages_stop(*p);
    for (unsigned i = 0; i < (*p)->count; i++) {
        metric_block_unmap(&(*p)->blocks[i]);
        close((*p)->fds[i]);
    }
    mem_free_ptr(p);
}

struct metric_block *pages_block(struct pages *p, unsigned idx) {
    ASSERT(!p || idx < p->count);
    return p ? p->blocks[idx] : NULL;
}

int pages_lend(struct pages *p, unsigned idx) {
    ASSERT(idx < p->count);
    fcntl(p->fds[idx], F_SETFD, 0);
    return p->fds[idx];
}

void pages_keep(struct pages *p, unsigned idx) {
    ASSERT(idx < p->count);
    fcntl(p->fds[idx], F_SETFD, FD_CLOEXEC);
}

const char *pages_url(const struct pages *p) {
    return p->expose ? expose_url(p->expose) : "";
}
