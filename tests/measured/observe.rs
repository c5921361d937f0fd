//! Tests how the generator observes itself: the stored values, whether its figures agree, and whether
//! a neighboring process that uses the cores is reported.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, getpriority_process, set_parent_process_death_signal, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use sweepline::rows::{Phase, Sample, read_samples};

use lab::mock::Mock;
use lab::plans::plan;
use lab::{Lab, Run};

/// Returns a plan with one run of `slots` slots and a window of `seconds`.
fn closed(port: u16, slots: u32, seconds: u32) -> String {
    let phases = format!("fill: 0s, stabilize: 200ms, measure: {seconds}s, drain: 60s");
    let matrix = format!("endpoint: [a], model: [m], scenario: [short], batch_size: [{slots}]");
    plan(&[("a", port)], &format!("phases: {{ {phases} }}\nsweeps: {{ s: {{ matrix: {{ {matrix} }} }} }}\n"))
}

fn observed(run: &Run) -> &Value {
    let observed = &run.json["facts"]["observed"];
    assert!(observed.is_object(), "nothing was observed: {}", run.json["facts"]);
    observed
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

/// Returns CPU time and time waiting for a core of each thread by name, in nanoseconds.
fn threads(observed: &Value) -> BTreeMap<&str, (u64, u64)> {
    let time = |thread: &'_ Value| (number(&thread["cpu_ns"]), number(&thread["wait_ns"]));
    observed["threads"].as_array().unwrap().iter().map(|t| (t["name"].as_str().unwrap(), time(t))).collect()
}

/// Returns the generator's samples, by name.
fn series(run: &Run) -> BTreeMap<String, Vec<Sample>> {
    let mut series: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for sample in read_samples(&run.dir.join("samples.parquet")).unwrap() {
        assert_eq!(sample.source, "generator");
        series.entry(sample.name.clone()).or_default().push(sample);
    }
    series
}

fn what_a_run_sees_of_its_generator_adds_up() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let lab = Lab::measured_time();
    lab.write("plan.yaml", &closed(mock.port, 8, 4));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let observed = observed(&run);
    let (window, process) = (number(&observed["for_ns"]), number(&observed["process_cpu_ns"]));
    let declared = run.window("measure_end_ns") - run.window("measure_start_ns");
    assert!(window > declared / 2, "the observations are at the boundaries of the window: {window} ns of {declared}");
    let threads = threads(observed);
    assert_eq!(threads.keys().copied().collect::<Vec<_>>(), ["canary", "content", "io", "writer"]);
    let sum: u64 = threads.values().map(|(cpu, _)| cpu).sum();
    println!("of {window} ns: process {process}, threads {threads:?}");
    assert!(sum <= process, "threads used {sum} ns, the process {process}");
    // The other threads of the process draw the progress.
    assert!(sum >= process / 2, "threads used {sum} ns of the process's {process}");
    assert!(threads["io"].0 > threads["canary"].0, "the load is most of the work");
    assert!(threads.values().all(|(cpu, _)| *cpu <= window), "no thread uses more than one core");
    let machine = &observed["machine"];
    assert!(number(&machine["cores"]) >= 1 && machine["busy_ns"].is_u64() && machine["stolen_ns"].is_u64());

    let measured = run.records.iter().filter(|record| record.row.phase == Phase::Measure);
    let sent = measured.filter(|record| record.row.sent_ns.is_some()).count() as u64;
    assert_eq!(number(&observed["lateness"]["count"]), sent, "one per request of the window");
    for (name, every) in [("wakes", 10_000_000), ("turns", 20_000_000)] {
        let spread = &observed[name];
        let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(|figure| number(&spread[figure]));
        // Missed ticks are also counted, so the number matches the length of the window.
        let (count, expected) = (number(&spread["count"]), window / every);
        assert!(p50 <= p99 && p99 <= max && max > 0, "{name}: {spread}");
        assert!(count.abs_diff(expected) <= expected / 4, "{name}: {count} ticks, expected {expected}");
    }
    assert!(number(&observed["writer_backlog_max"]) <= number(&observed["writer_backlog_limit"]) + 1);

    let page = lab.ok(&["show", &run.json["id"].as_str().unwrap()[..16]]).stdout;
    for part in ["generator in the window", "  cpu         io", "  waited", "  loop", "  lateness", "  writer"] {
        assert!(page.contains(part), "no `{part}` in {page}");
    }
}

fn samples_tell_the_same_as_the_facts() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let lab = Lab::measured_time();
    lab.write("plan.yaml", &closed(mock.port, 4, 3));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let series = series(&run);
    for name in ["in_flight", "cpu_seconds_total", "resident_bytes", "writer_backlog_batches", "lateness_p99_seconds"] {
        assert!(series.contains_key(name), "{name} among {:?}", series.keys());
    }
    for (name, samples) in &series {
        assert!(samples.is_sorted_by_key(|sample| sample.at_ns), "{name}");
        assert!(!name.contains("_total") || samples.is_sorted_by(|a, b| a.value <= b.value), "{name} never decreases");
    }
    let last = |name: &str| series[name].last().unwrap().value;
    let at = |name: &str, sample: usize| series[name][sample].value;
    // Within a sample, the process is read first, and then each thread separately.
    let threads: f64 = ["io", "writer", "content", "canary"]
        .map(|name| last(&format!("thread_cpu_seconds_total.{name}")))
        .into_iter()
        .sum();
    let process = last("cpu_seconds_total");
    assert!(threads <= process + 0.1, "threads {threads} s, process {process} s");
    let used = number(&threads_cpu(&run)) as f64 / 1e9;
    let sampled = last("thread_cpu_seconds_total.io") - at("thread_cpu_seconds_total.io", 0);
    assert!(used <= sampled + 0.5, "the window is part of the run: {used} s of {sampled} s");
    // Each sent request is counted in one octave of one second.
    let octaves = series.iter().filter(|(name, _)| name.starts_with("lateness_count.below_"));
    let counted: f64 = octaves.flat_map(|(_, samples)| samples).map(|sample| sample.value).sum();
    let sent = run.records.iter().filter(|record| record.row.sent_ns.is_some()).count();
    assert_eq!(counted as usize, sent);
}

fn threads_cpu(run: &Run) -> Value {
    let threads = observed(run)["threads"].as_array().unwrap();
    threads.iter().find(|thread| thread["name"] == "io").unwrap()["cpu_ns"].clone()
}

/// Busy loops on one core, which are killed when this guard is dropped or when the test ends.
struct Hog(Vec<Child>);

impl Hog {
    fn start(core: usize, loops: usize) -> Hog {
        let nice = getpriority_process(None).unwrap().max(14);
        let start = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            on_core(&mut shell, core, nice).spawn().unwrap()
        };
        Hog((0..loops).map(start).collect())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the program on one core, with a niceness that leaves the machine nearly unchanged for other tests.
fn on_core(command: &mut Command, core: usize, nice: i32) -> &mut Command {
    let prepare = move || {
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only)?;
        setpriority_process(None, nice)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: only system calls are made between fork and exec.
    #[expect(unsafe_code, reason = "the child sets its core before it begins")]
    unsafe {
        command.pre_exec(prepare)
    }
}

fn a_neighbour_that_takes_the_cores_is_named() {
    let allowed = sched_getaffinity(None).unwrap();
    let core = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core)).unwrap();
    let mock = Mock::start(&["--slots", "16"]);
    let lab = Lab::measured_time();
    lab.write("plan.yaml", &closed(mock.port, 8, 9));
    let hog = Hog::start(core, 4);
    let mut command = lab.command(&["run", "plan.yaml"]);
    let ended = lab::Ended::from(on_core(&mut command, core, 19).output().unwrap());
    drop(hog);
    let run = lab.only_run();
    let observed = observed(&run);
    let (window, io) = (number(&observed["for_ns"]), threads(observed)["io"]);
    println!("of {window} ns the I/O thread used {} and waited {} for a core", io.0, io.1);
    println!("{observed}");
    assert!(io.1 > window / 4, "4 busy loops share the only core with it: {observed}");
    let shown = lab.ok(&["show", &run.json["id"].as_str().unwrap()[..16], "--format", "json"]).json();
    let verdict = &shown["verdict"];
    assert_ne!(verdict["state"], "valid", "{verdict}");
    let reasons = verdict["reasons"].as_array().unwrap();
    let saturated = reasons.iter().find(|reason| reason["name"] == "client_saturated");
    let text = saturated.unwrap_or_else(|| panic!("{verdict}"))["text"].as_str().unwrap();
    println!("{text}");
    assert!(text.contains("other processes held the cores: the I/O thread waited"), "{text}");
    assert!(ended.stdout.contains("client_saturated"), "the table lists the reason: {}", ended.stdout);
}

lab::measured_tests![
    what_a_run_sees_of_its_generator_adds_up,
    samples_tell_the_same_as_the_facts,
    a_neighbour_that_takes_the_cores_is_named,
];
