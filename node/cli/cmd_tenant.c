/* bellows tenant: a tenant's place in the fleet, which is the bucket that its submitters put bodies into, and how much it may hold. */
#include "node/base/quantity.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"

#include <inttypes.h>
#include <stdio.h>

static enum err run(struct args *args) {
    AUTO(client_close) struct client c = {0};
    const char *tenant = args_positional(args, "TENANT"), *quota = args_text(args, "quota");
    struct fleet_options fleet = {0};
    struct stream_info info;
    uint64_t bytes = 0;
    TRY(id_check(tenant, "tenant"));
    if (quota) {
        enum err code = quantity_bytes(&bytes, quota);
        REQUIRE(code == OK && bytes > 0 && bytes <= INT64_MAX, E_USAGE,
                "--quota %s: a size like 100GiB", quota);
        fleet.tenant_bytes_max = (int64_t)bytes;
    }
    TRY(client_open(&c, args));
    struct subject bucket = bucket_in(&c.space, tenant);
    char stream[SUBJECT_BYTES_MAX + 4];
    snprintf(stream, sizeof stream, "OBJ_%s", bucket.text);
    if (quota) {
        TRY(fleet_ensure_tenant(c.transport, &c.space, tenant, &fleet));
    }
    enum err code = stream_info(&info, c.transport, stream);
    REQUIRE(code != E_NET, E_RANGE,
            "tenant %s has no bucket that this role can see: %.200s; --quota makes one", tenant,
            fault_of(code).detail);
    TRY(code);
    if (args_switch(args, "json")) {
        printf("{\"tenant\": \"%s\", \"bucket\": \"%s\", \"bytes\": %" PRIu64
               ", \"messages\": %" PRIu64,
               tenant, bucket.text, info.bytes, info.messages_count);
        printf(quota ? ", \"quota_bytes\": %" PRIu64 "}\n" : "}\n", bytes);
    } else {
        printf("tenant %s: bucket %s holds %.1f MiB%s%s\n", tenant, bucket.text,
               (double)info.bytes / 1048576, quota ? ", at most " : "", quota ? quota : "");
    }
    return OK;
}

static const struct positional positionals[] = {{.name = "TENANT", .text = "its name"}, {0}};
static const struct option options[] = {
    {.kind = OPTION_TEXT,
     .name = "quota",
     .value = "SIZE",
     .text = "Makes the bucket, or changes its limit: what the bodies of waiting jobs may take."},
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_tenant = {
    .name = "tenant",
    .sentence = "give a tenant its bucket and its limit, or look at it",
    .positionals = positionals,
    .options = options,
    .config = CONFIG_CLIENT,
    .notes = "  bellows tenant acme --quota 100GiB\n",
    .run = run,
};
