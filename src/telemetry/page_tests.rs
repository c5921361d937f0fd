//! Tests of exporters' pages and the values that are read from them.

use super::*;

fn plain_wanted() -> Wanted {
    Wanted::new([], [])
}

fn value(reading: &Reading, name: &str) -> Option<f64> {
    let found = reading.canonical.iter().find(|(canonical, part, _)| format!("{}{part}", canonical.key) == name);
    found.map(|found| found.2)
}

const VLLM: &str = "# TYPE vllm:num_requests_running gauge\n\
    vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n\
    vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0\n\
    vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n\
    vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.75\n\
    vllm:gpu_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.9\n\
    vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 100.0\n\
    vllm:prompt_tokens_created{engine=\"0\",model_name=\"m\"} 1.7e9\n\
    vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"m\"} 5.0\n\
    vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"m\"} 6.0\n\
    vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"m\"} 7.0\n\
    vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"0.3\",model_name=\"m\"} 1.0\n\
    vllm:request_queue_time_seconds_sum{engine=\"0\",model_name=\"m\"} 2.5\n\
    vllm:request_queue_time_seconds_count{engine=\"0\",model_name=\"m\"} 10.0\n";

#[test]
fn a_page_of_vllm() {
    let reading = plain_wanted().read(VLLM).unwrap();
    for (name, wanted) in [
        ("requests_running", Some(7.0)),
        ("kv_cache_usage", Some(0.5)),
        ("prompt_tokens", Some(100.0)),
        ("requests_succeeded", Some(11.0)),
        ("requests_failed", Some(7.0)),
        ("queue_seconds.sum", Some(2.5)),
        ("queue_seconds.count", Some(10.0)),
        ("requests_waiting", None),
    ] {
        assert_eq!(value(&reading, name), wanted, "{name}");
    }
    assert_eq!(reading.get("requests_running"), Some(7.0));
    assert!(reading.raw.is_empty());
}

/// The page is based on the example in the documentation of the DCGM exporter.
#[test]
fn a_page_of_dcgm_is_in_canonical_units() {
    let page = "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n\
        DCGM_FI_DEV_SM_CLOCK{gpu=\"0\", UUID=\"GPU-604ac76c\"} 139\n\
        DCGM_FI_DEV_SM_CLOCK{gpu=\"1\", UUID=\"GPU-604ac76d\"} 141\n\
        DCGM_FI_DEV_GPU_TEMP{gpu=\"0\", UUID=\"GPU-604ac76c\"} 34\n\
        DCGM_FI_DEV_GPU_TEMP{gpu=\"1\", UUID=\"GPU-604ac76d\"} 61\n\
        DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 70.5\nDCGM_FI_DEV_POWER_USAGE{gpu=\"1\"} 29.5\n\
        DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"} 2500\n\
        DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 50\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 100\n\
        DCGM_FI_DEV_FB_USED{gpu=\"0\"} 2\n\
        DCGM_FI_DEV_FB_TOTAL 9223372036854775794\nDCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\"} 0.7\n\
        DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu=\"0\"} 4\nDCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu=\"1\"} 33\n";
    let reading = plain_wanted().read(page).unwrap();
    for (name, wanted) in [
        ("gpu_sm_clock", 140e6),
        ("gpu_temperature", 61.0),
        ("gpu_power_watts", 100.0),
        ("gpu_energy_joules", 2.5),
        ("gpu_utilization", 0.75),
        ("gpu_memory_used", 2.0 * 1_048_576.0),
        ("gpu_memory_bandwidth_utilization", 0.7),
        ("gpu_throttle_reasons", 37.0),
    ] {
        assert_eq!(value(&reading, name), Some(wanted), "{name}");
    }
    assert_eq!(value(&reading, "gpu_memory_total"), None, "values unknown to DCGM are blank");
}

#[test]
fn a_page_of_the_node_exporter() {
    let page = "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 70\nnode_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"} 5\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 25\nnode_memory_MemAvailable_bytes 1.5e+09\n";
    let reading = plain_wanted().read(page).unwrap();
    assert_eq!([value(&reading, "cpu_seconds"), value(&reading, "cpu_idle_seconds")], [Some(100.0), Some(75.0)]);
    assert_eq!(value(&reading, "host_memory_available"), Some(1.5e9));
}

#[test]
fn a_map_of_one_s_own_stands_in_the_place_of_the_tables() {
    let map = [("requests_running", "vllm:num_requests_running{engine=1}"), ("gpu_power_watts", "my_power_mw * 0.001")];
    let map = map.map(|(key, selector)| (key, selector.parse().unwrap()));
    let reading = Wanted::new(map.clone(), []).read(&format!("{VLLM}my_power_mw 5000\n")).unwrap();
    assert_eq!((reading.get("requests_running"), reading.get("gpu_power_watts")), (Some(4.0), Some(5.0)));
    let without = Wanted::new(map, []).read("vllm:num_requests_running{engine=\"0\"} 3\n").unwrap();
    assert_eq!(without.get("requests_running"), None, "only values that the plan selected");
}

#[test]
fn raw_series_keep_their_labels_in_one_order() {
    let wanted = Wanted::new([], ["vllm:request_queue_time_seconds".to_owned(), "up".to_owned()]);
    let reading = wanted.read(&format!("{VLLM}up{{b=\"x\\\"\",a=\"1\"}} 1\nupper 2\n")).unwrap();
    let names: Vec<&str> = reading.raw.iter().map(|(name, ..)| name.as_str()).collect();
    let queue = "vllm:request_queue_time_seconds";
    assert_eq!(names, [&format!("{queue}_bucket"), &format!("{queue}_sum"), &format!("{queue}_count"), "up"]);
    assert_eq!(reading.raw[3].1, "a=\"1\",b=\"x\\\"\"");
}

#[test]
fn what_is_no_number_is_no_value() {
    let reading = plain_wanted().read("vllm:num_requests_running 1\nvllm:num_requests_running NaN\n").unwrap();
    assert_eq!(reading.get("requests_running"), None);
    let reading =
        plain_wanted().read("vllm:num_requests_running +Inf\nDCGM_FI_DEV_CLOCK_THROTTLE_REASONS NaN\n").unwrap();
    assert!(reading.canonical.is_empty(), "{reading:?}");
    assert!(plain_wanted().read("<html>").is_err());
}

#[test]
fn raw_series_without_end_are_refused() {
    let page: String = (0..=MOST_RAW).map(|at| format!("a{{i=\"{at}\"}} 1\n")).collect();
    assert_eq!(Wanted::new([], ["a".to_owned()]).read(&page), Err(PageError::TooMany));
    assert!(Wanted::new([], []).read(&page).is_ok());
}

/// Each page, as written by its exporter, must contain every series of the exporter's table, except the
/// series that are listed as absent.
#[test]
fn every_exporter_s_page_has_what_its_table_says() {
    for (title, page, absent) in [
        ("vLLM", include_str!("../../tests/telemetry/vllm.txt"), &["requests_failed"][..0]),
        ("SGLang", include_str!("../../tests/telemetry/sglang.txt"), &[]),
        ("Text Generation Inference", include_str!("../../tests/telemetry/tgi.txt"), &[]),
        ("llama.cpp", include_str!("../../tests/telemetry/llamacpp.txt"), &["kv_cache_usage"]),
        ("NVIDIA NIM", include_str!("../../tests/telemetry/nim.txt"), &[]),
        ("Triton", include_str!("../../tests/telemetry/triton.txt"), &[]),
        ("TensorRT-LLM", include_str!("../../tests/telemetry/trtllm.txt"), &["spec_drafts", "spec_accepted"]),
        ("DCGM exporter", include_str!("../../tests/telemetry/dcgm.txt"), &[]),
        ("AMD device metrics exporter", include_str!("../../tests/telemetry/amd.txt"), &[]),
        ("node exporter", include_str!("../../tests/telemetry/node.txt"), &[]),
        // A page of the node exporter in Debian 12.
        ("node exporter", include_str!("../../tests/telemetry/node_exporter_1.5.0.txt"), &[]),
    ] {
        let reading = plain_wanted().read(page).unwrap_or_else(|error| panic!("{title}: {error}"));
        let exporter = EXPORTERS.iter().find(|exporter| exporter.title == title).unwrap();
        let has = |key: &str| reading.canonical.iter().any(|(series, ..)| series.key == key);
        let missing: Vec<&str> =
            exporter.series.iter().map(|source| source.canonical).filter(|key| !has(key)).collect();
        assert_eq!(missing, absent, "{title}");
        let is_server = exporter.series.iter().any(|source| source.canonical.ends_with("_seconds"));
        let has_histograms = reading.canonical.iter().any(|(series, ..)| series.kind == Kind::Histogram);
        assert_eq!(reading.exporter, (is_server && has_histograms).then_some(title), "{title}");
    }
}

#[test]
fn the_page_of_a_real_node_exporter_has_its_values() {
    let reading = plain_wanted().read(include_str!("../../tests/telemetry/node_exporter_1.5.0.txt")).unwrap();
    let near = |key: &str, wanted: f64| {
        let found = reading.get(key).unwrap_or_else(|| panic!("no {key}"));
        assert!((found - wanted).abs() < 0.01, "{key}: {found}, expected {wanted}");
    };
    // For each of two cores, the seconds spent in idle, iowait, irq, nice, softirq, steal, system and user
    // mode.
    let cores = [
        [3440.1, 14.74, 0.0, 6130.37, 74.82, 12.24, 1806.29, 5135.6],
        [3027.14, 32.72, 0.0, 6214.25, 89.75, 11.76, 1891.82, 5352.28],
    ];
    near("cpu_seconds", cores.iter().flatten().sum());
    near("cpu_idle_seconds", cores.iter().map(|core| core[0] + core[1]).sum());
    near("host_memory_available", 13_852_848_128.0);
    near("host_memory_total", 25_276_510_208.0);
    near("process_start_time", 1_795_649_562.36);
    assert_eq!(reading.exporter, None, "it has no histogram of a server");
}

#[test]
fn names_of_nobody_are_taken_only_where_it_is_known_whose_they_are() {
    let page = "prompt_tokens_total 5\n";
    assert!(plain_wanted().read(page).unwrap().canonical.is_empty());
    let of_nim = plain_wanted().read(&format!("{page}num_request_max 8\n")).unwrap();
    assert_eq!(of_nim.get("prompt_tokens"), Some(5.0));
}

#[test]
fn what_is_in_two_counters_is_added_up() {
    let page = "llamacpp:prompt_tokens_total 5\nllamacpp:prompt_tokens_cached_total 3\n";
    let reading = plain_wanted().read(page).unwrap();
    assert_eq!((reading.get("prompt_tokens"), reading.get("prefix_cache_hits")), (Some(8.0), Some(3.0)));
    let part = plain_wanted().read("llamacpp:prompt_tokens_total 5\n").unwrap();
    assert_eq!(part.get("prompt_tokens"), None, "a part is not the whole");
}
