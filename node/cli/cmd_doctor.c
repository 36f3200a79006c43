/* bellows doctor: runs the checks, prints what they found with cause and cure, and ends with the code of the worst. */
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/doctor.h"

#include <stdio.h>
#include <string.h>

static enum err print_json(const struct findings *f, size_t bad) {
    AUTO(text_free) struct text t = {0};
    text_addf(&t, "{\"ok\": %s, \"findings\": [", bad ? "false" : "true");
    for (size_t i = 0; i < f->count; i++) {
        const struct finding *one = &f->list[i];
        text_addf(&t, "%s{\"part\": \"%s\", \"check\": \"%s\", \"state\": \"%s\", \"found\": ",
                  i ? ", " : "", one->part, one->check, finding_state_name(one->state));
        text_add_json_string(&t, one->found);
        text_add(&t, ", \"cure\": ");
        text_add_json_string(&t, one->cure);
        text_add(&t, "}");
    }
    text_add(&t, "]}");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static void print(const struct findings *f) {
    const char *part = "";
    for (size_t i = 0; i < f->count; i++) {
        const struct finding *one = &f->list[i];
        if (strcmp(part, one->part) != 0) {
            part = one->part;
            printf("%s%s\n", i ? "\n" : "", part);
        }
        printf("  %-8s %-12s %s\n", finding_state_name(one->state), one->check, one->found);
        if (one->cure[0]) {
            printf("  %-8s %-12s → %s\n", "", "", one->cure);
        }
    }
}

/* Device troubles before those of the network, as in the list of exit codes; the host's count as input. */
static enum err verdict(const struct findings *f) {
    static const struct {
        const char *part;
        enum err code;
    } parts[] = {{"device", E_DEVICE}, {"network", E_NET}, {"host", E_USAGE}};
    for (size_t k = 0; k < COUNT_OF(parts); k++) {
        size_t bad = 0;
        for (size_t i = 0; i < f->count; i++) {
            bad += f->list[i].state == FINDING_BAD && !strcmp(f->list[i].part, parts[k].part);
        }
        REQUIRE(bad == 0, parts[k].code, "%zu of the checks of the %s failed", bad, parts[k].part);
    }
    return OK;
}

static enum err run(struct args *args) {
    AUTO(config_free) struct config config = {0};
    static struct findings findings; /* too large for a stack frame to be proud of */
    const char *part = args_text(args, "part");
    bool all = !strcmp(part, "all");
    TRY(args_config(&config, args));
    if (all || !strcmp(part, "device")) {
        doctor_cards(&findings, "");
        doctor_device(&findings);
    }
    if (all || !strcmp(part, "host")) {
        doctor_host(&findings, &config, "");
    }
    if (all || !strcmp(part, "network")) {
        doctor_network(&findings, &config);
    }
    enum err code = verdict(&findings);
    if (args_switch(args, "json")) {
        struct fault fault = fault_of(code);
        TRY(print_json(&findings, code != OK));
        args_reported(args); /* the findings say it */
        return fault_raise(&fault);
    }
    print(&findings);
    return code;
}

static const struct positional no_positionals[] = {{0}};
static const struct option options[] = {
    {.kind = OPTION_CHOICE,
     .name = "part",
     .value = "all|device|host|network",
     .fallback = "all",
     .text = "Looks at this part only."},
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_doctor = {
    .name = "doctor",
    .sentence =
        "what of this machine and its way to the fleet works, and what to do about the rest",
    .positionals = no_positionals,
    .options = options,
    .config = CONFIG_NODE | CONFIG_CLIENT,
    .notes = "Changes nothing. Exit codes: 0 nothing is bad (warnings may be there), 2 the host, 3 "
             "a device, 4 the network.\n",
    .run = run,
};
