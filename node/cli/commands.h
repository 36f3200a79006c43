/* All commands, each in a file of its own or with its sisters; main.c lists them in the order that --help shows. Constant. */
#pragma once
#include "node/cli/args.h"

extern const struct command cmd_prove, cmd_verify, cmd_key_inspect, cmd_key_check,
    cmd_key_export_vkey, cmd_key_import, cmd_key_synth, cmd_plan, cmd_bench_load, cmd_bench_prove,
    cmd_bench_msm, cmd_bench_ntt, cmd_bench_codec, cmd_bench_field, cmd_bench_h, cmd_bench_feed;
extern const struct command cmd_dev, cmd_node, cmd_coordinator, cmd_submit, cmd_status, cmd_wait,
    cmd_fetch, cmd_list, cmd_cancel, cmd_key_push, cmd_config, cmd_top;
extern const struct command cmd_nodes, cmd_drain, cmd_resume, cmd_tenant, cmd_doctor, cmd_jobs;
extern const struct command cmd_certs_ca, cmd_certs_server, cmd_certs_issue, cmd_certs_accounts,
    cmd_certs_list;
extern const struct command cmd_calldata, cmd_wtns_check, cmd_wtns_export;
