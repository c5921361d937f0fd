#!/usr/bin/env python3
"""Checks where the time went, over a network with a known delay: `cargo build && unshare -rn python3 benches/way.py [MILLISECONDS]`.

Two network namespaces, `near` with sweepline and `far` with its mock, are connected by a path on which every packet
takes this many milliseconds (default 5) in each direction. The script measures at 0.3, 0.7 and 0.95 of the mock's
capacity, once over new connections, and once with a cap in the client. It prints the parts of mean TTFT and E2E next to
the values from the rows, the mock's log and the path. It needs Linux with /dev/net/tun and user namespaces, but no
root. It fails if a part is off by more than 5 % or 2 ms, or if less than 95 % of the time is assigned to parts.
"""
import ctypes
import fcntl
import heapq
import json
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = os.path.abspath(os.environ.get("SWEEPLINE_BENCH_PROGRAM", "target/debug/sweepline"))
DELAY = float(sys.argv[1]) / 1e3 if len(sys.argv) > 1 else 0.005
PORT = 8123
PLAN = f"""
sweepline: 1
name: way
endpoints: {{ far: {{ engine: vllm, url: "http://10.9.0.2:{PORT}/v1", telemetry: {{ every: 500ms }} }} }}
models: {{ m: {{ id: mock }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 16 }} }}
phases: {{ fill: 1s, stabilize: 1s, measure: 20s, drain: 5s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}
sweeps:
  open: {{ matrix: {{ endpoint: far, model: m, scenario: short, qps: [17, 40, 54] }} }}
  new: {{ matrix: {{ endpoint: far, model: m, scenario: short, qps: 18 }}, connections: per_request }}
  capped: {{ matrix: {{ endpoint: far, model: m, scenario: short, qps: 50, batch_size: 3 }} }}
"""
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def interface(name, own, other):
    """Creates a tunnel in this thread's namespace whose packets this process forwards."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    for args in (["link", "set", "lo", "up"], ["addr", "add", own, "peer", other, "dev", name], ["link", "set", name, "up"]):
        subprocess.run(["ip", *args], check=True)
    return tun


def carry(near, far):
    """Forwards packets, each DELAY after its arrival."""
    queue, count = [], 0
    while True:
        wait = max(queue[0][0] - time.monotonic(), 0) if queue else 1
        for tun in select.select([near, far], [], [], wait)[0]:
            try:
                while True:
                    packet = os.read(tun, 1 << 16)
                    count += 1
                    heapq.heappush(queue, (time.monotonic() + DELAY, count, far if tun == near else near, packet))
            except BlockingIOError:
                pass
        while queue and queue[0][0] <= time.monotonic():
            _, _, tun, packet = heapq.heappop(queue)
            os.write(tun, packet)


def round_trip():
    """Returns the median of nine handshakes before any load, in milliseconds."""
    took = []
    for _ in range(9):
        begin = time.monotonic()
        socket.create_connection(("10.9.0.2", PORT)).close()
        took.append((time.monotonic() - begin) * 1e3)
    return sorted(took)[4]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def expected(log, rows, window, origin):
    """Returns the parts of the requests that ended in the window, from the rows and from the log independently."""
    start, end = window
    ended = [line for line in log if start <= line.get("done_ns", 0) - origin < end and line["finish_reason"] == "length"]
    of = lambda a, b: mean((line[b] - line[a]) / 1e6 for line in ended)
    mine = [row for row in rows if row["outcome"] == "ok" and start <= row["done_ns"] < end]
    connecting = lambda row: sum(row[name] or 0 for name in ("dns_ns", "connect_ns", "tls_ns"))
    return {
        "client": mean((row["sent_ns"] - row["scheduled_ns"] - connecting(row)) / 1e6 for row in mine),
        "queue": of("body_ns", "slot_ns"),
        "prefill": of("slot_ns", "first_write_ns"),
        "decode": of("first_write_ns", "last_write_ns"),
    }


def sweepline(*args):
    return subprocess.run([PROGRAM, *args], check=False, capture_output=True, text=True)


def main():
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    near = interface("near", "10.9.0.1", "10.9.0.2")
    assert libc.unshare(CLONE_NEWNET) == 0, "cannot create a second namespace"
    far = interface("far", "10.9.0.2", "10.9.0.1")
    folder = tempfile.mkdtemp(prefix="way")
    log_file = os.path.join(folder, "mock.jsonl")
    flags = ["--bind", "10.9.0.2", "--port", str(PORT), "--ttft", "40ms", "--itl", "2ms", "--slots", "4", "--log", log_file]
    mock = subprocess.Popen([PROGRAM, "mock", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert libc.setns(own, 0) == 0
    threading.Thread(target=carry, args=(near, far), daemon=True).start()
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                network = round_trip()
                break
            except OSError:
                assert time.monotonic() < deadline, "the mock does not listen"
                time.sleep(0.1)
        os.chdir(folder)
        ok = measured(network, log_file)
    finally:
        mock.terminate()
        mock.wait()
    sys.exit(0 if ok else 1)


def measured(network, log_file):
    with open("plan.yaml", "w") as plan:
        plan.write(PLAN)
    ran = sweepline("run", "plan.yaml", "-q")
    assert ran.returncode in (0, 3), ran.stderr
    log = [json.loads(line) for line in open(log_file)]
    rows = json.loads(sweepline("export", "plan.yaml", "--rows", "requests", "--format", "json", "--columns", "all").stdout)
    ok = True
    print(f"a path of {2e3 * DELAY:g} ms; the median handshake before the load takes {network:.2f} ms")
    for run in sorted(os.listdir("results/runs")):
        record = json.load(open(f"results/runs/{run}/run.json"))
        facts, run = record["facts"], record["id"]
        window = [facts["windows"][name] for name in ("measure_start_ns", "measure_end_ns")]
        own = [row for row in rows if row["run_id"] == run]
        new = facts["qps"] == 18
        # A handshake of TCP is one round trip; a kept connection needs none.
        wanted = expected(log, own, window, facts["start_monotonic_ns"])
        wanted |= {"network": 2e3 * DELAY, "connection": 2e3 * DELAY if new else 0}
        shown = json.loads(sweepline("show", run, "--plan", "plan.yaml", "--format", "json").stdout)
        print(f"qps {facts['qps']}{' new connections' if new else ''}{' capped' if facts.get('batch_size') else ''}")
        for whole in shown["parts"]:
            found = {part["name"]: part["ms"] for part in whole["parts"]}
            absent = [f"{part['name']}: {part['absent']}" for part in whole["parts"] if part["ms"] is None]
            cells = []
            for name, ms in found.items():
                off = abs(ms - wanted[name]) if name in wanted and ms is not None else 0
                bad = name in wanted and (ms is None or off > max(0.05 * wanted[name], 2))
                ok &= not bad
                cells.append(f"{name} {'unknown' if ms is None else format(ms, '.2f')}" + (f" (of {wanted[name]:.2f}{', OFF' if bad else ''})" if name in wanted else ""))
            share = whole["assigned_share"]
            ok &= share is not None and share >= 0.95
            print(f"  {whole['of']} {whole['mean_ms']:.2f} ms, assigned {share:.1%}: {'; '.join([', '.join(cells), *absent])}")
    return ok


main()
