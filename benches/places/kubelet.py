"""Stands in for the nodes of a cluster: binds pods, runs each pod's command as a process, and reports its exit.

A pod has its own process and mount namespaces, so that its command is process 1 and finds its volumes where the manifest mounts
them. A PersistentVolumeClaim is a folder; an image is the PATH of this program. Only the features that sweepline's manifests
use are supported: one container, ConfigMaps, claims, emptyDirs, secrets as variables, the grace period.

    kubelet.py URL TOKEN FOLDER
"""
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

URL, TOKEN, BASE = sys.argv[1:]
NODE = "stand-in"
# All mounts of a pod lie below one folder of the host, at which each pod has its own tmpfs.
MOUNTS = "/sweepline"
unchecked = ssl.create_default_context()
unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
pods = {}


def call(method, path, body=None, kind="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"Content-Type": kind, "Authorization": f"Bearer {TOKEN}"}, method=method)
    with urllib.request.urlopen(request, context=unchecked, timeout=10) as response:
        return json.load(response)


def path_of(pod, end=""):
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}{end}"


def report(pod, status):
    call("PATCH", path_of(pod, "/status"), {"status": status}, "application/merge-patch+json")


def container(pod, state):
    own = pod["spec"]["containers"][0]
    base = {"name": own["name"], "image": own["image"], "imageID": "", "restartCount": 0, "ready": "running" in state}
    return [{**base, "state": state}]


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def variables(pod):
    values = {}
    for one in pod["spec"]["containers"][0].get("env", []):
        if "valueFrom" in one:
            import base64

            of = one["valueFrom"]["secretKeyRef"]
            secret = call("GET", f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{of['name']}")
            values[one["name"]] = base64.b64decode(secret["data"][of["key"]]).decode()
        else:
            values[one["name"]] = one.get("value", "")
    return values


def folders(pod):
    """Returns the folder of each volume on the host."""
    found, own = {}, os.path.join(BASE, "pods", pod["metadata"]["uid"])
    for volume in pod["spec"].get("volumes", []):
        name = volume["name"]
        if "persistentVolumeClaim" in volume:
            folder = os.path.join(BASE, "claims", volume["persistentVolumeClaim"]["claimName"])
        else:
            folder = os.path.join(own, name)
        os.makedirs(folder, exist_ok=True)
        if "configMap" in volume:
            namespace = pod["metadata"]["namespace"]
            data = call("GET", f"/api/v1/namespaces/{namespace}/configmaps/{volume['configMap']['name']}")["data"]
            for key, text in data.items():
                with open(os.path.join(folder, key), "w") as file:
                    file.write(text)
        found[name] = folder
    return found


SETUP = """set -e
mount --make-rprivate /
mount -t tmpfs none MOUNTS
while [ "$1" != -- ]; do mkdir -p "$2"; mount --bind "$1" "$2"; shift 2; done
shift
cd /
exec "$@"
""".replace("MOUNTS", MOUNTS)


def start(pod):
    own, places = pod["spec"]["containers"][0], folders(pod)
    mounts = []
    for mount in own.get("volumeMounts", []):
        if not mount["mountPath"].startswith(MOUNTS + "/"):
            raise ValueError(f"nothing is mounted at {mount['mountPath']} here")
        mounts += [places[mount["name"]], mount["mountPath"]]
    command = own.get("command", []) + own.get("args", [])
    log = open(os.path.join(BASE, "logs", pod["metadata"]["name"] + ".log"), "a")
    env = {"PATH": os.environ["PATH"], "HOME": "/", **variables(pod)}
    line = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", SETUP, "sh", *mounts, "--", *command]
    return subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def first_of(process):
    """Returns the process that is process 1 in the pod."""
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return int(file.read().split()[0])
    except (OSError, IndexError):
        return None


def stop(process, how):
    first = first_of(process)
    if first:
        try:
            os.kill(first, how)
        except ProcessLookupError:
            pass


def look():
    listed = call("GET", "/api/v1/pods")["items"]
    there = {pod["metadata"]["uid"] for pod in listed}
    for uid in [uid for uid in pods if uid not in there]:
        stop(pods.pop(uid)["process"], signal.SIGKILL)
    for pod in listed:
        serve(pod)


def serve(pod):
    meta, uid = pod["metadata"], pod["metadata"]["uid"]
    running = pods.get(uid)
    leaving = "deletionTimestamp" in meta
    if running is None:
        if leaving:
            gone(pod)
        elif pod["status"].get("phase") in ("Succeeded", "Failed"):
            pass
        elif "nodeName" not in pod["spec"]:
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
            call("POST", path_of(pod, "/binding"), body)
        elif pod["status"].get("phase") == "Running":
            # An earlier kubelet started this pod, and the pod's process ended with it.
            report(pod, {"phase": "Failed", "reason": "NodeLost"})
        else:
            began = now()
            pods[uid] = {"process": start(pod), "began": began, "told": False, "asked": None}
        return
    code = running["process"].poll()
    if code is None:
        if not running["told"]:
            state = container(pod, {"running": {"startedAt": running["began"]}})
            report(pod, {"phase": "Running", "startTime": running["began"], "containerStatuses": state})
            running["told"] = True
        if leaving and running["asked"] is None:
            running["asked"] = time.monotonic()
            stop(running["process"], signal.SIGTERM)
        elif leaving and time.monotonic() - running["asked"] > meta.get("deletionGracePeriodSeconds", 30):
            stop(running["process"], signal.SIGKILL)
        return
    if pod["status"].get("phase") not in ("Succeeded", "Failed"):
        ended = {"exitCode": code if code >= 0 else 128 - code, "startedAt": running["began"], "finishedAt": now()}
        state = container(pod, {"terminated": ended})
        report(pod, {"phase": "Failed" if code else "Succeeded", "containerStatuses": state})
        print(f"{meta['name']} ended with {ended['exitCode']}", flush=True)
    if leaving:
        gone(pod)


def gone(pod):
    call("DELETE", path_of(pod), {"gracePeriodSeconds": 0, "apiVersion": "v1", "kind": "DeleteOptions"})


def main():
    stopping = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopping.append(True))
    for folder in ("pods", "claims", "logs"):
        os.makedirs(os.path.join(BASE, folder), exist_ok=True)
    while not stopping:
        try:
            look()
        except (OSError, urllib.error.URLError, ValueError) as error:
            print(f"{now()} {error}", flush=True)
        time.sleep(0.2)
    for pod in pods.values():
        stop(pod["process"], signal.SIGKILL)
        pod["process"].wait()


main()
