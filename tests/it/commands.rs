//! Tests that every command and every flag has an effect: exit codes, text on stdout and stderr,
//! JSON.

use std::collections::BTreeMap;
use std::process::Stdio;

use jiff::Timestamp;
use serde_json::Value;

use super::lab::{Lab, Run, Server, wait_for};

/// A plan with two endpoints, each with its own server, that is short enough to be run.
const PLAN: &str = "sweepline: 1
name: commands
endpoints:
  a: { engine: mock, mock: { ttft: 1ms, itl: 1ms } }
  b: { engine: mock, mock: { ttft: 1ms, itl: 1ms } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  closed: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1, 2] } }
  open: { matrix: { endpoint: [a], model: [m], scenario: [s], qps: [40, 50.5] }, repeats: 2 }
";

/// A plan with one run that takes only a moment.
const ONE: &str = "sweepline: 1
name: one
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  s: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [2] } }
";

const BROKEN: &str = "sweepline: 1\nname: broken\nendpoints: {}\nmodels: {}\nsweeps: {}\ntypo: 1\n";

const CIRCLE: &str = "sweepline: 1
name: circle
endpoints: { demo: { engine: mock } }
models: { m: { id: tiny } }
sweeps:
  a: { after: b, matrix: { endpoint: [demo], model: [m], batch_size: [1] } }
  b: { after: c, matrix: { endpoint: [demo], model: [m], batch_size: [2] } }
  c: { after: a, matrix: { endpoint: [demo], model: [m], batch_size: [3] } }
";

/// The test that shows the effect of each command and flag. The flags of `mock` are looked up in the
/// tests of the mock.
const SHOWN_BY: &[(&str, &str)] = &[
    ("run", "only_and_skip_choose_runs"),
    ("run --workers", "two_and_seven_workers_send_the_requests_of_one"),
    ("run --markdown", "gates_stop_and_skip_if_leaves_out_by_what_was_found"),
    ("search", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --url", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --model", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --engine", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --api", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --api-key-env", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --slo", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --of", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --from", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --to", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --within", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --measure", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --confirm", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --name", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --output", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --force", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --plan-only", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --results", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --progress", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("search --quiet", "one_command_writes_the_plan_of_a_search_and_goes_on_with_it"),
    ("run --part", "a_lost_node_a_new_controller_and_cancelled_jobs_cost_no_run"),
    ("submit", "a_plan_on_two_nodes_gives_the_runs_of_a_local_one"),
    ("submit --on", "a_script_and_manifests_say_what_the_plan_asks_for"),
    ("submit --dry-run", "a_script_and_manifests_say_what_the_plan_asks_for"),
    ("submit --format", "elements_wait_for_what_other_parts_make"),
    ("submit --results", "kubernetes_gets_what_waits_once_its_turn_has_come"),
    ("submit --set", "every_command_with_a_plan_takes_values"),
    ("submit --allow-outside", "every_command_with_a_plan_takes_values"),
    ("status", "a_plan_on_two_nodes_gives_the_runs_of_a_local_one"),
    ("status --advance", "kubernetes_gets_what_waits_once_its_turn_has_come"),
    ("status --format", "kubernetes_gets_what_waits_once_its_turn_has_come"),
    ("status --results", "kubernetes_gets_what_waits_once_its_turn_has_come"),
    ("status --set", "every_command_with_a_plan_takes_values"),
    ("status --allow-outside", "every_command_with_a_plan_takes_values"),
    ("cancel", "a_lost_node_a_new_controller_and_cancelled_jobs_cost_no_run"),
    ("cancel --format", "kubernetes_gets_what_waits_once_its_turn_has_come"),
    ("cancel --results", "kubernetes_gets_what_waits_once_its_turn_has_come"),
    ("run --only", "only_and_skip_choose_runs"),
    ("run --skip", "only_and_skip_choose_runs"),
    ("run --force", "force_runs_again_and_dry_run_only_says_so"),
    ("run --redo", "invalid_runs_are_cached_until_they_are_to_be_redone"),
    ("run --jobs", "jobs_overlap_except_on_one_resource"),
    ("run --fail-fast", "a_dead_endpoint_fails_alone_unless_told_to_fail_fast"),
    ("run --gate", "a_gate_holds_runs_against_the_objective"),
    ("run --dry-run", "force_runs_again_and_dry_run_only_says_so"),
    ("run --results", "results_go_where_they_are_told_to"),
    ("run --set", "a_plan_of_fragments_and_variables_runs"),
    ("run --allow-outside", "every_command_with_a_plan_takes_values"),
    ("run --frozen", "a_plan_that_differs_from_its_lock_is_refused"),
    ("run --verbose", "talk_is_loud_or_quiet"),
    ("run --quiet", "talk_is_loud_or_quiet"),
    ("run --color", "colour_comes_when_told"),
    ("preview", "only_and_skip_choose_runs"),
    ("preview --only", "only_and_skip_choose_runs"),
    ("preview --skip", "only_and_skip_choose_runs"),
    ("preview --force", "force_runs_again_and_dry_run_only_says_so"),
    ("preview --redo", "invalid_runs_are_cached_until_they_are_to_be_redone"),
    ("preview --probe", "probes_tell_what_servers_say"),
    ("preview --exit-code", "preview_tells_work_by_its_exit_code"),
    ("preview --all", "runs_with_one_reason_stand_together_unless_all_are_wanted"),
    ("preview --jobs", "figures_come_with_their_rules"),
    ("preview --format", "only_and_skip_choose_runs"),
    ("preview --results", "results_go_where_they_are_told_to"),
    ("preview --set", "every_command_with_a_plan_takes_values"),
    ("preview --allow-outside", "every_command_with_a_plan_takes_values"),
    ("preview --frozen", "a_plan_that_differs_from_its_lock_is_refused"),
    ("new", "a_first_plan_runs_as_it_is"),
    ("new --url", "a_server_says_what_it_is"),
    ("new --model", "servers_with_many_models_or_none_need_a_name"),
    ("new --engine", "flags_say_more_than_the_server"),
    ("new --api", "flags_say_more_than_the_server"),
    ("new --api-key-env", "a_key_is_named_and_never_written"),
    ("new --batch-size", "a_first_plan_runs_as_it_is"),
    ("new --qps", "flags_say_more_than_the_server"),
    ("new --name", "flags_say_more_than_the_server"),
    ("new --output", "files_are_not_overwritten_unasked"),
    ("new --force", "files_are_not_overwritten_unasked"),
    ("import", "every_fixture_becomes_a_plan_that_says_where_it_came_from"),
    ("import --output", "files_are_not_overwritten_unasked"),
    ("import --force", "files_are_not_overwritten_unasked"),
    ("import --format", "what_is_wrong_is_named_with_its_place_and_remedy"),
    ("import --strict", "strict_writes_no_plan_where_something_is_not_in_it"),
    ("import --quick", "quick_has_short_phases_beside_the_full_ones"),
    ("import --model", "parameter_files_go_with_a_command_or_with_flags"),
    ("import --url", "parameter_files_go_with_a_command_or_with_flags"),
    ("import --entry", "entries_of_a_master_file_are_chosen"),
    ("check", "check_tells_the_mistakes_of_all_plans"),
    ("check --format", "check_tells_the_mistakes_of_all_plans"),
    ("check --strict", "strict_fails_on_warnings_and_only_there"),
    ("check --results", "what_calibrate_showed_of_this_host_counts"),
    ("check --color", "colour_comes_when_told"),
    ("check --set", "every_command_with_a_plan_takes_values"),
    ("check --allow-outside", "every_command_with_a_plan_takes_values"),
    ("explain", "codes_are_explained"),
    ("graph", "graphs_are_drawn"),
    ("graph --format", "graphs_are_drawn"),
    ("graph --results", "readers_answer_in_text_and_json"),
    ("graph --set", "every_command_with_a_plan_takes_values"),
    ("graph --allow-outside", "every_command_with_a_plan_takes_values"),
    ("freeze", "a_lock_says_where_every_value_comes_from"),
    ("freeze --output", "a_frozen_plan_gives_the_same_runs_and_freezes_to_itself"),
    ("freeze --force", "a_plan_is_replaced_by_nothing"),
    ("freeze --set", "every_command_with_a_plan_takes_values"),
    ("freeze --allow-outside", "every_command_with_a_plan_takes_values"),
    ("why", "readers_answer_in_text_and_json"),
    ("why --plan", "readers_answer_in_text_and_json"),
    ("why --format", "readers_answer_in_text_and_json"),
    ("why --results", "results_go_where_they_are_told_to"),
    ("why --set", "every_command_with_a_plan_takes_values"),
    ("why --allow-outside", "every_command_with_a_plan_takes_values"),
    ("diff", "edits_are_told_with_the_runs_that_they_cost"),
    ("diff --format", "a_pull_request_gets_markdown_and_programs_json"),
    ("diff --set", "a_plan_is_compared_with_what_is_set_in_it"),
    ("diff --allow-outside", "every_command_with_a_plan_takes_values"),
    ("show", "readers_answer_in_text_and_json"),
    ("show --plan", "readers_answer_in_text_and_json"),
    ("show --definitions", "readers_answer_in_text_and_json"),
    ("show --format", "readers_answer_in_text_and_json"),
    ("show --results", "results_go_where_they_are_told_to"),
    ("show --color", "colour_comes_when_told"),
    ("show --set", "every_command_with_a_plan_takes_values"),
    ("show --allow-outside", "every_command_with_a_plan_takes_values"),
    ("list", "readers_answer_in_text_and_json"),
    ("list --attempts", "a_dead_endpoint_fails_alone_unless_told_to_fail_fast"),
    ("list --format", "readers_answer_in_text_and_json"),
    ("push", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("push --format", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("push --plan", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("push --results", "of_32_writers_of_one_run_one_wins_and_31_are_kept_as_attempts"),
    ("push --set", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("push --allow-outside", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("pull", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("pull --format", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("pull --plan", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("pull --results", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("pull --set", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("pull --allow-outside", "what_a_colleague_pushed_is_a_hit_and_the_first_result_stays"),
    ("list --results", "results_go_where_they_are_told_to"),
    ("export", "exports_have_a_row_for_each_run_or_request"),
    ("export --format", "exports_have_a_row_for_each_run_or_request"),
    ("export --rows", "exports_have_a_row_for_each_run_or_request"),
    ("export --columns", "columns_are_chosen_by_name_and_pattern"),
    ("export --only", "chosen_runs_are_exported"),
    ("export --skip", "chosen_runs_are_exported"),
    ("export --wide", "a_pivot_has_loads_across_and_metrics_down"),
    ("export --output", "exports_have_a_row_for_each_run_or_request"),
    ("export --force", "a_plan_is_replaced_by_nothing"),
    ("export --results", "results_go_where_they_are_told_to"),
    ("export --set", "every_command_with_a_plan_takes_values"),
    ("export --allow-outside", "every_command_with_a_plan_takes_values"),
    ("probe", "probes_tell_what_servers_say"),
    ("probe --format", "probes_tell_what_servers_say"),
    ("probe --set", "every_command_with_a_plan_takes_values"),
    ("probe --allow-outside", "every_command_with_a_plan_takes_values"),
    ("calibrate", "the_loads_of_a_plan_are_measured_and_kept"),
    ("run --progress", "programs_follow_a_sweep_in_json"),
    ("run --metrics-addr", "prometheus_reads_a_running_sweep_and_every_query_of_the_dashboard_finds_data"),
    ("run --events", "events_are_whole_lines_though_the_sweep_is_killed"),
    ("run --progress-every", "a_log_has_a_line_now_and_then"),
    ("calibrate --batch-size", "flags_say_a_load_too"),
    ("calibrate --qps", "flags_say_a_load_too"),
    ("calibrate --prompt-tokens", "flags_say_a_load_too"),
    ("calibrate --output-tokens", "flags_say_a_load_too"),
    ("calibrate --ttft", "flags_say_a_load_too"),
    ("calibrate --itl", "flags_say_a_load_too"),
    ("calibrate --for", "answers_are_no_longer_than_a_window_and_time_is_bounded"),
    ("calibrate --within", "answers_are_no_longer_than_a_window_and_time_is_bounded"),
    ("calibrate --no-search", "the_loads_of_a_plan_are_measured_and_kept"),
    ("calibrate --format", "the_loads_of_a_plan_are_measured_and_kept"),
    ("calibrate --results", "flags_say_a_load_too"),
    ("calibrate --set", "every_command_with_a_plan_takes_values"),
    ("calibrate --allow-outside", "every_command_with_a_plan_takes_values"),
    ("calibrate --verbose", "answers_are_no_longer_than_a_window_and_time_is_bounded"),
    ("calibrate --quiet", "flags_say_a_load_too"),
    ("verify", "readers_answer_in_text_and_json"),
    ("verify --forget", "a_deleted_run_is_reported_until_it_is_measured_again_or_forgotten"),
    ("verify --format", "readers_answer_in_text_and_json"),
    ("verify --results", "results_go_where_they_are_told_to"),
    ("schema", "readers_answer_in_text_and_json"),
    ("completions", "bash_completes_commands_flags_values_and_files"),
    ("man", "the_manual_has_a_page_for_the_program_and_for_each_command"),
    ("man --output", "the_manual_has_a_page_for_the_program_and_for_each_command"),
    ("dataset", "a_file_is_looked_into"),
    ("dataset inspect", "a_file_is_looked_into"),
    ("dataset inspect --map", "flags_say_how_a_file_is_read"),
    ("dataset inspect --time-unit", "flags_say_how_a_file_is_read"),
    ("dataset inspect --skip-bad", "flags_say_how_a_file_is_read"),
    ("dataset inspect --max-entry", "flags_say_how_a_file_is_read"),
    ("dataset inspect --as", "flags_say_how_a_file_is_read"),
    ("dataset inspect --prompt-tokens", "flags_say_how_a_file_is_read"),
    ("dataset inspect --prompt-chars", "flags_say_how_a_file_is_read"),
    ("dataset inspect --output-tokens", "flags_say_how_a_file_is_read"),
    ("dataset inspect --turns", "flags_say_how_a_file_is_read"),
    ("dataset inspect --language", "flags_say_how_a_file_is_read"),
    ("dataset inspect --format", "a_file_is_looked_into"),
    ("dataset convert", "every_format_becomes_one_that_is_read_alike"),
    ("dataset convert --map", "flags_say_how_a_file_is_read"),
    ("dataset convert --time-unit", "flags_say_how_a_file_is_read"),
    ("dataset convert --skip-bad", "flags_say_how_a_file_is_read"),
    ("dataset convert --max-entry", "flags_say_how_a_file_is_read"),
    ("dataset convert --as", "flags_say_how_a_file_is_read"),
    ("dataset convert --prompt-tokens", "flags_say_how_a_file_is_read"),
    ("dataset convert --prompt-chars", "flags_say_how_a_file_is_read"),
    ("dataset convert --output-tokens", "flags_say_how_a_file_is_read"),
    ("dataset convert --turns", "flags_say_how_a_file_is_read"),
    ("dataset convert --language", "flags_say_how_a_file_is_read"),
    ("dataset convert --output", "every_format_becomes_one_that_is_read_alike"),
    ("dataset convert --force", "data_sets_and_profiles_are_kept"),
    ("dataset sample", "a_sample_is_a_matter_of_its_seed"),
    ("dataset sample --map", "flags_say_how_a_file_is_read"),
    ("dataset sample --time-unit", "flags_say_how_a_file_is_read"),
    ("dataset sample --skip-bad", "flags_say_how_a_file_is_read"),
    ("dataset sample --max-entry", "flags_say_how_a_file_is_read"),
    ("dataset sample --as", "flags_say_how_a_file_is_read"),
    ("dataset sample --prompt-tokens", "flags_say_how_a_file_is_read"),
    ("dataset sample --prompt-chars", "flags_say_how_a_file_is_read"),
    ("dataset sample --output-tokens", "flags_say_how_a_file_is_read"),
    ("dataset sample --turns", "flags_say_how_a_file_is_read"),
    ("dataset sample --language", "flags_say_how_a_file_is_read"),
    ("dataset sample --n", "a_sample_is_a_matter_of_its_seed"),
    ("dataset sample --seed", "a_sample_is_a_matter_of_its_seed"),
    ("dataset sample --output", "a_sample_is_a_matter_of_its_seed"),
    ("dataset sample --force", "data_sets_and_profiles_are_kept"),
    ("dataset profile", "a_profile_is_made_of_ranges"),
    ("dataset profile --map", "flags_say_how_a_file_is_read"),
    ("dataset profile --time-unit", "flags_say_how_a_file_is_read"),
    ("dataset profile --skip-bad", "flags_say_how_a_file_is_read"),
    ("dataset profile --max-entry", "flags_say_how_a_file_is_read"),
    ("dataset profile --as", "flags_say_how_a_file_is_read"),
    ("dataset profile --prompt-tokens", "flags_say_how_a_file_is_read"),
    ("dataset profile --prompt-chars", "flags_say_how_a_file_is_read"),
    ("dataset profile --output-tokens", "flags_say_how_a_file_is_read"),
    ("dataset profile --turns", "flags_say_how_a_file_is_read"),
    ("dataset profile --language", "flags_say_how_a_file_is_read"),
    ("dataset profile --k", "a_profile_is_made_of_ranges"),
    ("dataset profile --output", "a_profile_is_made_of_ranges"),
    ("dataset profile --force", "data_sets_and_profiles_are_kept"),
    // Three commands that read results have the same flags.
    ("compare", "a_slower_arm_is_found_by_enough_repeats_and_too_few_say_so"),
    ("compare --by", "a_slower_arm_is_found_by_enough_repeats_and_too_few_say_so"),
    ("compare --baseline", "a_slower_arm_is_found_by_enough_repeats_and_too_few_say_so"),
    ("compare --metrics", "a_slower_arm_is_found_by_enough_repeats_and_too_few_say_so"),
    ("compare --gate", "a_slower_arm_is_found_by_enough_repeats_and_too_few_say_so"),
    ("compare --format", "a_slower_arm_is_found_by_enough_repeats_and_too_few_say_so"),
    ("compare --against", "results_are_held_against_a_file_of_earlier_ones"),
    ("compare --write-baseline", "results_are_held_against_a_file_of_earlier_ones"),
    ("compare --force", "a_plan_is_replaced_by_nothing"),
    ("compare --include-invalid", "results_are_held_against_a_file_of_earlier_ones"),
    ("compare --margin", "a_margin_is_shown_or_exceeded_or_takes_more_repeats"),
    ("compare --explore", "exploring_is_not_for_gates"),
    ("compare --see", "results_are_held_against_a_file_of_earlier_ones"),
    ("compare --results", "an_earlier_folder_is_matched_by_names_where_ids_have_changed"),
    ("compare --class", "a_class_is_answered_for_alone"),
    ("compare --only", "chosen_runs_are_compared"),
    ("compare --skip", "chosen_runs_are_compared"),
    ("compare --set", "every_command_with_a_plan_takes_values"),
    ("compare --allow-outside", "every_command_with_a_plan_takes_values"),
    ("report", "a_report_has_the_numbers_of_every_answer"),
    ("report --output", "a_report_has_the_numbers_of_every_answer"),
    ("report --figures", "a_report_has_the_numbers_of_every_answer"),
    ("report --force", "a_report_has_the_numbers_of_every_answer"),
    ("report --watch", "a_sweep_is_watched_while_it_runs_and_when_it_is_over"),
    ("report --port", "only_who_has_the_address_may_look_and_nobody_may_change_anything"),
    ("report --set", "a_report_names_what_it_does_not_have"),
    ("report --allow-outside", "a_report_names_what_it_does_not_have"),
    ("report --only", "a_report_names_what_it_does_not_have"),
    ("report --skip", "a_report_names_what_it_does_not_have"),
    ("report --results", "a_report_names_what_it_does_not_have"),
    ("curves", "curves_say_where_servers_bend"),
    ("curves --class", "a_class_is_answered_for_alone"),
    ("curves --plot", "curves_are_drawn_with_what_was_measured_and_no_more"),
    ("curves --format", "curves_say_where_servers_bend"),
    ("curves --set", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("curves --allow-outside", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("curves --only", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("curves --skip", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("curves --results", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("curves --include-invalid", "invalid_runs_are_left_out_and_that_is_said"),
    ("capacity", "known_capacity_is_found_within_the_ladder_and_priced"),
    ("capacity --format", "known_capacity_is_found_within_the_ladder_and_priced"),
    ("capacity --set", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("capacity --allow-outside", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("capacity --only", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("capacity --skip", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("capacity --results", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("capacity --include-invalid", "invalid_runs_are_left_out_and_that_is_said"),
    ("decide", "a_decision_is_recorded_with_the_numbers_of_the_results"),
    ("decide --accept", "a_decision_is_recorded_with_the_numbers_of_the_results"),
    ("decide --because", "a_decision_is_recorded_with_the_numbers_of_the_results"),
    ("decide --by", "another_acceptance_keeps_the_earlier_one"),
    ("decide --output", "damaged_markers_are_named_and_nothing_is_overwritten"),
    ("decide --check", "a_check_tells_numbers_that_are_no_longer_those_of_the_results"),
    ("decide --format", "a_decision_is_recorded_with_the_numbers_of_the_results"),
    ("decide --force", "damaged_markers_are_named_and_nothing_is_overwritten"),
    ("decide --set", "prose_is_kept_and_numbers_are_made_anew"),
    ("decide --allow-outside", "a_decision_takes_chosen_runs_from_any_folder"),
    ("decide --only", "a_decision_takes_chosen_runs_from_any_folder"),
    ("decide --skip", "a_decision_takes_chosen_runs_from_any_folder"),
    ("decide --results", "a_decision_takes_chosen_runs_from_any_folder"),
    ("run --explain", "rules_stand_once_below_an_answer"),
    ("curves --explain", "rules_stand_once_below_an_answer"),
    ("capacity --explain", "rules_stand_once_below_an_answer"),
    ("compare --explain", "rules_stand_once_below_an_answer"),
    ("diff --explain", "rules_stand_once_below_an_answer"),
    ("diff --results", "closed_loops_cost_what_earlier_results_say"),
    ("diagnose", "curves_say_where_servers_bend"),
    ("diagnose --format", "curves_say_where_servers_bend"),
    ("diagnose --set", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("diagnose --allow-outside", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("diagnose --only", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("diagnose --skip", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("diagnose --results", "answers_take_chosen_runs_of_a_changed_plan_from_any_folder"),
    ("diagnose --include-invalid", "invalid_runs_are_left_out_and_that_is_said"),
    ("capacity --target-qps", "known_capacity_is_found_within_the_ladder_and_priced"),
    ("capacity --headroom", "known_capacity_is_found_within_the_ladder_and_priced"),
    ("mock", "a_finished_plan_sends_nothing"),
    ("mock --bind", "the_mock_listens_where_it_is_told_to"),
    ("mock --reuse-port", "mocks_that_share_a_port_share_its_connections"),
    ("mock --port", "the_mock_listens_where_it_is_told_to"),
    // Each embedded server is started with this flag; without it every run of the embedded mock would leave
    // a process behind.
    ("mock --tell-times", "llama_cpp_tells_prefill_and_decode_in_the_last_chunk"),
    ("mock --trace-ids", "llama_cpp_tells_prefill_and_decode_in_the_last_chunk"),
    ("mock --parent-pipe", "embedded_servers_are_gone_with_their_runs"),
];

/// Returns the commands and subcommands of the program, from its own help.
fn commands(lab: &Lab) -> Vec<String> {
    let names = listed(&lab.ok(&["--help"]).stdout);
    assert!(names.len() >= 10, "{names:?}");
    let parts = |name: String| {
        let parts = listed(&lab.ok(&[&name, "--help"]).stdout);
        let parts: Vec<String> = parts.iter().map(|part| format!("{name} {part}")).collect();
        std::iter::once(name).chain(parts)
    };
    names.into_iter().flat_map(parts).collect()
}

/// Returns the commands that a help text lists, except `help`.
fn listed(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
    // Continuation lines are indented further.
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).map(str::to_owned);
    names.filter(|name| !name.is_empty() && name != "help").collect()
}

/// Returns the help of a command.
fn help(lab: &Lab, command: &str) -> String {
    lab.ok(&command.split(' ').chain(["--help"]).collect::<Vec<_>>()).stdout
}

/// Returns the long flags of a command, from its own help.
fn flags(lab: &Lab, command: &str) -> Vec<String> {
    let help = help(lab, command);
    let flag = |line: &str| {
        let line = line.trim_start();
        let line = if line.starts_with('-') && !line.starts_with("--") { line.split_once(", ")?.1 } else { line };
        let name = line.strip_prefix("--")?;
        Some(name.split([' ', '.', '[']).next()?.to_owned())
    };
    let names = help.lines().filter_map(flag);
    names.filter(|name| !["help", "version"].contains(&name.as_str())).collect()
}

/// Returns the text of every test in a folder of the repository.
fn sources(folder: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let rust = files.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    rust.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[timed_test]
fn every_command_and_flag_has_a_test() {
    let lab = Lab::new();
    let table: BTreeMap<&str, &str> = SHOWN_BY.iter().copied().collect();
    let here = sources("tests/it");
    let of_mock = sources("tests/it/mock");
    let mut offered = Vec::new();
    for command in commands(&lab) {
        offered.extend(flags(&lab, &command).into_iter().map(|flag| format!("{command} --{flag}")));
        offered.push(command);
    }
    for offer in &offered {
        match (table.get(offer.as_str()), offer.strip_prefix("mock ")) {
            (Some(test), _) => assert!(here.contains(&format!("fn {test}()")), "{offer}: test {test} not found"),
            (None, Some(flag)) => assert!(
                of_mock.contains(&format!("\"{flag}\"")) || of_mock.contains(&format!("\"{flag}=")),
                "{flag} of the mock has no test"
            ),
            (None, None) => panic!("`{offer}` is in --help, but not in any test"),
        }
    }
    for entry in table.keys() {
        assert!(offered.iter().any(|offer| offer == entry), "`{entry}` is tested, but not in --help");
    }
}

#[timed_test]
fn help_reads_well() {
    let lab = Lab::new();
    insta::assert_snapshot!("help", lab.ok(&["--help"]).stdout);
    for command in commands(&lab) {
        insta::assert_snapshot!(format!("help_{}", command.replace(' ', "_")), help(&lab, &command));
    }
}

/// Returns the runs that a preview with these flags shows, as sweep and cell, without orphans.
fn previewed(lab: &Lab, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> =
        ["preview", "plan.yaml", "--format", "json"].into_iter().chain(args.iter().copied()).collect();
    let runs = lab.ok(&args).json()["runs"].as_array().unwrap().clone();
    runs.into_iter().filter(|run| run["state"] != "orphan").collect()
}

#[timed_test]
fn only_and_skip_choose_runs() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let all = previewed(&lab, &[]);
    assert_eq!(all.len(), 8);
    let id = all[0]["id"].as_str().unwrap();
    let by_id = format!("id == '{id}'");
    let cases: [(&[&str], usize); 10] = [
        (&["--only", "endpoint == 'a'"], 6),
        (&["--only", "endpoint == 'a' and batch_size >= 2"], 1),
        (&["--only", "batch_size in [1, 2]"], 4),
        // A run that does not have the axis matches neither the expression nor its negation.
        (&["--only", "qps > 1"], 4),
        (&["--only", "qps == 50.5"], 2),
        (&["--only", "sweep == 'open' and repeat == 0"], 2),
        (&["--only", &by_id], 1),
        (&["--skip", "qps > 1"], 4),
        (&["--skip", "endpoint == 'a'"], 2),
        (&["--only", "sweep == 'closed'", "--skip", "endpoint == 'b'"], 2),
    ];
    for (args, count) in cases {
        assert_eq!(previewed(&lab, args).len(), count, "{args:?}");
    }
    for (text, words) in [
        (
            "speed == 1",
            "`speed` is not an axis of this plan; the axes are batch_size, endpoint, id, model, qps, repeat, scenario, sweep",
        ),
        ("qps ==", "--only \"qps ==\": syntax error"),
        ("qps | nofilter", "unknown filter"),
        ("qps = 40", "; write == to compare"),
        ("scenario == s", "put quotes around it, scenario == 's'"),
        ("qps == 999", "no run of this plan is selected; qps is "),
        // A run that does not have the axis matches neither the expression nor its negation.
        ("not qps > 1", "no run of this plan is selected; qps is "),
    ] {
        for command in ["preview", "run"] {
            let ended = lab.run(&[command, "plan.yaml", "--only", text]);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{text}");
            assert!(ended.stderr.contains(words), "{text}: {}", ended.stderr);
        }
    }
    assert!(!lab.results().exists(), "a bad expression and a preview write nothing");
    lab.ok(&["run", "plan.yaml", "--only", "sweep == 'closed'", "--skip", "endpoint == 'b' or batch_size == 2"]);
    let run = lab.only_run();
    assert_eq!(
        (&run.json["spec"]["endpoint"]["name"], &run.json["spec"]["load"]["closed"]["batch_size"]),
        (&"a".into(), &1.into())
    );
    // The plan was not edited, and missing results of the open loop do not count as an edit of the
    // closed loop.
    let open = lab.ok(&["preview", "plan.yaml", "--only", "sweep == 'open'"]).stdout;
    assert!(open.contains("never committed") && !open.contains("added"), "{open}");
}

#[timed_test]
fn force_runs_again_and_dry_run_only_says_so() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    let dry = lab.ok(&["run", "plan.yaml", "--dry-run"]);
    assert!(dry.stdout.contains("never committed") && dry.stderr.is_empty(), "{dry:?}");
    assert!(!lab.results().exists());
    lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.only_run().json["attempt"], 1);
    let dry = lab.ok(&["run", "plan.yaml", "--dry-run", "--force"]);
    assert_eq!(dry.stdout, lab.ok(&["preview", "plan.yaml", "--force"]).stdout);
    assert!(dry.stdout.contains("redo") && dry.stdout.contains("forced"), "{}", dry.stdout);
    assert_eq!(lab.only_run().json["attempt"], 1);
    lab.ok(&["run", "plan.yaml", "--force"]);
    assert_eq!(lab.only_run().json["attempt"], 2);
    assert_eq!(std::fs::read_dir(lab.results().join("superseded")).unwrap().count(), 1);
}

#[timed_test]
fn invalid_runs_are_cached_until_they_are_to_be_redone() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--fault", "empty@every:2"]);
    let url = server.url();
    // The stream is empty; the probe's own generation is not streamed and succeeds.
    let plan = ONE.replace("engine: mock, mock: { ttft: 1ms, itl: 1ms }", &format!("url: \"{url}\""));
    let plan = format!("{plan}environment: ignore\n");
    lab.write("plan.yaml", &plan);
    let first = lab.run(&["run", "plan.yaml"]);
    assert_eq!(first.code, Some(3), "{first:?}");
    assert!(first.stdout.contains("invalid: errors"), "{}", first.stdout);
    assert!(first.stderr.contains("why a run is not valid"), "{}", first.stderr);
    assert!(first.stderr.contains("run plan.yaml --redo invalid"), "the remedy is offered: {}", first.stderr);
    for shown in [&["preview", "plan.yaml"] as &[&str], &["run", "plan.yaml", "--dry-run"]] {
        let shown = lab.ok(&[shown, &["--redo", "invalid"]].concat());
        assert!(shown.stdout.contains("its verdict is invalid"), "{}", shown.stdout);
    }
    let requests = server.requests();
    let again = lab.run(&["run", "plan.yaml"]);
    assert_eq!((again.code, server.requests()), (Some(3), requests), "cached, and still invalid: {again:?}");
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    let redone = lab.run(&["run", "plan.yaml", "--redo", "invalid"]);
    assert_eq!(redone.code, Some(3));
    assert!(redone.stderr.contains("its verdict is invalid"), "{}", redone.stderr);
    assert_eq!(lab.only_run().json["attempt"], 2);
    // With a more lenient threshold, the run is no longer invalid.
    lab.write("plan.yaml", &plan.replace("validity: {", "validity: { errors: { suspect: 100%, invalid: 100% },"));
    let id = lab.runs().keys().next().unwrap().clone();
    let judged = lab.ok(&["show", &id, "--plan", "plan.yaml"]).stdout;
    assert!(!judged.contains("errors (invalid)"), "{judged}");
    let mild = lab.ok(&["run", "plan.yaml", "--redo", "invalid"]);
    assert!(mild.stderr.contains("nothing to do"), "{}\n{judged}", mild.stderr);
}

fn time(run: &Run, which: &str) -> Timestamp {
    run.json[which].as_str().unwrap().parse().unwrap()
}

/// Returns the committed runs ordered by start, each as endpoint, start and end.
fn intervals(lab: &Lab) -> Vec<(String, Timestamp, Timestamp)> {
    let runs = lab.runs();
    let name = |run: &Run| run.json["spec"]["endpoint"]["name"].as_str().unwrap().to_owned();
    let mut all: Vec<_> = runs.values().map(|run| (name(run), time(run, "started"), time(run, "ended"))).collect();
    all.sort_by_key(|(_, started, _)| *started);
    all
}

const PARALLEL: &str = "sweepline: 1
name: parallel
endpoints:
  a: { engine: mock, RESOURCE mock: { ttft: 1ms, itl: 1ms } }
  b: { engine: mock, RESOURCE mock: { ttft: 1ms, itl: 1ms } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: MEASURE, drain: 2s }
between: { cooldown: COOLDOWN }
sweeps:
  s: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1, 2] } }
";

#[timed_test]
fn jobs_overlap_except_on_one_resource() {
    let lab = Lab::new();
    let plan = PARALLEL.replace("RESOURCE ", "").replace("MEASURE", "2s").replace("COOLDOWN", "0s");
    lab.write("apart.yaml", &plan);
    lab.run(&["run", "apart.yaml", "--jobs", "2"]);
    let runs = intervals(&lab);
    assert_eq!(runs.len(), 4);
    let overlap =
        |(_, _, ended): &(String, Timestamp, Timestamp), later: &(String, Timestamp, Timestamp)| later.1 < *ended;
    let pairs: Vec<_> =
        runs.iter().enumerate().flat_map(|(at, one)| runs[at + 1..].iter().map(move |two| (one, two))).collect();
    assert!(
        pairs.iter().any(|(one, two)| one.0 != two.0 && overlap(one, two)),
        "the runs of two endpoints overlap: {runs:?}"
    );
    assert!(
        !pairs.iter().any(|(one, two)| one.0 == two.0 && overlap(one, two)),
        "the runs of one endpoint never overlap: {runs:?}"
    );

    let lab = Lab::new();
    let shared = PARALLEL.replace("RESOURCE", "resource: node,").replace("MEASURE", "200ms").replace("COOLDOWN", "0s");
    lab.write("shared.yaml", &shared);
    lab.run(&["run", "shared.yaml", "--jobs", "2"]);
    let runs = intervals(&lab);
    assert_eq!(runs.len(), 4);
    assert!(runs.windows(2).all(|pair| !overlap(&pair[0], &pair[1])), "{runs:?}");
}

#[timed_test]
fn a_resource_rests_between_runs() {
    let lab = Lab::new();
    let plan = PARALLEL.replace("RESOURCE", "resource: node,").replace("MEASURE", "150ms").replace("COOLDOWN", "700ms");
    // The first endpoint has only one run, and the pause after this run also delays the other
    // endpoint.
    lab.write(
        "plan.yaml",
        &plan
            .replace(
                "sweeps:\n",
                "sweeps:\n  z: { matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [3] } }\n",
            )
            .replace("endpoint: [a, b]", "endpoint: [b]"),
    );
    lab.run(&["run", "plan.yaml", "--jobs", "2"]);
    let runs = intervals(&lab);
    let names: Vec<&str> = runs.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "b"]);
    for pair in runs.windows(2) {
        let gap = pair[1].1.duration_since(pair[0].2);
        assert!(gap.as_millis() >= 700, "{gap:?} between {pair:?}");
    }
}

#[timed_test]
fn a_sweep_waits_for_those_it_comes_after() {
    let lab = Lab::new();
    let plan = PARALLEL.replace("RESOURCE ", "").replace("MEASURE", "200ms").replace("COOLDOWN", "0s");
    let sweeps = "sweeps:
  late: { after: [middle, early], matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1] } }
  middle: { after: early, matrix: { endpoint: [b], model: [m], scenario: [s], batch_size: [2] } }
  early: { matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [3, 4] } }
";
    lab.write("plan.yaml", &format!("{}{sweeps}", plan.split("sweeps:").next().unwrap()));
    lab.run(&["run", "plan.yaml", "--jobs", "4"]);
    let runs = lab.runs();
    let of = |batches: &[u64]| -> Vec<&Run> {
        let batch = |run: &Run| run.json["spec"]["load"]["closed"]["batch_size"].as_u64().unwrap();
        let found: Vec<&Run> = runs.values().filter(|run| batches.contains(&batch(run))).collect();
        assert!(!found.is_empty());
        found
    };
    let (late, middle, early) = (of(&[1]), of(&[2]), of(&[3, 4]));
    let after = |first: &[&Run], second: &[&Run]| {
        let (end, start) =
            (first.iter().map(|run| time(run, "ended")).max(), second.iter().map(|run| time(run, "started")).min());
        assert!(start >= end, "{start:?} is before {end:?}");
    };
    after(&early, &middle);
    after(&middle, &late);
}

/// Returns an address on which nothing listens; this process has just released the port.
fn dead_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

#[timed_test]
fn a_dead_endpoint_fails_alone_unless_told_to_fail_fast() {
    let plan = ONE.replace("endpoints: {", &format!("endpoints: {{ dead: {{ url: \"{}\", ready: {{ within: 0s }} }},", dead_address())).replace(
        "sweeps:\n  s: {",
        "sweeps:\n  first: { matrix: { endpoint: [dead], model: [m], scenario: [s], batch_size: [2] } }\n  s: { after: first,",
    );
    let lab = Lab::new();
    lab.write("plan.yaml", &plan);
    let fast = lab.run(&["run", "plan.yaml", "--fail-fast"]);
    assert_eq!(fast.code, Some(6), "{fast:?}");
    assert!(fast.stderr.contains("1 skipped, 1 left to do"), "{}", fast.stderr);
    assert!(lab.runs().is_empty() && fast.stdout.is_empty(), "{fast:?}");
    let quiet = lab.run(&["run", "plan.yaml", "-q"]);
    assert_eq!(quiet.code, Some(6));
    assert!(
        quiet.stderr.contains("dead: ") && quiet.stderr.contains("does not respond"),
        "errors are printed despite the flag: {}",
        quiet.stderr
    );
    assert_eq!(lab.only_run().json["spec"]["endpoint"]["name"], "demo");

    // A server that dies during a run leaves an attempt, which `list --attempts` shows.
    let lab = Lab::new();
    let server = Server::start(&lab, &["--fault", "exit@20"]);
    lab.write(
        "plan.yaml",
        &ONE.replace(
            "engine: mock, mock: { ttft: 1ms, itl: 1ms }",
            &format!("url: \"{}\", ready: {{ within: 0s }}, retries: {{ runs: 0 }}", server.url()),
        ),
    );
    let failed = lab.run(&["run", "plan.yaml"]);
    assert_eq!(failed.code, Some(6), "{failed:?}");
    assert!(failed.stderr.contains("failed: ") && lab.runs().is_empty(), "{}", failed.stderr);
    let list = lab.ok(&["list", "--attempts"]).stdout;
    assert!(list.starts_with("tried ") && list.contains("\nattempt "), "{list}");
    let attempts = lab.ok(&["list", "--attempts", "--format", "json"]).json();
    lab.follows("list", &attempts);
    assert_eq!(attempts["attempts"].as_array().unwrap().len(), 1, "{attempts}");
    let id = attempts["attempts"][0]["attempt"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let why = lab.ok(&["why", &id, "--plan", "plan.yaml"]).stdout;
    assert!(why.contains("new: failed: ") && why.contains("attempt 1 "), "{why}");
}

#[timed_test]
fn results_go_where_they_are_told_to() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    let ended = lab.ok(&["run", "plan.yaml", "--results", "else/where"]);
    assert!(ended.stderr.contains("--results else/where"), "the suggested command works: {}", ended.stderr);
    assert!(!lab.results().exists() && lab.path().join("else/where/runs").is_dir());
    let id = std::fs::read_dir(lab.path().join("else/where/runs")).unwrap().next().unwrap().unwrap().file_name();
    let id = id.to_str().unwrap();
    for args in [
        &["show", id] as &[&str],
        &["why", id, "--plan", "plan.yaml"],
        &["list"],
        &["preview", "plan.yaml"],
        &["verify"],
        &["export"],
    ] {
        let there = lab.ok(&[args, &["--results", "else/where"]].concat());
        let here = lab.run(args);
        assert_ne!(here.stdout, there.stdout, "{args:?}");
    }
    assert_eq!(lab.run(&["show", id]).code, Some(2), "unknown run");
    // A file is not a folder, and a folder in use is locked.
    lab.write("file", "x");
    let file = lab.run(&["run", "plan.yaml", "--results", "file"]);
    assert_eq!(file.code, Some(5), "{file:?}");
    assert!(file.stderr.contains("file") && !file.stderr.contains("panicked"), "{}", file.stderr);
}

#[timed_test]
fn talk_is_loud_or_quiet() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    let quiet = lab.ok(&["run", "plan.yaml", "-q"]);
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("verdict"), "the table is printed despite the flag: {}", quiet.stdout);
    let normal = lab.ok(&["run", "plan.yaml", "--force"]);
    let loud = lab.ok(&["run", "plan.yaml", "--force", "--verbose"]);
    let id = lab.runs().keys().next().unwrap().clone();
    let probed = |text: &str| text.contains("demo: 127.0.0.1:") && text.contains("responds");
    assert!(probed(&loud.stderr) && loud.stderr.contains(&format!("batch 2 ({id}) ·")), "{}", loud.stderr);
    assert!(!probed(&normal.stderr) && !normal.stderr.contains(&format!("batch 2 ({id}) ·")), "{}", normal.stderr);
    assert_eq!(lab.run(&["run", "plan.yaml", "-q", "-v"]).code, Some(2), "not both flags");
}

#[timed_test]
fn colour_comes_when_told() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.write("broken.yaml", BROKEN);
    lab.ok(&["run", "plan.yaml", "-q"]);
    let id = lab.runs().keys().next().unwrap().clone();
    for args in [&["run", "plan.yaml"] as &[&str], &["show", &id], &["check", "broken.yaml"], &["run", "broken.yaml"]] {
        let said = |colour: &[&str]| {
            let ended = lab.run(&[args, colour].concat());
            ended.stdout + &ended.stderr
        };
        assert!(said(&["--color", "always"]).contains("\u{1b}["), "{args:?}");
        assert!(!said(&["--color", "never"]).contains('\u{1b}'), "{args:?}");
        assert!(!said(&["--color", "auto"]).contains('\u{1b}'), "{args:?}: not a terminal");
        assert_eq!(said(&[]), said(&["--color", "auto"]), "{args:?}");
    }
}

#[timed_test]
fn preview_tells_work_by_its_exit_code() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    assert_eq!(lab.run(&["preview", "plan.yaml", "--exit-code"]).code, Some(10));
    assert_eq!(lab.run(&["preview", "plan.yaml"]).code, Some(0));
    lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.run(&["preview", "plan.yaml", "--exit-code"]).code, Some(0));
    assert_eq!(lab.run(&["preview", "none.yaml", "--exit-code"]).code, Some(2));
}

#[timed_test]
fn check_tells_the_mistakes_of_all_plans() {
    let lab = Lab::new();
    lab.write("good.yaml", ONE);
    lab.write("broken.yaml", BROKEN);
    lab.write("circle.yaml", CIRCLE);
    assert!(lab.ok(&["check", "good.yaml"]).stdout.starts_with("good.yaml: ok\n"));
    let all = lab.run(&["check", "broken.yaml", "good.yaml", "circle.yaml", "missing.yaml"]);
    assert!(all.code == Some(2) && all.stdout.starts_with("good.yaml: ok\n"), "{}", all.stdout);
    for words in ["broken.yaml:6:1", "a → b → c → a", "missing.yaml"] {
        assert!(all.stderr.contains(words), "{words}: {}", all.stderr);
    }
    let json = lab.run(&["check", "good.yaml", "circle.yaml", "broken.yaml", "--format", "json"]);
    lab.follows("check", &json.json());
    assert_eq!((json.code, json.stderr.as_str()), (Some(2), ""));
    let mistaken = |json: Value| -> Vec<Value> {
        let all = json["diagnostics"].as_array().unwrap().clone();
        all.iter().filter(|one| one["severity"] == "error").map(|one| one["file"].clone()).collect()
    };
    let files = mistaken(json.json());
    assert!(
        files.contains(&"circle.yaml".into())
            && files.contains(&"broken.yaml".into())
            && !files.contains(&"good.yaml".into())
    );
    let good = lab.ok(&["check", "good.yaml", "--format", "json"]).json();
    assert!(mistaken(good).is_empty());
    for command in ["run", "preview", "graph", "probe"] {
        let ended = lab.run(&[command, "circle.yaml"]);
        assert_eq!(ended.code, Some(2), "{command}");
        assert!(ended.stderr.contains("a → b → c → a") && ended.stdout.is_empty(), "{command}: {ended:?}");
    }
    assert_eq!(lab.run(&["check"]).code, Some(2), "no plan");
    assert_eq!(lab.run(&["nonsense"]).code, Some(2));
}

#[timed_test]
fn graphs_are_drawn() {
    let lab = Lab::new();
    lab.write("plan.yaml", &PLAN.replace("open: {", "open: { after: closed,"));
    let json = lab.ok(&["graph", "plan.yaml", "--format", "json"]).json();
    lab.follows("graph", &json);
    let nodes = json["nodes"].as_array().unwrap();
    let count = |kind: &str| nodes.iter().filter(|node| node["kind"] == kind).count();
    assert_eq!((count("serve"), count("probe"), count("run"), count("gate")), (2, 2, 8, 1), "{json}");
    let gate = nodes.iter().position(|node| node["kind"] == "gate").unwrap();
    let edges: Vec<(usize, usize)> = serde_json::from_value(json["edges"].clone()).unwrap();
    let (into, out) = (edges.iter().filter(|e| e.1 == gate).count(), edges.iter().filter(|e| e.0 == gate).count());
    assert_eq!((into, out), (4, 4), "the gate is between the sweeps");

    let dot = lab.ok(&["graph", "plan.yaml"]).stdout;
    assert_eq!(dot, lab.ok(&["graph", "plan.yaml", "--format", "dot"]).stdout);
    let lines: Vec<&str> = dot.lines().collect();
    assert_eq!((lines[0], *lines.last().unwrap()), ("digraph sweepline {", "}"));
    let is_node = |line: &str| line.starts_with("  n") && line.contains(" [label=\"") && line.ends_with("];");
    let is_edge = |line: &str| {
        let ends = line.trim().trim_end_matches(';').split_once(" -> ");
        ends.is_some_and(|(from, to)| {
            [from, to]
                .iter()
                .all(|end| end.strip_prefix('n').is_some_and(|n| n.parse::<usize>().is_ok_and(|n| n < nodes.len())))
        })
    };
    assert_eq!(lines.iter().filter(|line| is_node(line)).count(), nodes.len());
    assert_eq!(lines.iter().filter(|line| is_edge(line)).count(), edges.len());
    assert_eq!(lines.len(), nodes.len() + edges.len() + 4, "no other lines: {dot}");
    assert!(dot.contains("[label=\"closed has ended\", shape=diamond]"), "{dot}");

    let mermaid = lab.ok(&["graph", "plan.yaml", "--format", "mermaid"]).stdout;
    assert!(mermaid.starts_with("flowchart LR\n") && mermaid.contains("{\"closed has ended\"}"), "{mermaid}");
    assert_eq!(mermaid.matches(" --> ").count(), edges.len());
}

/// The only run of the plan is done in its own results folder and open in another one.
fn what_lies_in_a_folder_is_drawn(lab: &Lab) {
    for (results, state) in [("results", "done"), ("elsewhere", "pending")] {
        let drawn = lab.ok(&["graph", "plan.yaml", "--format", "text", "--results", results]).stdout;
        assert!(drawn.lines().any(|line| line.starts_with(state) && line.contains("repeat=0")), "{drawn}");
    }
}

#[timed_test]
fn readers_answer_in_text_and_json() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.ok(&["run", "plan.yaml"]);
    what_lies_in_a_folder_is_drawn(&lab);
    let (id, run) = lab.runs().pop_first().unwrap();
    let full = run.json["id"].as_str().unwrap();
    let start = &id[..6];

    let list = lab.ok(&["list"]).stdout;
    assert!(list.contains(&id) && list.contains("batch 2") && list.contains("whole"), "{list}");
    let list = lab.ok(&["list", "--format", "json"]).json();
    lab.follows("list", &list);
    assert_eq!((&list["runs"][0]["id"], &list["runs"][0]["state"]), (&full.into(), &"whole".into()));

    let show = lab.ok(&["show", start]).stdout;
    assert!(show.contains(full) && show.contains("verdict: ") && show.contains("TTFT ms"), "{show}");
    assert!(show.lines().all(|line| line.chars().count() <= 100), "{show}");
    let defined = lab.ok(&["show", start, "--definitions"]).stdout;
    assert!(defined.starts_with(show.trim_end()) && defined.len() > show.len() + 500, "{defined}");
    let json = lab.ok(&["show", &id.to_uppercase(), "--format", "json"]).json();
    lab.follows("show", &json);
    assert_eq!(json["run"]["id"], full);
    assert!(json["metrics"]["ttft_p50_ms"].as_f64().unwrap() > 0.0 && json["verdict"]["state"].is_string(), "{json}");
    let priced = ONE.replace("engine: mock,", "engine: mock, hardware: { price_per_hour: 3600 },");
    lab.write("priced.yaml", &priced);
    let cost = |args: &[&str]| lab.ok(&[&["show", start, "--format", "json"], args].concat()).json()["metrics"].clone();
    let cost_name = "cost_per_million_output_tokens";
    let (bare, priced) = (cost(&[]), cost(&["--plan", "priced.yaml"]));
    let of = |metrics: &Value| {
        metrics.as_object().unwrap().iter().find(|(name, _)| name.starts_with(cost_name)).unwrap().1.clone()
    };
    assert!(of(&bare).is_null() && of(&priced).as_f64().unwrap() > 0.0, "{bare} {priced}");

    let why = lab.ok(&["why", start, "--plan", "plan.yaml"]).stdout;
    assert!(why.contains("cached: committed ") && why.contains("  load.batch_size = 2"), "{why}");
    lab.follows("why", &lab.ok(&["why", "batch_size == 2", "--format", "json"]).json());
    let why = lab.ok(&["why", start, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &why);
    assert_eq!(
        (&why["id"], &why["state"], &why["identity"]["load.batch_size"]),
        (&full.into(), &"cached".into(), &"2".into())
    );

    assert!(lab.ok(&["verify"]).stdout.contains("1 run in results: all whole"));
    assert_eq!(lab.ok(&["verify", "--format", "json"]).json()["runs"][0]["whole"], true);
    // One byte is changed without changing the length, so only the digest reveals it.
    let file = run.dir.join("requests.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = lab.run(&["verify"]);
    assert_eq!(damaged.code, Some(5));
    assert!(damaged.stdout.contains(&format!("{id} requests.parquet: ")), "{}", damaged.stdout);
    let damaged = lab.run(&["verify", "--format", "json"]);
    lab.follows("verify", &damaged.json());
    assert_eq!((damaged.code, &damaged.json()["runs"][0]["whole"]), (Some(5), &false.into()));

    let schema = lab.ok(&["schema"]);
    assert_eq!(schema.json()["title"], "sweepline plan");
    assert_eq!(lab.ok(&["schema", "plan"]).stdout, schema.stdout);
    assert!(lab.ok(&["schema", "columns"]).stdout.contains("`scheduled_ns`"));
    for command in [&["show", "ffff"] as &[&str], &["why", "ffff", "--plan", "plan.yaml"]] {
        let ended = lab.run(command);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    }
}

#[timed_test]
fn exports_have_a_row_for_each_run_or_request() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.write("two.yaml", &ONE.replace("[2]", "[3]").replace("name: one", "name: two"));
    lab.ok(&["run", "plan.yaml"]);
    lab.ok(&["run", "two.yaml"]);
    let requests: usize = lab.runs().values().map(|run| run.records.len()).sum();
    let csv = |args: &[&str]| lab.ok(&[&["export"], args].concat()).stdout.lines().count() - 1;
    assert_eq!(csv(&[]), 2);
    assert_eq!(csv(&["plan.yaml"]), 1, "only the run of the plan");
    assert_eq!(csv(&["--rows", "requests"]), requests);
    let json = lab.ok(&["export", "two.yaml", "--format", "json"]).json();
    assert_eq!((&json[0]["plan"], &json[0]["batch_size"]), (&"two".into(), &3.into()), "{json}");
    let markdown = lab.ok(&["export", "--format", "markdown"]).stdout;
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| ")).count(), 2 + 2, "{markdown}");
    let file = lab.ok(&["export", "--output", "runs.csv"]);
    assert_eq!(
        (file.stdout.as_str(), std::fs::read_to_string(lab.path().join("runs.csv")).unwrap()),
        ("", lab.ok(&["export"]).stdout)
    );
    lab.ok(&["export", "--format", "parquet"]);
    assert!(std::fs::read(lab.results().join("runs.parquet")).unwrap().starts_with(b"PAR1"));
    for (args, told) in [
        (["export", "--results", "nowhere"], "no results folder nowhere"),
        (["export", "--output", "nowhere/x.csv"], "cannot write nowhere/x.csv"),
    ] {
        let refused = lab.run(&args);
        assert!(refused.code == Some(2) && refused.stdout.is_empty() && refused.stderr.contains(told), "{refused:?}");
    }
    let refused = lab.run(&["export", "--format", "parquet", "--rows", "requests"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("-o FILE"), "{}", refused.stderr);
    lab.ok(&["export", "--rows", "requests", "-o", "requests.parquet"]);
    assert!(std::fs::read(lab.path().join("requests.parquet")).unwrap().starts_with(b"PAR1"));
}

#[timed_test]
fn probes_tell_what_servers_say() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "tiny"]);
    let endpoint = format!("endpoints: {{ live: {{ url: \"{}\" }},", server.url());
    let plan = ONE.replace("endpoints: {", &endpoint).replace("[demo]", "[demo, live]");
    lab.write("plan.yaml", &plan);
    let text = lab.ok(&["probe", "plan.yaml"]).stdout;
    assert!(
        text.contains("live: ready; server ") && text.contains("lists tiny") && text.contains("demo: embedded"),
        "{text}"
    );
    let json = lab.ok(&["probe", "plan.yaml", "--format", "json"]).json();
    lab.follows("probe", &json);
    assert_eq!((&json["endpoints"][0]["state"], &json["endpoints"][0]["models"][0]), (&"ready".into(), &"tiny".into()));
    assert_eq!(json["endpoints"][1]["state"], "embedded");
    let before = server.requests();
    lab.ok(&["preview", "plan.yaml", "--format", "json"]);
    assert_eq!(server.requests(), before, "a preview sends no requests");
    let preview = lab.ok(&["preview", "plan.yaml", "--probe", "--format", "json"]).json();
    assert_eq!((preview["runs"].as_array().unwrap().len(), &preview["endpoints"][0]["state"]), (2, &"ready".into()));
    assert!(server.requests() > before, "it does with --probe");

    lab.write("plan.yaml", &plan.replace(&server.url(), &dead_address()));
    for args in [&["probe", "plan.yaml"] as &[&str], &["preview", "plan.yaml", "--probe"]] {
        let ended = lab.run(args);
        assert_eq!(ended.code, Some(6), "{ended:?}");
        assert!(
            ended.stdout.contains("live: not ready: ") && ended.stdout.contains("does not respond"),
            "{}",
            ended.stdout
        );
    }
    lab.write("plan.yaml", &plan.replace("id: tiny", "id: huge"));
    let unknown = lab.run(&["probe", "plan.yaml"]);
    assert_eq!(unknown.code, Some(2), "the plan must be edited");
    assert!(unknown.stdout.contains("does not have the model `huge`; it lists tiny"), "{}", unknown.stdout);
}

#[timed_test]
fn a_finished_plan_sends_nothing() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let plan = ONE.replace("engine: mock, mock: { ttft: 1ms, itl: 1ms }", &format!("url: \"{}\"", server.url()));
    // Otherwise `run` would request the version of a server that reported one when it was measured.
    lab.write("plan.yaml", &format!("{plan}environment: ignore\n"));
    let first = lab.ok(&["run", "plan.yaml"]);
    let sent = server.requests();
    assert!(sent > 10);
    for args in
        [&["run", "plan.yaml"] as &[&str], &["preview", "plan.yaml"], &["check", "plan.yaml"], &["graph", "plan.yaml"]]
    {
        lab.ok(args);
    }
    assert_eq!(server.requests(), sent, "not even a GET");
    drop(server);
    let again = lab.ok(&["run", "plan.yaml"]);
    assert_eq!(again.stdout, first.stdout, "without a server");
    assert!(
        again.stderr.contains("one: nothing to do; the result of the one run is in results; no request was sent"),
        "{}",
        again.stderr
    );
}

#[timed_test]
fn the_mock_listens_where_it_is_told_to() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--bind", "127.0.0.2"]);
    assert!(server.url().starts_with("http://127.0.0.2:"), "{}", server.url());
    assert_eq!(server.requests(), 0, "the server responds, but gets no requests");
    // The port has just been released, on an address that no other test uses.
    let url = server.url();
    let port = url.trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    drop(server);
    let again = Server::start(&lab, &["--bind", "127.0.0.2", "--port", &port]);
    assert_eq!(again.url(), url);
}

/// The kernel gives each connection to one of the mocks. With a new connection for each of 40 requests, the
/// probability that all go to the same mock is 2^-39.
#[timed_test]
fn mocks_that_share_a_port_share_its_connections() {
    let [lab, second] = [Lab::new(), Lab::new()];
    let one = Server::start(&lab, &["--reuse-port"]);
    let port = one.url().trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    let other = Server::start(&second, &["--reuse-port", "--port", &port]);
    assert_eq!(one.url(), other.url());
    let alone = lab.run(&["mock", "--port", &port]);
    assert!(alone.code == Some(1) && alone.stderr.contains("cannot listen on"), "{alone:?}");
    let measured = "measure: { for: 150ms, min_requests: 40, at_most: 10s }";
    let plan = ONE.replace("engine: mock, mock: { ttft: 1ms, itl: 1ms }", &format!("url: '{}'", one.url()));
    lab.write(
        "plan.yaml",
        &plan
            .replace("measure: 150ms", measured)
            .replace("batch_size: [2] }", "batch_size: [2] }, connections: per_request"),
    );
    lab.ok(&["run", "plan.yaml", "-q"]);
    for log in [&lab, &second].map(|lab| lab.path().join("server.jsonl")) {
        wait_for("a chat request in each log", || {
            std::fs::read_to_string(&log).ok().filter(|text| text.contains("/v1/chat/completions"))
        });
    }
}

#[timed_test]
fn embedded_servers_are_gone_with_their_runs() {
    let lab = Lab::new();
    let path = lab.path().join("the-program");
    // A copy of the program under a different name, which distinguishes its processes from those of
    // other tests.
    std::fs::copy(env!("CARGO_BIN_EXE_sweepline"), &path).unwrap();
    lab.write("plan.yaml", ONE);
    let output = std::process::Command::new(&path).args(["run", "plan.yaml"]).current_dir(lab.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let of_this = |entry: std::io::Result<std::fs::DirEntry>| {
        let exe = std::fs::read_link(entry.ok()?.path().join("exe")).ok()?;
        (exe == path).then_some(exe)
    };
    assert_eq!(std::fs::read_dir("/proc").unwrap().filter_map(of_this).count(), 0);
}

#[timed_test]
fn a_reader_that_goes_away_is_no_error() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.write("broken.yaml", BROKEN);
    lab.ok(&["run", "plan.yaml"]);
    let id = lab.runs().keys().next().unwrap().clone();
    for args in [
        &["run", "plan.yaml"] as &[&str],
        &["preview", "plan.yaml"],
        &["preview", "plan.yaml", "--format", "json"],
        &["check", "plan.yaml"],
        &["graph", "plan.yaml"],
        &["why", &id, "--plan", "plan.yaml"],
        &["show", &id],
        &["list"],
        &["export"],
        &["export", "--rows", "requests", "--format", "json"],
        &["probe", "plan.yaml"],
        &["verify"],
        &["schema", "columns"],
        &["run", "--help"],
    ] {
        let mut child = lab.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("Broken pipe"), "{args:?}: {stderr}");
    }
    for args in [&["check", "broken.yaml"] as &[&str], &["run", "broken.yaml"], &["show", "ffff"]] {
        let mut child = lab.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(2), "{args:?}: the exit code is unaffected by a closed stderr");
    }
}
