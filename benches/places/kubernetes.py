"""A Kubernetes API server on loopback, with etcd, the Job and garbage-collection controllers, and a stand-in for its nodes.

Debian has no package of the server. Its source package `kubernetes` (1.20) builds with Debian's Go and etcd in 6 to 8 minutes of
CPU time, into a folder that is passed as `--kube`:

    apt-get install golang-1.19-go etcd-server dpkg-dev && apt-get source kubernetes golang-github-modern-go-reflect2
    cd kubernetes-*/ && cp -r ../golang-github-modern-go-reflect2-1.0.2/*.go vendor/github.com/modern-go/reflect2/
    GOFLAGS=-mod=vendor GOPATH=/tmp/go /usr/lib/go-1.19/bin/go build -o FOLDER ./cmd/kube-apiserver ./cmd/kube-controller-manager

1.20 supports neither `podFailurePolicy` (1.26) nor Indexed Jobs (1.21; sweepline's manifests use none). It ignores the
policy, and kubectl would reject the manifest because of it, so it is applied with `--validate=false`. With a later
server, `--kube` makes a better check.
"""
import glob
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

from lab import PROGRAM, Lab, Missing, end, free_port, is_root, on_path, same, say, version, wait_for, wanted

HERE = os.path.dirname(os.path.abspath(__file__))
MOUNTS = "/sweepline"
TOKEN = "places"
CONFIG = """apiVersion: v1
kind: Config
clusters: [{{ name: c, cluster: {{ server: "{url}", insecure-skip-tls-verify: true }} }}]
contexts: [{{ name: c, context: {{ cluster: c, user: u }} }}]
users: [{{ name: u, user: {{ token: {token} }} }}]
current-context: c
"""
KUBECTL = """#!/bin/sh
case $1 in
  apply) shift; exec {kubectl} --kubeconfig {config} apply --validate=false "$@" ;;
  *) exec {kubectl} --kubeconfig {config} "$@" ;;
esac
"""


class Kubernetes:
    def __init__(self, programs):
        servers = [os.path.join(programs or "", name) for name in ("kube-apiserver", "kube-controller-manager")]
        if not programs or not all(map(os.path.exists, servers)):
            raise Missing("no kube-apiserver here: see benches/places/kubernetes.py, then --kube FOLDER")
        lacking = on_path("etcd", "kubectl", "openssl", "unshare")
        if lacking:
            raise Missing(f"no {' and no '.join(lacking)} here")
        if not is_root():
            raise Missing("the stand-in for nodes mounts a pod's volumes, so it needs root")
        self.base, self.daemons = tempfile.mkdtemp(prefix="places-kube-"), {}
        self.servers = servers
        self.made = not os.path.exists(MOUNTS)
        os.makedirs(MOUNTS, exist_ok=True)
        self.ports = [free_port() for _ in range(5)]
        self.url = f"https://127.0.0.1:{self.ports[2]}"
        try:
            self.key()
            store, peer = (f"http://127.0.0.1:{port}" for port in self.ports[:2])
            self.etcd = store
            self.daemon(
                "etcd", "etcd", f"--data-dir={self.base}/etcd", f"--listen-client-urls={store}", f"--advertise-client-urls={store}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
            )
            self.api()
            self.config()
            self.daemon(
                "controllers", servers[1], f"--kubeconfig={self.base}/config", "--controllers=job,garbagecollector,podgc,namespace",
                "--leader-elect=false", f"--secure-port={self.ports[3]}", *(["--port=0"] if self.is_old() else []),
                "--bind-address=127.0.0.1", f"--cert-dir={self.base}/certs",
            )
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stand-in"}}
            subprocess.run([f"{self.base}/bin/kubectl", "apply", "-f", "-"], input=json.dumps(node), text=True, check=True, stdout=subprocess.DEVNULL)
            self.kubelet()
        except BaseException:
            self.close()
            raise

    def is_old(self):
        """Returns whether the programs still accept --port, which is needed to close the port without TLS."""
        return " v1.20." in version(self.servers[0], "--version")

    def key(self):
        with open(f"{self.base}/tokens", "w") as file:
            file.write(f"{TOKEN},places,places,system:masters\n")
        key = f"{self.base}/sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)

    def daemon(self, name, program, *args):
        log = open(f"{self.base}/{name}.log", "a")
        env = {**os.environ, "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"}
        self.daemons[name] = subprocess.Popen([program, *args], cwd=self.base, env=env, stdout=log, stderr=log)

    def api(self):
        self.daemon(
            "api", self.servers[0], f"--etcd-servers={self.etcd}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            f"--secure-port={self.ports[2]}", f"--cert-dir={self.base}/certs", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://places", f"--service-account-signing-key-file={self.base}/sa.key",
            f"--service-account-key-file={self.base}/sa.key", "--authorization-mode=AlwaysAllow", f"--token-auth-file={self.base}/tokens",
            "--disable-admission-plugins=ServiceAccount", "--allow-privileged=false",
        )
        wait_for("the API server", self.is_ready)

    def is_ready(self):
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
        try:
            with urllib.request.urlopen(request, context=unchecked, timeout=2) as response:
                return response.status == 200
        except OSError:
            return False

    def config(self):
        with open(f"{self.base}/config", "w") as file:
            file.write(CONFIG.format(url=self.url, token=TOKEN))
        os.mkdir(f"{self.base}/bin")
        with open(f"{self.base}/bin/kubectl", "w") as file:
            os.fchmod(file.fileno(), 0o755)
            file.write(KUBECTL.format(kubectl=shutil.which("kubectl"), config=f"{self.base}/config"))
        wait_for("the default namespace", lambda: self.get("namespace", "default"))

    def kubelet(self):
        self.daemon("kubelet", sys.executable, os.path.join(HERE, "kubelet.py"), self.url, TOKEN, self.base)

    def get(self, *what):
        done = subprocess.run([f"{self.base}/bin/kubectl", "get", *what, "-o", "json"], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def lab(self, **how):
        lab = Lab({"PATH": f"{self.base}/bin:{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"}, **how)
        lab.results = os.path.join(self.base, "claims", "results")
        shutil.rmtree(lab.results, ignore_errors=True)
        os.makedirs(lab.results)
        return lab

    def kill_pod(self, how):
        """Sends a signal to process 1 of a running pod."""
        stand_in = self.daemons["kubelet"].pid
        for holder in children(stand_in):
            for first in children(holder):
                os.kill(first, how)
                return
        raise AssertionError("no pod runs")

    def close(self):
        for name in ("kubelet", "controllers", "api", "etcd"):
            if name in self.daemons:
                end(self.daemons[name])
        if self.made:
            os.rmdir(MOUNTS)
        if os.environ.get("PLACES_KEEP"):
            print(f"kept: {self.base}")
        else:
            shutil.rmtree(self.base, ignore_errors=True)


def children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as file:
                found += map(int, file.read().split())
        except OSError:
            pass
    return found


def plain(ids, programs):
    kubernetes = Kubernetes(programs)
    try:
        lab = kubernetes.lab()
        lab.submit("kubernetes")
        lab.until("done", "--advance")
        lab.whole(ids, 0)
        jobs = kubernetes.get("jobs")["items"]
        same("Jobs that are complete", [one["status"].get("succeeded") for one in jobs], [1, 1, 1])
        server, etcd = version(kubernetes.servers[0], "--version"), version("etcd", "--version")
        say(f"kubernetes: {len(ids)} runs in {len(jobs)} Jobs, the ids of the local ones; verify passes ({server}, {etcd})")
    finally:
        kubernetes.close()


def faults(ids, programs):
    kubernetes = Kubernetes(programs)
    try:
        for fault in wanted(killed_pod, terminated_pod, deleted_pod, restarted_server, killed_node):
            began = time.monotonic()
            lab = kubernetes.lab(measure="3s", first=(1, 2, 4))
            words = fault(kubernetes, lab, ids)
            say(f"kubernetes: {words} ({time.monotonic() - began:.0f} s)")
            subprocess.run([f"{kubernetes.base}/bin/kubectl", "delete", "jobs,pods,configmaps", "--all"], stdout=subprocess.DEVNULL)
    finally:
        kubernetes.close()


def begun(lab):
    lab.submit("kubernetes")
    wait_for("a run of each part", lambda: len(lab.ids()) >= 2 and len(lab.measuring()) == 2)


def killed_pod(kubernetes, lab, ids):
    begun(lab)
    kubernetes.kill_pod(signal.SIGKILL)
    lab.until("done", "--advance")
    lab.whole(ids, 1)
    return "a pod killed by SIGKILL: its Job started another, which measured the interrupted run again"


def terminated_pod(kubernetes, lab, ids):
    begun(lab)
    kubernetes.kill_pod(signal.SIGTERM)
    lab.until("done", "--advance")
    lab.whole(ids, 1)
    return "SIGTERM to process 1 of a pod: it ended with 130, and its Job started another"


def deleted_pod(kubernetes, lab, ids):
    begun(lab)
    pod = next(one for one in kubernetes.get("pods")["items"] if one["status"]["phase"] == "Running")
    began = time.monotonic()
    subprocess.run([f"{kubernetes.base}/bin/kubectl", "delete", "pod", pod["metadata"]["name"]], stdout=subprocess.DEVNULL, check=True)
    took = time.monotonic() - began
    assert took < 60, f"a pod took {took:.0f} s to end"
    lab.until("done", "--advance")
    lab.whole(ids, 1)
    return f"a pod evicted: it stopped within {took:.0f} s, and its Job started another"


def restarted_server(kubernetes, lab, ids):
    begun(lab)
    end(kubernetes.daemons["api"], signal.SIGKILL)
    refused = lab.run("status", "plan.yaml", "--results", lab.results, "--advance", codes=(2, 6))
    # `status` queries the API server again while it restarts.
    poll = [lab.start("status", "plan.yaml", "--results", lab.results, "--advance") for _ in range(2)]
    kubernetes.api()
    [one.wait() for one in poll]
    lab.until("done", "--advance")
    lab.whole(ids, 0)
    same("Jobs", len(kubernetes.get("jobs")["items"]), 3)
    return f"the API server killed during status --advance{refused.strip()}: pods continued, nothing was interrupted"


def killed_node(kubernetes, lab, ids):
    begun(lab)
    subprocess.run([f"{kubernetes.base}/bin/kubectl", "delete", "node", "stand-in"], stdout=subprocess.DEVNULL, check=True)
    end(kubernetes.daemons["kubelet"], signal.SIGTERM)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stand-in"}}
    subprocess.run([f"{kubernetes.base}/bin/kubectl", "apply", "-f", "-"], input=json.dumps(node), text=True, check=True, stdout=subprocess.DEVNULL)
    kubernetes.kubelet()
    lab.until("done", "--advance", seconds=180)
    lab.whole(ids, 2)
    return "the node killed with both pods: other pods measured the interrupted runs again"
