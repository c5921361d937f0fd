//! Tests a plan on a real Slurm cluster with two nodes: `submit`, `status`, `cancel`, and `run
//! --part`.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use lab::{Lab, wait_for};

/// Slurm with a controller and two nodes on loopback, for one test. It stops when the test ends.
struct Slurm {
    /// The folder with the configuration, state and logs of Slurm.
    folder: tempfile::TempDir,
    munge: Child,
    controller: Child,
    /// The nodes n1 and n2.
    nodes: Vec<Child>,
}

impl Slurm {
    /// Starts Slurm; `None`, with a note, if it is not installed or must not be started.
    fn start() -> Option<Slurm> {
        let is_there = |program: &str| Path::new("/usr/sbin").join(program).exists();
        if !["slurmctld", "slurmd", "munged"].into_iter().all(is_there) {
            eprintln!("skipped: Slurm is not installed (Debian: slurm-wlm, munge)");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: slurmd starts jobs as their users, so it needs root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let munge = munge(folder.path());
        configure(folder.path());
        let controller = daemon(folder.path(), "slurmctld", &[]);
        let nodes = ["n1", "n2"].map(|name| daemon(folder.path(), "slurmd", &["-N", name])).into();
        let slurm = Slurm { folder, munge, controller, nodes };
        wait_for("two idle nodes", || {
            (slurm.call("sinfo", &["-h", "-t", "idle", "-o", "%D"]).trim() == "2").then_some(())
        });
        Some(slurm)
    }

    /// Returns the output of one of Slurm's programs.
    fn call(&self, program: &str, args: &[&str]) -> String {
        let output = self.on(Command::new(program).args(args)).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns a command that finds this Slurm.
    fn on<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf"))
    }

    /// Runs sweepline with this Slurm; returns exit code, stdout and stderr.
    fn sweepline(&self, lab: &Lab, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.on(&mut lab.command(args)).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn status(&self, lab: &Lab) -> Value {
        let (_, stdout, stderr) = self.sweepline(lab, &["status", "plan.yaml", "--format", "json"]);
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
    }

    /// Waits until every element is in this state.
    fn wait_until(&self, lab: &Lab, state: &str) -> Value {
        let all = |status: &Value| elements(status).iter().all(|one| one["state"] == state);
        wait_for(state, || Some(self.status(lab)).filter(all))
    }

    /// Ends a node as a power failure would: kills its daemon and every process of its jobs.
    fn lose(&mut self, node: usize) {
        let mut lost = vec![self.nodes[node].id()];
        // Job steps detach from their daemon; each has the name of its node in its environment.
        let name = format!("SLURMD_NODENAME=n{}", node + 1);
        lost.extend(with_variable(&name));
        let jobs = self.call("squeue", &["-h", "-t", "running", "-w", &format!("n{}", node + 1), "-o", "%A"]);
        lost.extend(jobs.lines().flat_map(|job| titled(&format!("slurmstepd: [{}.", job.trim()))));
        lost.iter().filter_map(|pid| Pid::from_raw(*pid as i32)).for_each(end);
        self.nodes[node].wait().unwrap();
        self.call("scontrol", &["update", &format!("NodeName=n{}", node + 1), "State=DOWN", "Reason=lost"]);
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.call("scancel", &["--full", "--signal=KILL", "--user=root"]);
        self.call("scancel", &["--user=root"]);
        let steps: Vec<u32> = with_variable(&format!("SLURM_CONF={}/slurm.conf", self.folder.path().display()));
        steps.iter().filter_map(|pid| Pid::from_raw(*pid as i32)).for_each(end);
        for child in self.nodes.iter_mut().chain([&mut self.controller, &mut self.munge]) {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = child.wait();
        }
    }
}

/// Kills a process that may have ended already.
fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

/// Returns the ids of all processes, each with its folder in /proc.
fn processes() -> impl Iterator<Item = (u32, std::path::PathBuf)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

/// Returns the processes whose environment has this variable, except this one.
fn with_variable(variable: &str) -> Vec<u32> {
    let own = std::process::id();
    let has = |path: &Path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    processes().filter(|(pid, path)| *pid != own && has(path)).map(|(pid, _)| pid).collect()
}

/// Returns the processes whose title begins with this text.
fn titled(begin: &str) -> Vec<u32> {
    let is = |path: &Path| std::fs::read(path.join("cmdline")).unwrap_or_default().starts_with(begin.as_bytes());
    processes().filter(|(_, path)| is(path)).map(|(pid, _)| pid).collect()
}

/// Starts a separate munged: Slurm's daemons and commands authenticate each other with it.
fn munge(folder: &Path) -> Child {
    use std::os::unix::fs::OpenOptionsExt;
    let key = folder.join("munge.key");
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o400).open(&key).unwrap();
    std::io::Write::write_all(&mut file, &[7; 1024]).unwrap();
    let mut command = Command::new("/usr/sbin/munged");
    command.args(["--foreground", "--force"]).arg(format!("--key-file={}", key.display()));
    for (flag, name) in [("socket", "munge.socket"), ("pid-file", "munge.pid"), ("seed-file", "munge.seed")] {
        command.arg(format!("--{flag}={}", folder.join(name).display()));
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("munged", || folder.join("munge.socket").exists().then_some(()));
    child
}

fn daemon(folder: &Path, program: &str, args: &[&str]) -> Child {
    let mut command = Command::new(Path::new("/usr/sbin").join(program));
    command.arg("-D").arg("-f").arg(folder.join("slurm.conf")).args(args).current_dir(folder);
    // Jobs get the daemon's environment unless they have their own.
    command.env("SLURM_CONF", folder.join("slurm.conf"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn configure(folder: &Path) {
    let listeners: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let port = |at: usize| listeners[at].local_addr().unwrap().port();
    for name in ["state", "spool.n1", "spool.n2"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (base, host) = (folder.display(), host.split('.').next().unwrap_or_default().to_owned());
    let node = |name: &str, port: u16| {
        format!(
            "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 Boards=1 SocketsPerBoard=1 \
             CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN\n"
        )
    };
    let text = format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nAuthType=auth/munge\n\
         AuthInfo=socket={base}/munge.socket\nCredType=cred/munge\nCommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
         SlurmUser=root\nSlurmdUser=root\nStateSaveLocation={base}/state\nSlurmdSpoolDir={base}/spool.%n\n\
         SlurmctldPidFile={base}/slurmctld.pid\nSlurmdPidFile={base}/slurmd-%n.pid\nSlurmctldLogFile={base}/slurmctld.log\n\
         SlurmdLogFile={base}/slurmd-%n.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\nSelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\nSchedulerType=sched/backfill\n\
         SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0\nMpiDefault=none\nReturnToService=2\n\
         SlurmdParameters=config_overrides\nSwitchType=switch/none\nMinJobAge=600\nKillWait=5\n",
        port(0)
    );
    let partition = "PartitionName=test Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n";
    let text = text + &node("n1", port(1)) + &node("n2", port(2)) + partition;
    std::fs::write(folder.join("slurm.conf"), text).unwrap();
}

fn elements(status: &Value) -> &Vec<Value> {
    status["elements"].as_array().unwrap()
}

/// Returns a plan with two servers, each with its own node, and a sweep that comes after the sweeps
/// of both.
fn plan(measure: &str) -> String {
    format!(
        "sweepline: 1
name: two nodes
endpoints:
  a: {{ engine: mock, mock: {{ ttft: 1ms, itl: 1ms }}, resources: {{ cpus: 4, memory: 300MB }} }}
  b: {{ engine: mock, mock: {{ ttft: 1ms, itl: 1ms }}, resources: {{ cpus: 4, memory: 300MB }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ s: {{ base: B1, output_tokens: 4 }} }}
phases: {{ fill: 20ms, stabilize: 20ms, measure: {measure}, drain: 2s }}
validity: {{ client_late: {{ suspect: 99%, invalid: 100% }}, unsteady: {{ suspect: 99% }}, client_pause: off }}
sweeps:
  first: {{ matrix: {{ endpoint: [a, b], model: [m], scenario: [s], batch_size: [1, 2] }} }}
  second: {{ after: first, matrix: {{ endpoint: [a], model: [m], scenario: [s], batch_size: [4] }} }}
"
    )
    .replace(", client_pause: off", "")
}

fn ids(lab: &Lab) -> BTreeSet<String> {
    lab.runs().into_keys().collect()
}

fn a_plan_on_two_nodes_gives_the_runs_of_a_local_one() {
    let Some(slurm) = Slurm::start() else { return };
    let (local, lab) = (Lab::real_time(), Lab::real_time());
    let text = plan("300ms");
    local.write("plan.yaml", &text);
    lab.write("plan.yaml", &text);
    local.run(&["run", "plan.yaml"]);
    let (code, stdout, stderr) = slurm.sweepline(&lab, &["status", "plan.yaml"]);
    assert_eq!((code, stdout.matches("not submitted").count()), (Some(6), 3), "{stdout}{stderr}");
    let (code, stdout, stderr) = slurm.sweepline(&lab, &["submit", "plan.yaml", "--on", "slurm", "--dry-run"]);
    assert!(code == Some(0) && stdout.contains("#SBATCH --mem=287M") && !lab.results().exists(), "{stdout}{stderr}");

    let (code, stdout, stderr) = slurm.sweepline(&lab, &["submit", "plan.yaml", "--on", "slurm", "--format", "json"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    lab.follows("submit", &serde_json::from_str(&stdout).unwrap());
    // A held job does not start until it is released; `status` prints how to release it.
    let second = |status: &Value| elements(status)[2].clone();
    let job = second(&slurm.status(&lab))["job"].as_str().unwrap().to_owned();
    slurm.call("scontrol", &["hold", &job]);
    let held =
        second(&wait_for("a held job", || Some(slurm.status(&lab)).filter(|all| second(all)["next"].is_string())));
    let release = held["next"].as_str().unwrap().split_once(": scontrol ").expect("a command").1;
    assert_eq!((held["state"].as_str(), release), (Some("queued"), &*format!("release {job}")), "{held:#}");
    slurm.call("scontrol", &release.split(' ').collect::<Vec<_>>());
    let status = slurm.wait_until(&lab, "done");
    lab.follows("status", &status);
    let runs: Vec<(&Value, &Value)> = elements(&status).iter().map(|one| (&one["done"], &one["all"])).collect();
    assert_eq!(runs, [(&2.into(), &2.into()), (&2.into(), &2.into()), (&1.into(), &1.into())]);
    assert_eq!(ids(&lab), ids(&local), "a cluster changes no id");
    lab.ok(&["verify"]);
    let log = |element: usize| std::fs::read_to_string(elements(&status)[element]["log"].as_str().unwrap()).unwrap();
    let node = |log: String| log.lines().next().unwrap().split(" on ").nth(1).unwrap()[..2].to_owned();
    let nodes = BTreeSet::from([node(log(0)), node(log(1))]);
    assert_eq!(nodes.len(), 2, "each had its own node");
    let (code, stdout, _) = slurm.sweepline(&lab, &["submit", "plan.yaml", "--on", "slurm"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "nothing to submit: all runs are done\n"));
}

fn a_lost_node_a_new_controller_and_cancelled_jobs_cost_no_run() {
    let Some(mut slurm) = Slurm::start() else { return };
    let lab = Lab::real_time();
    lab.write("plan.yaml", &plan("1500ms"));
    slurm.sweepline(&lab, &["submit", "plan.yaml", "--on", "slurm"]);
    // Each of the two jobs has completed one run and is measuring the next one.
    let attempts = || std::fs::read_dir(lab.results().join("attempts")).map_or(0, Iterator::count);
    wait_for("two runs", || (lab.runs().len() == 2 && attempts() == 2).then_some(()));
    let (code, _, stderr) = slurm.sweepline(&lab, &["run", "plan.yaml"]);
    assert!(code == Some(5) && stderr.contains("in use by another sweepline"), "{stderr}");
    let (code, _, stderr) = slurm.sweepline(&lab, &["run", "plan.yaml", "--part", "a", "--only", "sweep == 'first'"]);
    assert!(code == Some(5) && stderr.contains("part `a` of results is in use"), "{stderr}");
    let (_, stdout, stderr) = slurm.sweepline(&lab, &["submit", "plan.yaml", "--on", "slurm"]);
    assert_eq!(stdout.matches("is in the queue already").count(), 3, "{stdout}{stderr}");

    slurm.lose(0);
    let _ = kill_process(Pid::from_child(&slurm.controller), Signal::TERM);
    slurm.controller.wait().unwrap();
    slurm.controller = daemon(slurm.folder.path(), "slurmctld", &[]);
    slurm.nodes[0] = daemon(slurm.folder.path(), "slurmd", &["-N", "n1"]);
    // A requeued job waits two minutes before it starts again.
    let at_once = || {
        let waiting = slurm.call("squeue", &["-h", "-t", "pending", "-o", "%A %r"]);
        let job = waiting.lines().find_map(|line| line.strip_suffix(" BeginTime"));
        job.map(|job| slurm.call("scontrol", &["update", &format!("JobId={job}"), "StartTime=now"]))
    };
    wait_for("the job of the lost node", at_once);
    slurm.wait_until(&lab, "done");
    lab.ok(&["verify"]);
    assert_eq!(lab.runs().len(), 5);
    let lost = std::fs::read_dir(lab.results().join("attempts")).unwrap().count();
    let replaced = std::fs::read_dir(lab.results().join("superseded")).unwrap().count();
    assert_eq!((lost, replaced), (1, 0), "only the run of the lost node was repeated");

    lab.write("plan.yaml", &plan("1600ms"));
    slurm.sweepline(&lab, &["submit", "plan.yaml", "--on", "slurm"]);
    wait_for("a sixth run", || (lab.runs().len() > 5).then_some(()));
    let (code, stdout, stderr) = slurm.sweepline(&lab, &["cancel", "plan.yaml", "--format", "json"]);
    assert_eq!(code, Some(0), "{stderr}");
    lab.follows("cancel", &serde_json::from_str(&stdout).unwrap());
    let has_ended = |status: &Value| elements(status).iter().all(|one| one["state"] != "running");
    let status = wait_for("the end of the jobs", || Some(slurm.status(&lab)).filter(has_ended));
    assert!(elements(&status).iter().any(|one| one["state"] == "cancelled"), "{status:#}");
    let before = ids(&lab);
    slurm.sweepline(&lab, &["submit", "plan.yaml", "--on", "slurm"]);
    slurm.wait_until(&lab, "done");
    lab.ok(&["verify"]);
    assert!(ids(&lab).is_superset(&before) && lab.runs().len() == 10, "committed runs stayed, and the rest was added");
    assert_eq!(std::fs::read_dir(lab.results().join("superseded")).unwrap().count(), 0, "nothing was measured twice");
    let (code, _, stderr) = slurm.sweepline(&lab, &["cancel", "other.yaml"]);
    assert!(code == Some(2) && stderr.contains("contains no submission of other.yaml"), "{stderr}");
    assert!(test_kill_process(Pid::from_child(&slurm.controller)).is_ok(), "the controller outlives all of it");
}

lab::measured_tests![
    a_plan_on_two_nodes_gives_the_runs_of_a_local_one,
    a_lost_node_a_new_controller_and_cancelled_jobs_cost_no_run
];
