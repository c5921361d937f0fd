"""An S3 server on loopback (moto), and workers that share a plan on it."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from lab import Lab, Missing, end, free_port, same, say, version, wait_for

URL = "s3://places/team"


class Moto:
    def __init__(self, program):
        self.program = program or shutil.which("moto_server")
        if not self.program or not os.path.exists(self.program):
            raise Missing("no moto_server here (pip install 'moto[server]' into a virtual environment, then --moto FOLDER/bin/moto_server)")
        self.base, self.port = tempfile.mkdtemp(prefix="places-moto-"), free_port()
        log = open(f"{self.base}/log", "a")
        self.server = subprocess.Popen([self.program, "-H", "127.0.0.1", "-p", str(self.port)], stdout=log, stderr=log)
        try:
            wait_for("moto", self.makes_bucket)
        except BaseException:
            self.close()
            raise
        self.env = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "places",
            "AWS_REGION": "us-east-1", "SWEEPLINE_CACHE": f"{self.base}/reader",
        }

    def makes_bucket(self):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/places", method="PUT")
            with urllib.request.urlopen(request, timeout=5) as response:
                return response.status == 200
        except OSError:
            return False

    def worker(self, lab, name):
        return lab.start("run", "plan.yaml", "--results", URL, "--progress", "plain", env={"SWEEPLINE_CACHE": f"{self.base}/{name}"})

    def copies(self, folder):
        found = []
        for worker in (one for one in os.listdir(self.base) if one != "log"):
            for copy in (os.path.join(self.base, worker, one) for one in os.listdir(f"{self.base}/{worker}")):
                path = os.path.join(copy, folder)
                found += os.listdir(path) if os.path.isdir(path) else []
        return [name for name in found if not name.startswith(".")]

    def close(self):
        end(self.server)
        shutil.rmtree(self.base, ignore_errors=True)

    def version(self):
        python = os.path.join(os.path.dirname(self.program), "python")
        return "moto " + version(python if os.path.exists(python) else "python3", "-c", "import moto; print(moto.__version__)")


def committed(lab):
    listed = json.loads(lab.run("list", "--results", URL, "--format", "json"))["runs"]
    return sorted(run["id"][:16] for run in listed)


def check(moto, lab, ids, interrupted):
    lab.run("verify", "--results", URL)
    same("run ids", committed(lab), ids)
    same("replaced results", moto.copies("superseded"), [])
    same("interrupted attempts", len(moto.copies("attempts")), interrupted)


def plain(ids, program):
    moto = Moto(program)
    try:
        lab = Lab(moto.env)
        codes = [one.wait() for one in [moto.worker(lab, "one"), moto.worker(lab, "two")]]
        same("exit codes", codes, [0, 0])
        check(moto, lab, ids, 0)
        say(f"object storage: {len(ids)} runs by two processes, the ids of the local ones; verify passes ({moto.version()})")
    finally:
        moto.close()


def faults(ids, program):
    moto = Moto(program)
    try:
        began = time.monotonic()
        lab = Lab(moto.env, measure="3s", first=(1, 2, 4))
        one, two = moto.worker(lab, "one"), moto.worker(lab, "two")
        wait_for("two runs in progress", lambda: len(moto.copies("attempts")) >= 2 and len(committed(lab)) >= 1)
        end(one, signal.SIGKILL)
        same("exit code", two.wait(), 0)
        check(moto, lab, ids, 1)
        say(f"object storage: after SIGKILL of one worker, the other took over its run when the claim expired ({time.monotonic() - began:.0f} s)")
    finally:
        moto.close()
