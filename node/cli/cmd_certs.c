/* bellows certs: a fleet's own authority, in four steps; see deploy/SECURITY.md. */
#include "node/cli/backend_args.h"
#include "node/cli/certs.h"
#include "node/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "node/base/file.h"
#include "node/base/mem.h"

enum { PATH_BYTES = 4096, SOON_DAYS = 30 };

static struct certs_wish wish_of(const struct args *args, uint64_t days) {
    return (struct certs_wish){.dir = args_positional(args, "DIR"),
                               .days = args_number(args, "days", days),
                               .replace = args_switch(args, "replace")};
}

static void print_made(const struct args *args, const struct certs_wish *wish, const char *name) {
    if (args_switch(args, "json")) {
        AUTO(text_free) struct text t = {0};
        text_add(&t, "{\"name\": ");
        text_add_json_string(&t, name);
        text_add(&t, ", \"dir\": ");
        text_add_json_string(&t, wish->dir);
        text_addf(&t, ", \"days\": %llu}", (unsigned long long)wish->days);
        if (text_done(&t) == OK) {
            puts(t.ptr);
        }
        return;
    }
    printf("%s/%s.pem and %s.key, good for %llu days\n", wish->dir, name, name,
           (unsigned long long)wish->days);
}

static enum err run_ca(struct args *args) {
    struct certs_wish wish = wish_of(args, CERTS_CA_DAYS);
    TRY(certs_make_ca(&wish));
    print_made(args, &wish, "ca");
    return OK;
}

static enum err run_server(struct args *args) {
    struct certs_wish wish = wish_of(args, CERTS_DAYS);
    const char *hosts[CERTS_HOSTS_MAX] = {0};
    size_t count = args_rest_count(args);
    for (size_t i = 0; i < count && i < CERTS_HOSTS_MAX; i++) {
        hosts[i] = args_rest(args, i);
    }
    TRY(certs_make_server(&wish, hosts, count));
    print_made(args, &wish, "server");
    return OK;
}

static enum err run_issue(struct args *args) {
    struct certs_wish wish = wish_of(args, CERTS_DAYS);
    struct role_holder holder;
    TRY(role_holder_parse(&holder, args_positional(args, "NAME")));
    TRY(certs_make_client(&wish, &holder));
    print_made(args, &wish, args_positional(args, "NAME"));
    if (!args_switch(args, "json")) {
        printf("next: bellows certs accounts %s\n", wish.dir);
    }
    return OK;
}

static enum err run_accounts(struct args *args) {
    AUTO(mem_free_ptr) struct role_holder *holders = NULL;
    AUTO(text_free) struct text t = {0};
    struct role_fleet fleet = {.lanes_count =
                                   (unsigned)args_number(args, "lanes", ROLE_LANES_DEFAULT),
                               .tenants_push_keys = args_switch(args, "tenants-push-keys")};
    const char *dir = args_positional(args, "DIR");
    char path[PATH_BYTES];
    TRY(subject_space_init(&fleet.space, args_text(args, "prefix")));
    TRY(certs_holders(&holders, &fleet.holders_count, dir));
    REQUIRE(fleet.holders_count > 0, E_USAGE,
            "%s holds no certificate of a role; `bellows certs issue` makes them", dir);
    fleet.holders = holders;
    role_accounts(&t, &fleet);
    TRY(text_done(&t));
    int len = snprintf(path, sizeof path, "%s/accounts.conf", dir);
    REQUIRE(len > 0 && len < PATH_BYTES, E_USAGE, "the folder's name is too long");
    TRY(file_write_all(path, text_bytes(&t)));
    if (args_switch(args, "json")) {
        printf("{\"holders\": %zu}\n", fleet.holders_count);
    } else {
        printf("%s for %zu holders; the server takes it up on SIGHUP\n", path, fleet.holders_count);
    }
    return OK;
}

static enum err run_list(struct args *args) {
    AUTO(mem_free_ptr) struct role_holder *holders = NULL;
    size_t count = 0, soon = 0, said = 0;
    bool json = args_switch(args, "json");
    const char *dir = args_positional(args, "DIR");
    TRY(certs_holders(&holders, &count, dir));
    fputs(json ? "[" : "", stdout);
    for (size_t i = 0; i < count + 2; i++) {
        char name[ROLE_TEXT_BYTES], path[PATH_BYTES];
        int days = 0;
        snprintf(name, sizeof name, "%s", i == 0 ? "ca" : "server");
        if (i >= 2) {
            role_holder_text(name, &holders[i - 2]);
        }
        snprintf(path, sizeof path, "%.3900s/%s.pem", dir, name);
        if (!file_exists(path)) {
            continue;
        }
        TRY(certs_days_left(&days, path));
        soon += days < SOON_DAYS;
        if (json) {
            printf("%s{\"name\": \"%s\", \"days_left\": %d}", said++ ? ", " : "", name, days);
        } else {
            printf("%-40s %5d days left%s\n", name, days, days < SOON_DAYS ? ", renew it" : "");
        }
    }
    puts(json ? "]" : "");
    if (json) {
        args_reported(args); /* the numbers say it */
    }
    REQUIRE(soon == 0, E_RANGE, "%zu of the certificates end within %d days", soon, SOON_DAYS);
    return OK;
}

#define POSITIONAL_DIR                                                                             \
    { .name = "DIR", .text = "folder of the authority" }
#define OPTION_DAYS(text_)                                                                         \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "days", .value = "N", .least = 1, .most = 36500,            \
        .text = text_                                                                              \
    }
#define OPTION_REPLACE                                                                             \
    {                                                                                              \
        .kind = OPTION_SWITCH, .name = "replace",                                                  \
        .text = "Makes a new one, with a new key, where one is: how certificates are renewed."     \
    }

static const struct positional dir_only[] = {POSITIONAL_DIR, {0}};
static const struct positional server_positionals[] = {
    POSITIONAL_DIR,
    {.name = "HOST", .text = "names and addresses by which the server is called", .repeats = true},
    {0},
};
static const struct positional issue_positionals[] = {
    POSITIONAL_DIR,
    {.name = "NAME",
     .text = "submitter.TENANT.USER, worker.NODE, coordinator.NAME, operator.NAME, dashboard.NAME"},
    {0},
};
static const struct option ca_options[] = {OPTION_DAYS("How long it is good; not given: 3650."),
                                           OPTION_REPLACE, OPTION_JSON, OPTIONS_END};
static const struct option issue_options[] = {OPTION_DAYS("How long it is good; not given: 365."),
                                              OPTION_REPLACE, OPTION_JSON, OPTIONS_END};
static const struct option accounts_options[] = {
    {.kind = OPTION_NUMBER,
     .name = "lanes",
     .value = "N",
     .least = 1,
     .most = ROLE_LANES_MAX,
     .text = "Lanes that one worker may have; not given: 16."},
    {.kind = OPTION_SWITCH,
     .name = "tenants-push-keys",
     .text = "Submitters may store proving keys; else an operator does."},
    {.kind = OPTION_TEXT,
     .name = "prefix",
     .value = "WORD",
     .fallback = "bellows",
     .env = "BELLOWS_PREFIX",
     .text = "First word of the fleet's subjects."},
    OPTION_JSON,
    OPTIONS_END,
};
static const struct option list_options[] = {OPTION_JSON, OPTIONS_END};

const struct command cmd_certs_ca = {
    .name = "certs ca",
    .sentence = "make a fleet's own certificate authority",
    .positionals = dir_only,
    .options = ca_options,
    .notes = "ca.key signs everything: keep the folder on one machine, backed up, away from the "
             "fleet.\n",
    .run = run_ca,
};
const struct command cmd_certs_server = {
    .name = "certs server",
    .sentence = "make the NATS server's certificate",
    .positionals = server_positionals,
    .options = issue_options,
    .notes = "  bellows certs server ca nats-1.example.org nats-2.example.org 10.0.0.7\n",
    .run = run_server,
};
const struct command cmd_certs_issue = {
    .name = "certs issue",
    .sentence = "make the certificate of a submitter, worker, coordinator, operator or dashboard",
    .positionals = issue_positionals,
    .options = issue_options,
    .notes = "Its holder uses it with --tls-ca, --tls-cert and --tls-key.\n"
             "  bellows certs issue ca worker.gpu-7\n",
    .run = run_issue,
};
const struct command cmd_certs_accounts = {
    .name = "certs accounts",
    .sentence = "write what each certificate's holder may do, for the NATS server",
    .positionals = dir_only,
    .options = accounts_options,
    .notes = "Writes DIR/accounts.conf, which the configurations in deploy/nats include.\n",
    .run = run_accounts,
};
const struct command cmd_certs_list = {
    .name = "certs list",
    .sentence = "how long each certificate is still good",
    .positionals = dir_only,
    .options = list_options,
    .notes = "Exit code 2 when one ends within 30 days.\n",
    .run = run_list,
};
