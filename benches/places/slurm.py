"""A Slurm cluster of two nodes on loopback, with a partition whose jobs preempt those of the other partition; optionally with
accounting."""
import getpass
import os
import shutil
import signal
import subprocess
import tempfile
import time

from lab import Lab, Missing, end, free_port, is_root, on_path, same, say, wait_for, wanted

CONF = """ClusterName=places
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool.%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd-%n.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
{accounting}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SwitchType=switch/none
MinJobAge={min_job_age}
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
PartitionName=low Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=0
PartitionName=high Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class Slurm:
    def __init__(self, accounting=False, min_job_age=600):
        # When at_once first saw each requeued job.
        self.seen = {}
        lacking = on_path("slurmctld", "slurmd", "munged", "sbatch")
        if lacking:
            raise Missing(f"no {' and no '.join(lacking)} here (Debian: slurm-wlm, munge)")
        if not is_root():
            raise Missing("slurmd starts jobs as their users, so it needs root")
        self.base = tempfile.mkdtemp(prefix="places-slurm-")
        self.daemons = {}
        host = os.uname().nodename.split(".")[0]
        lines = "AccountingStorageType=accounting_storage/none"
        self.database = None
        try:
            self.munge()
            if accounting:
                from accounting import Accounting

                self.database = Accounting(self.base)
                lines = (
                    "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=localhost\n"
                    f"AccountingStoragePort={self.database.port}\nAccountingStoragePass={self.base}/munge.socket"
                )
            for folder in ("state", "spool.n1", "spool.n2"):
                os.mkdir(f"{self.base}/{folder}")
            with open(f"{self.base}/slurm.conf", "w") as file:
                ports = [free_port() for _ in range(3)]
                values = {"base": self.base, "host": host, "ports": ports, "accounting": lines}
                file.write(CONF.format(min_job_age=min_job_age, **values))
            self.env = {"SLURM_CONF": f"{self.base}/slurm.conf"}
            if self.database:
                self.database.add_cluster(self.env)
            self.controller()
            for node in ("n1", "n2"):
                self.node(node)
            wait_for("two idle nodes", lambda: self.call("sinfo", "-h", "-p", "low", "-t", "idle", "-o", "%D").strip() == "2")
        except BaseException:
            self.close()
            raise

    def munge(self):
        with open(f"{self.base}/munge.key", "wb") as file:
            os.fchmod(file.fileno(), 0o400)
            file.write(os.urandom(1024))
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed"}
        files["log-file"] = "munge.log"
        options = [f"--{option}={self.base}/{name}" for option, name in files.items()]
        self.daemon("munge", "munged", "--foreground", "--force", *options)
        wait_for("munged", lambda: os.path.exists(f"{self.base}/munge.socket"))

    def daemon(self, name, *command):
        path = f"{os.environ['PATH']}:/usr/sbin"
        env = {**os.environ, "PATH": path, "SLURM_CONF": f"{self.base}/slurm.conf"}
        program = shutil.which(command[0], path=path)
        self.daemons[name] = subprocess.Popen(
            [program, *command[1:]], cwd=self.base, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def controller(self):
        self.daemon("controller", "slurmctld", "-D", "-f", f"{self.base}/slurm.conf")

    def node(self, name):
        self.daemon(name, "slurmd", "-D", "-f", f"{self.base}/slurm.conf", "-N", name)

    def call(self, *command):
        done = subprocess.run(command, env={**os.environ, **self.env}, capture_output=True, text=True)
        return done.stdout

    def lose(self, name):
        """Kills a node as a power failure would: its daemon and every process of its jobs."""
        jobs = self.call("squeue", "-h", "-t", "running", "-w", name, "-o", "%A").split()
        begins = [f"slurmstepd: [{job}." for job in jobs]
        own = os.getpid()
        for pid in (int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != own):
            if with_variable(pid, f"SLURMD_NODENAME={name}", self.env) or title(pid).startswith(tuple(begins) or "\0"):
                kill(pid)
        end(self.daemons[name], signal.SIGKILL)
        self.call("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=lost")

    def at_once(self):
        """Starts requeued jobs soon, which would otherwise wait two minutes.

        slurmd refuses to launch a job within a second or so of killing it ("already killed"), and the job then fails.
        """
        for line in self.call("squeue", "-h", "-t", "pending", "-o", "%A %T %r").splitlines():
            job, state, reason = line.split(" ", 2)
            # As `status` advises. A controller that was killed may try to launch a job that has already run.
            if "held" in reason.lower():
                self.call("scontrol", "release", job)
                return True
            # A job that is still COMPLETING would be restarted before it has ended.
            if (state, reason) == ("PENDING", "BeginTime"):
                if time.monotonic() < self.seen.setdefault(job, time.monotonic()) + 3:
                    continue
                del self.seen[job]
                self.call("scontrol", "update", f"JobId={job}", "StartTime=now")
                return True
        return False

    def close(self):
        if "controller" in self.daemons:
            self.call("scancel", "--full", "--signal=KILL", f"--user={getpass.getuser()}")
            self.call("scancel", f"--user={getpass.getuser()}")
        for pid in (int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()):
            if with_variable(pid, "SLURM_JOB_ID", self.env if hasattr(self, "env") else None):
                kill(pid)
        for name in [name for name in self.daemons if name != "munge"]:
            end(self.daemons[name])
        if self.database:
            self.database.close()
        if "munge" in self.daemons:
            end(self.daemons["munge"])
        shutil.rmtree(self.base, ignore_errors=True)


def with_variable(pid, variable, env):
    """Returns whether a process belongs to this Slurm and has an environment variable."""
    if not env:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            own = file.read().decode(errors="replace").split("\0")
    except OSError:
        return False
    return f"SLURM_CONF={env['SLURM_CONF']}" in own and any(one == variable or one.startswith(variable + "=") for one in own)


def title(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def plain(ids):
    slurm = Slurm()
    try:
        lab = Lab(slurm.env)
        lab.submit("slurm")
        lab.until("done")
        lab.whole(ids, 0)
        say(f"slurm: {len(ids)} runs, the ids of the local ones; verify passes ({slurm.call('sinfo', '--version').strip()})")
    finally:
        slurm.close()


LONG = {"measure": "3s", "first": (1, 2, 4)}


def faults(ids):
    slurm = Slurm()
    try:
        for fault in wanted(lost_node, restarted_controller, requeued, preempted, preempted_with_notice, killed_worker, out_of_time, out_of_patience):
            began = time.monotonic()
            lab = Lab(slurm.env, **({"resources": "time: 1m, "} if fault in (out_of_time, out_of_patience) else {}), **LONG)
            words = fault(slurm, lab, ids)
            say(f"slurm: {words} ({time.monotonic() - began:.0f} s)")
            wait_for("two idle nodes", lambda: idle(slurm))
    finally:
        slurm.close()
    for fault in wanted(forgotten):
        fault(ids)


def forgotten(ids):
    """Checks that jobs that the queue has forgotten still have their true final state, from real accounting."""
    slurm = Slurm(accounting=True, min_job_age=2)
    try:
        began = time.monotonic()
        lab = Lab(slurm.env, **LONG)
        begun(lab)
        job = next(one["job"] for one in lab.status() if one["name"] == "b")
        slurm.call("scancel", job)
        wait_for("an empty queue", lambda: not slurm.call("squeue", "-h", "-a", "-t", "all"), 180)
        told = {one["name"]: (one["state"], one["queue"]) for one in lab.status()}
        same("states", told, {"a: first": ("done", "COMPLETED"), "b": ("cancelled", "CANCELLED"), "a: second": ("done", "COMPLETED")})
        lab.submit("slurm")
        lab.until("done")
        lab.whole(ids, 1)
        say(f"slurm: sacct reports the final states of jobs that the queue has forgotten ({time.monotonic() - began:.0f} s)")
    finally:
        slurm.close()


def idle(slurm):
    return slurm.call("sinfo", "-h", "-p", "low", "-t", "idle", "-o", "%D").strip() == "2"


def begun(lab):
    """Submits the plan, and waits until each part has finished a run and started the next."""
    lab.submit("slurm")
    wait_for("a run of each part", lambda: len(lab.ids()) >= 2 and len(lab.measuring()) == 2)


def lost_node(slurm, lab, ids):
    begun(lab)
    slurm.lose("n1")
    slurm.node("n1")
    lab.until("done", meanwhile=slurm.at_once)
    lab.whole(ids, 1)
    return "a node lost: only its interrupted run was measured again"


def restarted_controller(slurm, lab, ids):
    begun(lab)
    # slurmctld writes its state every few seconds. One that is killed before it has written that the jobs run would
    # launch them a second time; slurmd refuses that, and Slurm then drains the nodes or holds the jobs.
    now = time.time()
    wait_for("a saved state", lambda: os.path.getmtime(f"{slurm.base}/state/job_state") > now)
    end(slurm.daemons["controller"], signal.SIGKILL)
    lab.run("status", "plan.yaml", codes=(2,))
    slurm.controller()
    wait_for("the controller", lambda: "UP" in slurm.call("scontrol", "ping"))
    lab.until("done", meanwhile=slurm.at_once)
    lab.whole(ids, 0)
    return "the controller killed and restarted: jobs continued, nothing was interrupted"


def requeued(slurm, lab, ids):
    begun(lab)
    job = next(one["job"] for one in lab.status() if one["state"] == "running")
    slurm.call("scontrol", "requeue", job)
    lab.until("done", meanwhile=slurm.at_once)
    lab.whole(ids, 1)
    return "scontrol requeue: the interrupted run was measured again"


def preempted_with_notice(slurm, lab, ids):
    slurm.call("scontrol", "update", "PartitionName=low", "GraceTime=20")
    try:
        return preempted(slurm, lab, ids) + ", after a signal and with time to stop"
    finally:
        slurm.call("scontrol", "update", "PartitionName=low", "GraceTime=0")


def preempted(slurm, lab, ids):
    begun(lab)
    other = slurm.call("sbatch", "--parsable", "-p", "high", "-N2", "--exclusive", "--mem=100M", "-o/dev/null", "--wrap=sleep 3").strip()
    wait_for("the job that preempts", lambda: "COMPLETED" in slurm.call("squeue", "-h", "-t", "all", "-j", other, "-o", "%T"))
    states = sorted(one["queue"] or "" for one in lab.status())
    lab.until("done", meanwhile=slurm.at_once)
    lab.whole(ids, 2)
    return f"both jobs preempted ({', '.join(states)}): requeued, each measured its interrupted run again"


def killed_worker(slurm, lab, ids):
    begun(lab)
    victim = next(one for one in lab.status() if one["state"] == "running")
    number = victim["job"].split("_")[1]
    own = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
           if with_variable(pid, f"SLURM_ARRAY_TASK_ID={number}", slurm.env) and "\0run\0" in title(pid)]
    same("processes of the job's run", len(own), 1)
    kill(own[0])
    wait_for("the failed job", lambda: any(one["state"] == "failed" for one in lab.status()))
    told = [one for one in lab.status() if one["state"] == "failed"]
    same("exit code", told[0]["exit_code"], 137)
    wait_for("the end of the others", lambda: not any(one["state"] in ("running", "queued", "waiting") for one in lab.status()))
    lab.submit("slurm")
    lab.until("done")
    lab.whole(ids, 1)
    return "a run killed by SIGKILL: status reports exit code 137, and submit resumes"


def out_of_time(slurm, lab, ids):
    slow(lab)
    lab.submit("slurm")
    lab.until("done", seconds=250, meanwhile=slurm.at_once)
    lab.whole(sorted(set(lab.ids())), None)
    return f"the time limit reached: stopped before it, requeued; {len(lab.names('attempts'))} runs measured again"


def slow(lab):
    """Makes the runs too long for a one-minute job."""
    path = os.path.join(lab.folder, "plan.yaml")
    with open(path) as file:
        text = file.read().replace("measure: 3s", "measure: 15s")
    with open(path, "w") as file:
        file.write(text)


def out_of_patience(slurm, lab, ids):
    begun(lab)
    # Stopped processes do not react to SIGTERM: SIGKILL ends them at the limit.
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if with_variable(pid, "SLURM_JOB_ID", slurm.env) and "\0run\0" in title(pid):
            os.kill(pid, signal.SIGSTOP)
    wait_for("the end of the jobs", lambda: any(one["state"] == "failed" for one in lab.status()), 120)
    wait_for("the end of the others", lambda: not any(one["state"] == "running" for one in lab.status()))
    states = sorted(one["queue"] or "" for one in lab.status())
    for state in lab.status():
        assert state["next"] is None or "submit" in state["next"], state
    slurm.call("scancel", "--user=root", "--state=PENDING")
    lab.submit("slurm")
    lab.until("done")
    lab.whole(ids, 2)
    return f"SIGTERM ignored until SIGKILL at the time limit ({', '.join(states)}): submit resumes"
