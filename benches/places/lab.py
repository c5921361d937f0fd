"""The common parts of all places: the plan, the program, and the checks of results."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(os.environ.get("SWEEPLINE_BENCH_PROGRAM", "target/debug/sweepline"))
# Every server is launched on the machine that measures its runs, with the program found in PATH.
PLAN = """sweepline: 1
name: places
endpoints:
  a:
    launch: {{ command: [sweepline, mock, --port, "{{{{ port }}}}", --ttft, 1ms, --itl, 1ms], port: auto }}
    resources: &job
      {{ cpus: 4, memory: 300MB, {resources}kubernetes: {{ image: "localhost/sweepline:1", claim: results }} }}
  b:
    launch: {{ command: [sweepline, mock, --port, "{{{{ port }}}}", --ttft, 2ms, --itl, 1ms], port: auto }}
    resources: *job
models: {{ m: {{ id: tiny }} }}
scenarios: {{ s: {{ base: B1, output_tokens: 4 }} }}
phases: {{ fill: 20ms, stabilize: 20ms, measure: {measure}, drain: 2s }}
validity: {{ client_late: {{ suspect: 99%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}
sweeps:
  first: {{ matrix: {{ endpoint: [a, b], model: [m], scenario: [s], batch_size: [{first}] }} }}
  second: {{ after: first, matrix: {{ endpoint: [a], model: [m], scenario: [s], batch_size: [16] }} }}
"""


class Missing(Exception):
    """A place is not installed; the text lists its requirements."""


def wait_for(what, ask, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"no {what} within {seconds} s")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def same(what, one, other):
    if one != other:
        raise AssertionError(f"{what}: {one} is not {other}")


def end(process, how=signal.SIGTERM):
    """Ends a process that was started here."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Lab:
    """A folder with the plan and its results."""

    def __init__(self, env=None, measure="500ms", first=(1, 2), resources=""):
        self.folder = tempfile.mkdtemp(prefix="places-")
        self.results = os.path.join(self.folder, "results")
        self.env = {**os.environ, "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}", **(env or {})}
        with open(os.path.join(self.folder, "plan.yaml"), "w") as file:
            file.write(PLAN.format(measure=measure, first=", ".join(map(str, first)), resources=resources))

    def start(self, *args, env=None):
        log = open(os.path.join(self.folder, "log.txt"), "a")
        return subprocess.Popen([PROGRAM, *args], cwd=self.folder, env={**self.env, **(env or {})}, stdout=log, stderr=log)

    def run(self, *args, codes=(0,), env=None):
        done = subprocess.run(
            [PROGRAM, *args], cwd=self.folder, env={**self.env, **(env or {})}, capture_output=True, text=True
        )
        if done.returncode not in codes:
            raise AssertionError(f"sweepline {' '.join(args)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, on):
        return json.loads(self.run("submit", "plan.yaml", "--on", on, "--results", self.results, "--format", "json"))

    def status(self, *args, codes=(0, 6)):
        args = ("status", "plan.yaml", "--results", self.results, "--format", "json", *args)
        return json.loads(self.run(*args, codes=codes))["elements"]

    def until(self, state, *args, seconds=120, meanwhile=lambda: None):
        def ask():
            meanwhile()
            self.last = self.status(*args)
            return all(one["state"] == state for one in self.last)

        try:
            wait_for(state, ask, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}: {json.dumps(self.last, indent=1)}") from None
        return self.last

    def ids(self):
        return self.names("runs")

    def names(self, folder):
        """Returns the committed runs (`runs`), interrupted attempts (`attempts`) or replaced runs (`superseded`)."""
        try:
            return sorted(name for name in os.listdir(os.path.join(self.results, folder)) if not name.startswith("."))
        except FileNotFoundError:
            return []

    def measuring(self):
        """Returns the attempts that are sending requests."""
        files = ((name, os.path.join(self.results, "attempts", name, "journal.arrow")) for name in self.names("attempts"))
        return [name for name, file in files if os.path.exists(file)]

    def whole(self, ids, interrupted):
        """Asserts that nothing is lost and nothing was measured twice; `interrupted` runs were restarted."""
        self.run("verify", "--results", self.results)
        same("run ids", self.ids(), ids)
        same("replaced results", self.names("superseded"), [])
        if interrupted is not None:
            same("interrupted attempts", len(self.names("attempts")), interrupted)


# The faults to inject; all of them if empty.
ONLY = []


def wanted(*faults):
    return [fault for fault in faults if not ONLY or fault.__name__ in ONLY]


def say(*words):
    print(f"{time.strftime('%H:%M:%S')} ", *words, flush=True)


def version(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else "unknown"


def is_root():
    return os.geteuid() == 0


def on_path(*programs):
    import shutil

    return [program for program in programs if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")]


def fail(error):
    print(f"failed: {error}", file=sys.stderr)
    sys.exit(1)
