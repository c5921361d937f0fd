#!/usr/bin/env python3
"""Measures the cost of commands on stores of many runs: `cargo build --release && python3 benches/scale.py FOLDER RUNS…`.

Creates FOLDER/RUNS with a plan of this many runs and their results, unless it exists. The program measures one run on its mock;
each other run of the plan has its own `run.json` and inventory entry, with the ids that `preview` lists, and links to the row
files of the measured run. For all commands except `verify`, every run is therefore whole. Then measures the wall time, CPU time and
peak memory of each command. Files are in the page cache, because they were just written or read.

With `--moto`, reads the results from S3 instead, served by moto in this process (`pip install 'moto[server]==5.2.5'`): first
with a worker without a local copy, then with a worker that has one. Commits and packs are put into moto directly, as `push`
would store them, but without rows, because a sweep with nothing to do does not read rows. Prints a table and compares nothing.
"""
import copy
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

PROGRAM = os.path.abspath(os.environ.get("SWEEPLINE_BENCH_PROGRAM", "target/release/sweepline"))
BUCKET, PREFIX = "bench", "scale"
A_PACK = 1000
# Number of runs for each rate (output lengths times repeats).
RUNS_A_RATE = 100
PLAN = """sweepline: 1
name: scale
endpoints: {{ demo: {{ engine: mock }} }}
models: {{ m: {{ id: tiny }} }}
phases: {{ fill: 100ms, stabilize: 100ms, measure: {{ for: 500ms, min_requests: 1, at_most: 1s }}, drain: 1s }}
sweeps:
  s:
    matrix:
      endpoint: demo
      model: m
      scenario: B1
      output_tokens: [{lengths}]
      qps: {{ from: 1, to: {rates}, step: 1 }}
    repeats: 5
"""


def sealed(value):
    """Returns the text of a sealed file and its digest (ARCHITECTURE.md, the digest)."""
    value.pop("sha256", None)
    text = json.dumps(value, indent=2, ensure_ascii=False)[: -len("\n}")]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{text},\n  "sha256": "{digest}"\n}}\n', digest


def make(folder, runs):
    place = os.path.join(folder, str(runs))
    if os.path.exists(os.path.join(place, "made")):
        return place
    os.makedirs(place, exist_ok=True)
    lengths = ", ".join(str(16 * length) for length in range(1, 21))
    with open(os.path.join(place, "plan.yaml"), "w") as plan:
        plan.write(PLAN.format(lengths=lengths, rates=runs // RUNS_A_RATE))
    first = "qps == 20 and output_tokens == 16 and repeat == 0"
    ended = subprocess.run([PROGRAM, "run", "plan.yaml", "-q", "--only", first], cwd=place, capture_output=True, text=True)
    assert ended.returncode in (0, 4), ended.stderr
    results = os.path.join(place, "results")
    preview = subprocess.run([PROGRAM, "preview", "plan.yaml", "--format", "json"], cwd=place, capture_output=True, check=True)
    planned = json.loads(preview.stdout)["runs"]
    is_first = lambda run: run["cell"]["qps"] == 20 and run["cell"]["output_tokens"] == 16 and run["repeat"] == 0
    [there] = [run["id"][:16] for run in planned if is_first(run)]
    source = os.path.join(results, "runs", there)
    record = json.load(open(os.path.join(source, "run.json")))
    entry = json.load(open(os.path.join(results, "inventory", f"{there}.json")))
    rows = {name: os.path.join(source, name) for name in record["files"]}
    start = time.monotonic()
    for run in planned:
        short, cell = run["id"][:16], run["cell"]
        # Continues an interrupted build.
        if os.path.exists(os.path.join(results, "inventory", f"{short}.json")):
            continue
        one = copy.deepcopy(record)
        one["id"], one["spec"]["repeat"] = run["id"], run["repeat"]
        one["spec"]["load"]["open"]["qps"] = cell["qps"]
        one["spec"]["scenario"]["output_tokens"] = cell["output_tokens"]
        for axis, value in cell.items():
            if axis in one["spec"]["labels"].get("axes", {}):
                one["spec"]["labels"]["axes"][axis] = str(value)
        text, digest = sealed(one)
        into = os.path.join(results, "runs", short)
        os.makedirs(into, exist_ok=True)
        with open(os.path.join(into, "run.json"), "w") as file:
            file.write(text)
        for name in record["files"]:
            try:
                os.link(rows[name], os.path.join(into, name))
            except FileExistsError:
                pass
            except OSError:  # The number of hard links to a file is limited.
                rows[name] = shutil.copy(rows[name], into)
        named = {"id": run["id"], "repeat": run["repeat"], "qps": float(cell["qps"]), "run_sha256": digest}
        with open(os.path.join(results, "inventory", f"{short}.json"), "w") as file:
            file.write(sealed({**entry, **named})[0])
    size = os.path.getsize(os.path.join(source, "run.json"))
    print(f"made {len(planned)} runs in {time.monotonic() - start:.0f} s; a run.json has {size} bytes", flush=True)
    open(os.path.join(place, "made"), "w").close()
    # The index of runs omits files that were written just now.
    time.sleep(12)
    return place


def once(command, folder, env=None):
    """Returns the wall time and CPU time in seconds, the peak memory in MiB, and the lines on stderr."""
    start = time.monotonic()
    with open(os.path.join(folder, "out"), "wb") as out, open(os.path.join(folder, "err"), "wb") as err:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - start
    said = open(os.path.join(folder, "err")).read().strip().splitlines() or [""]
    if child.returncode not in (0, 3, 4):
        raise SystemExit(f"{command}: {child.returncode}: {said}")
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said


def show(runs, what, command, folder, times=1, env=None):
    measured = [once(command, folder, env) for _ in range(times)]
    took, cpu, mib, said = sorted(measured, key=lambda one: one[0])[times // 2]
    nothing = [line for line in said if "nothing to do" in line]
    print(f"| {runs:>9,} | {what:<48} | {took:7.2f} s | {cpu:7.2f} s | {mib:6.0f} MiB | {nothing[0].split('] ')[-1][:60] if nothing else ''}", flush=True)


def local(folder, runs):
    place = make(folder, runs)
    derived = os.path.join(place, "results", "derived")
    first = sorted(os.listdir(os.path.join(place, "results", "runs")))[0]
    call = lambda *args: [PROGRAM, *args]
    forget = lambda name: [os.remove(path) for path in glob.glob(os.path.join(derived, name))]
    forget("*")
    if runs <= 100_000:
        show(runs, "run, nothing to do, first time: reads every row", call("run", "plan.yaml"), place)
    show(runs, "run, nothing to do", call("run", "plan.yaml"), place, 3)
    forget("runs.index")
    show(runs, "the same without derived/runs.index", call("run", "plan.yaml"), place)
    show(runs, "preview", call("preview", "plan.yaml"), place)
    show(runs, "why, one run", call("why", first, "--plan", "plan.yaml"), place)
    show(runs, "list", call("list"), place)
    show(runs, "list --format json", call("list", "--format", "json"), place)
    if runs <= 30_000 or "--all" in sys.argv:
        show(runs, "export of one column", call("export", "plan.yaml", "--columns", "run_id", "-o", "one.csv"), place)
    if runs <= 10_000:
        show(runs, "report", call("report", "plan.yaml", "-o", "report.html"), place)


def serve(place):
    """Starts moto with the commits and packs of a folder."""
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer
    from moto.s3.models import s3_backends

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    backend = s3_backends["123456789012"]["aws"]
    backend.create_bucket(BUCKET, "us-east-1")
    layout = os.path.join(place, "results", "runs")
    ids, size = sorted(os.listdir(layout)), 0
    for at in range(0, len(ids), A_PACK):
        runs = {}
        for run in ids[at : at + A_PACK]:
            with open(os.path.join(layout, run, "run.json")) as file:
                runs[run] = file.read()
            backend.put_object(BUCKET, f"{PREFIX}/runs/{run}.json", runs[run].encode())
        pack = json.dumps({"format": 1, "runs": runs}, separators=(",", ":"), ensure_ascii=False).encode()
        backend.put_object(BUCKET, f"{PREFIX}/packs/{hashlib.sha256(pack).hexdigest()}.json", pack)
        size += len(pack)
    print(f"moto: {len(ids)} commits, {size / 1e6:.0f} MB of packs", flush=True)
    return server


def moto(folder, runs):
    place = make(folder, runs)
    server = serve(place)
    host, port = server.get_host_and_port()
    cache = os.path.join(place, "copy")
    shutil.rmtree(cache, ignore_errors=True)
    keys = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}
    env = {**keys, "AWS_ENDPOINT_URL": f"http://{host}:{port}", "SWEEPLINE_CACHE": cache}
    call = [PROGRAM, "run", "plan.yaml", "--results", f"s3://{BUCKET}/{PREFIX}"]
    show(runs, "run from moto, nothing to do, without a copy", call, place, env=env)
    show(runs, "run from moto, nothing to do, with the copy", call, place, 3, env=env)
    server.stop()
    shutil.rmtree(cache, ignore_errors=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    for count in words[1:]:
        (moto if "--moto" in sys.argv else local)(os.path.abspath(words[0]), int(count))
