#!/usr/bin/env python3
"""Measures the memory of a client with many streams in flight: `cargo build --release && python3 benches/streams.py [STREAMS…]`
(default 1000 5000 10000).

A mock in a separate process responds slowly, one token per second, so that all streams are open at once and cost little
CPU time. Prints the client's peak memory, as the kernel accounts it for the child, and the increase per additional
stream. Nothing is measured beyond the largest count, so figures for more streams would be extrapolations.
"""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(os.environ.get("SWEEPLINE_BENCH_PROGRAM", "target/release/sweepline"))
PLAN = """
sweepline: 1
name: streams
endpoints: {{ far: {{ engine: vllm, url: "{url}/v1" }} }}
models: {{ m: {{ id: mock }} }}
scenarios: {{ slow: {{ prompt_tokens: 64, output_tokens: 12 }} }}
phases: {{ fill: 15s, stabilize: 1s, measure: {{ for: 20s, min_requests: 1, at_most: 20s }}, drain: 30s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, unsteady: {{ suspect: 100% }} }}
sweeps: {{ s: {{ matrix: {{ endpoint: far, model: m, scenario: slow, batch_size: {streams} }} }} }}
"""


def measure(streams):
    with tempfile.TemporaryDirectory() as folder:
        mock = subprocess.Popen([PROGRAM, "mock", "--ttft=1s", "--itl=1s"], stdout=subprocess.PIPE, text=True)
        try:
            url = mock.stdout.readline().split()[-1]
            with open(os.path.join(folder, "plan.yaml"), "w") as plan:
                plan.write(PLAN.format(url=url, streams=streams))
            err = open(os.path.join(folder, "err"), "wb")
            client = subprocess.Popen([PROGRAM, "run", "plan.yaml"], cwd=folder, stdout=subprocess.DEVNULL, stderr=err)
            _, status, usage = os.wait4(client.pid, 0)
            client.returncode = os.waitstatus_to_exitcode(status)
            runs = os.path.join(folder, "results", "runs")
            for run in os.listdir(runs) if os.path.exists(runs) else []:
                requests = json.load(open(os.path.join(runs, run, "run.json")))["files"]["requests.parquet"]["rows"]
                return usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime, requests
            raise SystemExit(f"no result: {open(os.path.join(folder, 'err')).read()}")
        finally:
            mock.terminate()
            mock.wait()


def main():
    before = None
    for streams in [int(word) for word in sys.argv[1:]] or [1_000, 5_000, 10_000]:
        peak, cpu, requests = measure(streams)
        each = f", {(peak - before[1]) / (streams - before[0]) / 1e3:.1f} kB for each additional stream" if before else ""
        print(f"{streams:>7,} streams in flight: {peak / 1e6:6.1f} MB at most{each}; {requests:,} requests, {cpu:.1f} s of CPU time", flush=True)
        before = before or (streams, peak)


main()
