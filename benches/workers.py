#!/usr/bin/env python3
"""Measures one load from several threads and processes: `cargo build --release && python3 benches/workers.py [MOCKS]`.

A closed loop of 512 streams that never wait (no time between tokens, one write per event) and an open loop of 1 600
requests per second, 128 tokens each, against MOCKS mocks (default 5) that share a port, so that the client limits the
load. Measured with `engine: { threads: 1, 2, 4 }` and `engine: { workers: 1, 2, 4 }`; prints tokens per second, the lateness of
the open loop, and the CPU time of sweepline and its workers. Figures are comparable only within one call. Needs at least MOCKS
+ 8 cores: on fewer, mocks and clients compete for them. SWEEPLINE_BENCH_PROGRAM selects another binary.
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(os.environ.get("SWEEPLINE_BENCH_PROGRAM", "target/release/sweepline"))
MOCKS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
CORES = sorted(os.sched_getaffinity(0))
PLAN = """
sweepline: 1
name: workers
endpoints: {{ e: {{ url: "{url}/v1", engine: mock }} }}
models: {{ m: {{ id: m }} }}
scenarios: {{ s: {{ prompt_tokens: 64, output_tokens: 128 }} }}
phases: {{ fill: 1s, stabilize: 1s, measure: 8s, drain: 5s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}
engine: {{ {engine} }}
sweeps:
  closed: {{ matrix: {{ endpoint: e, model: m, scenario: s, batch_size: 512 }} }}
  open: {{ matrix: {{ endpoint: e, model: m, scenario: s, qps: 1600 }} }}
"""


def start(port, core):
    command = [PROGRAM, "mock", "--reuse-port", "--port", str(port), "--ttft", "1ms", "--itl", "0s", "--slots", "4096", "--write-per-event"]
    mock = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    return mock, mock.stdout.readline().strip().removeprefix("listening on ")


def measure(folder, url, engine):
    path = os.path.join(folder, "plan.yaml")
    with open(path, "w") as plan:
        plan.write(PLAN.format(url=url, engine=engine))
    results = os.path.join(folder, engine.replace(": ", "-"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = set(CORES[MOCKS:]) or set(CORES)
    ran = subprocess.run([PROGRAM, "run", path, "--results", results, "-q"], capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, own))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    listed = subprocess.run([PROGRAM, "export", path, "--results", results, "--format", "json", "--columns", "all"], capture_output=True, text=True)
    if ran.returncode not in (0, 3):
        sys.exit(f"{engine}: {ran.stderr}")
    rows = {row["sweep"]: row for row in json.loads(listed.stdout)}
    closed, opened = rows["closed"], rows["open"]
    print(
        f"{engine}: closed loop {closed['output_throughput_tokens_per_s'] / 1e3:.0f} k tokens/s ({closed['verdict']}); "
        f"open loop {opened['output_throughput_tokens_per_s'] / 1e3:.0f} k tokens/s, lateness p50 {opened['lateness_p50_ms']} ms, "
        f"p99 {opened['lateness_p99_ms']} ms, TTFT p99 {opened['ttft_p99_ms']} ms ({opened['verdict']}); {cpu:.0f} s of CPU",
        flush=True,
    )


def main():
    mocks = []
    try:
        first, url = start(0, CORES[0])
        mocks.append(first)
        port = int(url.rsplit(":", 1)[1])
        for core in range(1, MOCKS):
            mocks.append(start(port, CORES[core % len(CORES)])[0])
        print(f"{MOCKS} mocks on {min(MOCKS, len(CORES))} cores, sweepline on {max(len(CORES) - MOCKS, 1)}")
        with tempfile.TemporaryDirectory() as folder:
            for engine in ["threads: 1", "threads: 2", "threads: 4", "workers: 1", "workers: 2", "workers: 4"]:
                measure(folder, url, engine)
    finally:
        for mock in mocks:
            mock.send_signal(signal.SIGTERM)
            mock.wait()


if __name__ == "__main__":
    main()
