#!/usr/bin/env python3
"""Measures, within one run, whether scrapes delay requests: `cargo build --release && python3 benches/scraping.py [RUNS]`.

An open loop of 2 500 requests per second of 8 tokens (20 000 token events per second) against a mock whose page is
scraped each second. A scrape can only change the lateness of requests near it, so the mean lateness of all requests is
compared with that of the requests that are more than 50 ms away from every scrape: their ratio is the effect of
scraping on the mean. Requests near instants between the scrapes, treated as if they were scrapes, show how much that
ratio varies by chance. Runs of different plans differ by more than this effect; `cargo bench --bench telemetry`
compares such runs. Needs pyarrow (the tests' `target/test-venv` has it).
"""
import glob
import os
import statistics
import subprocess
import sys
import tempfile

import pyarrow.parquet as parquet

PROGRAM = os.path.abspath(os.environ.get("SWEEPLINE_BENCH_PROGRAM", "target/release/sweepline"))
NEAR = 50_000_000
PLAN = """
sweepline: 1
name: scraping
endpoints: {{ e: {{ url: "{url}/v1", engine: vllm, telemetry: on }} }}
models: {{ m: {{ id: m }} }}
scenarios: {{ s: {{ prompt_tokens: 64, output_tokens: 8 }} }}
phases: {{ fill: 1s, stabilize: 1s, measure: 20s, drain: 5s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}
sweeps: {{ s: {{ matrix: {{ endpoint: e, model: m, scenario: s, qps: 2500 }}, repeats: {runs} }} }}
"""


def effect(requests, instants):
    """Returns the mean lateness of all requests divided by that of the requests far from each instant, minus 1."""
    far, at = [], 0
    for due, late in requests:
        while at < len(instants) and instants[at] + NEAR < due:
            at += 1
        if at == len(instants) or due < instants[at] - NEAR:
            far.append(late)
    return statistics.fmean(late for _, late in requests) / statistics.fmean(far) - 1


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    command = [PROGRAM, "mock", "--ttft", "10ms", "--itl", "10ms", "--slots", "1024"]
    mock = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = mock.stdout.readline().strip().removeprefix("listening on ")
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "plan.yaml")
            with open(plan, "w") as file:
                file.write(PLAN.format(url=url, runs=runs))
            results = os.path.join(folder, "results")
            subprocess.run([PROGRAM, "run", plan, "--results", results, "-q"], stdout=subprocess.DEVNULL)
            scraped, between = [], []
            for run in sorted(glob.glob(os.path.join(results, "runs", "*"))):
                table = parquet.read_table(os.path.join(run, "requests.parquet"), columns=["scheduled_ns", "sent_ns"])
                rows = zip(*(table.column(name).to_pylist() for name in table.column_names))
                requests = sorted((due, sent - due) for due, sent in rows if sent is not None and 2e9 <= due < 22e9)
                samples = parquet.read_table(os.path.join(run, "samples.parquet"), columns=["at_ns", "name"])
                instants = sorted(at for at, name in zip(*(samples.column(name).to_pylist() for name in ("at_ns", "name"))) if name == "scrape_duration_seconds")
                scraped.append(effect(requests, instants))
                between += [effect(requests, [at + shift * 100_000_000 for at in instants]) for shift in range(2, 9)]
                print(f"{len(requests)} requests, {len(instants)} scrapes, mean lateness {statistics.fmean(late for _, late in requests) / 1e3:.1f} µs: {scraped[-1]:+.2%}")
            error = statistics.stdev(scraped) / len(scraped) ** 0.5 if runs > 1 else float("nan")
            print(f"scraping changes the mean lateness by {statistics.fmean(scraped):+.2%} ± {error:.2%}")
            print(f"the same between scrapes, by chance: {statistics.fmean(between):+.2%}, from {min(between):+.2%} to {max(between):+.2%}")
    finally:
        mock.terminate()
        mock.wait()


main()
