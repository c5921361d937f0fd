//! The environment of one test: its own folder, the built program, and access to the results.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::StatVfsMountFlags;
use serde_json::Value;
use sweepline::rows::{Record, Table, stream_events, stream_requests};

/// A time limit that is longer than any step takes, even on a shared machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The working folder of a test.
pub struct Lab {
    folder: tempfile::TempDir,
    time: Time,
}

/// The clock by which runs are measured, and how their verdicts treat this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    /// Runs on embedded mocks are simulated: they take milliseconds, and their figures are exact. Other runs
    /// are as with `Real`.
    Virtual,
    /// Runs take their time, and verdicts ignore what a busy machine does to them.
    Real,
    /// Runs take their time, and are judged as a user's runs are.
    Measured,
}

/// Whether tests open pages and workbooks in other programs and draw every sample, as the measured suite
/// demands with `SWEEPLINE_WHOLE=1`. The plain suite draws a part of them.
pub fn is_whole() -> bool {
    std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1")
}

/// Creates the folder of a test. Tests write, flush and remove a few hundred thousand small files, so the folder is in
/// memory where the system has a place for that; `TMPDIR` selects another place.
pub fn folder() -> tempfile::TempDir {
    const IN_MEMORY: &str = "/dev/shm";
    /// Least free space of that place, in bytes. The tests that run at once need less than a tenth of it.
    const ROOM: u64 = 4 << 30;
    let is_usable = |place: &rustix::fs::StatVfs| {
        let unusable = StatVfsMountFlags::NOEXEC | StatVfsMountFlags::RDONLY;
        place.f_bavail * place.f_frsize >= ROOM && !place.f_flag.intersects(unusable)
    };
    match rustix::fs::statvfs(IN_MEMORY) {
        Ok(place) if std::env::var_os("TMPDIR").is_none() && is_usable(&place) => tempfile::tempdir_in(IN_MEMORY),
        _ => tempfile::tempdir(),
    }
    .unwrap()
}

/// Returns the folder of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the built program, which is two folders above this test (`target/debug/deps/it-…`).
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("sweepline")
}

/// Returns the text with another path in place of the built program's own, which is quoted if it contains a
/// space.
pub fn with_program_at(path: &str, text: &str) -> String {
    let own = program().display().to_string();
    text.replace(&format!("'{own}'"), path).replace(&own, path)
}

/// Returns a `PATH` on which `sweepline` is the built program. Plans of tests start it by this name, so that
/// it does not matter where it was built.
pub fn path_with_program() -> std::ffi::OsString {
    let folder = program().parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap()
}

/// The exit code and output of a program.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    /// stderr without the time of day at the start of lines.
    pub stderr: String,
    /// stderr as written, with the times.
    pub log: String,
}

/// One committed run.
pub struct Run {
    pub dir: PathBuf,
    /// `run.json`.
    pub json: Value,
    pub records: Vec<Record>,
}

impl Default for Lab {
    fn default() -> Lab {
        Lab::new()
    }
}

impl Lab {
    /// Creates a folder in which runs on embedded mocks are simulated in virtual time, and the verdicts of
    /// other runs ignore what a busy machine does to them.
    pub fn new() -> Lab {
        Lab::with(Time::Virtual)
    }

    /// Creates a folder in which all runs take their time, and verdicts ignore what a busy machine does to
    /// them.
    pub fn real_time() -> Lab {
        Lab::with(Time::Real)
    }

    /// Creates a folder in which runs are measured and judged as a user's runs are. A busy machine makes
    /// them invalid.
    pub fn measured_time() -> Lab {
        Lab::with(Time::Measured)
    }

    fn with(time: Time) -> Lab {
        Lab { folder: folder(), time }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the command for the program in this folder. Its environment contains only what the program
    /// needs and what the test adds.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        // The program prints this name in the commands that it suggests.
        command.arg0("sweepline");
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        command.env("NO_COLOR", "1").env("PATH", path_with_program());
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(name);
        }
        self.set_time(&mut command);
        command
    }

    /// Sets the clock of the runs that a command, or its children, will start.
    pub fn set_time(&self, command: &mut Command) {
        match self.time {
            Time::Virtual => command.env("SWEEPLINE_VIRTUAL_TIME", "1").env("SWEEPLINE_ASSUME_QUIET", "1"),
            Time::Real => command.env("SWEEPLINE_ASSUME_QUIET", "1"),
            Time::Measured => command,
        };
    }

    /// Runs the program until it ends.
    pub fn run(&self, args: &[&str]) -> Ended {
        Ended::from(self.command(args).output().unwrap())
    }

    /// Runs the program and asserts that it succeeds.
    pub fn ok(&self, args: &[&str]) -> Ended {
        let ended = self.run(args);
        assert_eq!(ended.code, Some(0), "sweepline {args:?}\n{}{}", ended.stdout, ended.stderr);
        ended
    }

    /// Asserts that a command's JSON output follows its schema: every key is described, and all required
    /// keys are present.
    pub fn follows(&self, what: &str, answer: &Value) {
        let mut schema = self.ok(&["schema", what]).json();
        strict(&mut schema);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(answer).map(|error| format!("{}: {error}", error.instance_path)).collect();
        assert!(errors.is_empty(), "{what}: {errors:#?}");
    }

    /// Starts the program, which is killed when the guard is dropped.
    pub fn start(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args))
    }

    /// Returns the results folder.
    pub fn results(&self) -> PathBuf {
        self.path().join("results")
    }

    /// Returns the committed runs, by folder name.
    pub fn runs(&self) -> BTreeMap<String, Run> {
        let Ok(folders) = std::fs::read_dir(self.results().join("runs")) else { return BTreeMap::new() };
        folders
            .map(|entry| {
                let dir = entry.unwrap().path();
                let json = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
                let rows = stream_requests(&dir.join(Table::Requests.file())).unwrap().map(Result::unwrap);
                let mut events = stream_events(&dir.join(Table::Events.file())).unwrap().map(Result::unwrap);
                let records = rows.map(|row| {
                    let event = events.next().filter(|event| event.request == row.request).unwrap();
                    Record { row, gaps_ns: event.gaps_ns }
                });
                let records = records.collect();
                assert!(events.next().is_none());
                (dir.file_name().unwrap().to_str().unwrap().to_owned(), Run { dir, json, records })
            })
            .collect()
    }

    /// Returns the only committed run.
    pub fn only_run(&self) -> Run {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "one run was expected: {:?}", runs.keys());
        runs.pop_first().unwrap().1
    }
}

/// Makes the schema reject keys that it does not describe.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            entries.values_mut().for_each(strict);
            if entries.contains_key("properties") && !entries.contains_key("additionalProperties") {
                entries.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(strict),
        _ => {}
    }
}

impl Run {
    /// Replaces the record of the run with `json`, as an earlier version of sweepline would have written
    /// it: without a digest, and without an entry in the inventory.
    pub fn put_old_record(&self, mut json: Value) {
        json.as_object_mut().unwrap().shift_remove("sha256");
        std::fs::write(self.dir.join("run.json"), serde_json::to_string_pretty(&json).unwrap() + "\n").unwrap();
        let (results, id) = (self.dir.ancestors().nth(2).unwrap(), self.dir.file_name().unwrap());
        let _ = std::fs::remove_file(results.join("inventory").join(id).with_extension("json"));
    }

    /// Returns the boundary of a phase, in nanoseconds since the start of the run: `measure_start_ns`, …
    pub fn window(&self, name: &str) -> u64 {
        self.json["facts"]["windows"][name].as_u64().unwrap()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let log = text(output.stderr);
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: without_times(&log), log }
    }
}

/// Returns a line without the time of day at its start, if it has one: `14:43:05 [1/4] …`.
pub fn without_time(line: &str) -> &str {
    let is_time = |time: &str| {
        let fits = |(byte, form): (u8, u8)| if form == b':' { byte == b':' } else { byte.is_ascii_digit() };
        time.bytes().zip(*b"00:00:00").all(fits)
    };
    match line.split_at_checked(8) {
        Some((time, rest)) if is_time(time) => rest.strip_prefix(' ').unwrap_or(line),
        _ => line,
    }
}

fn without_times(text: &str) -> String {
    text.split_inclusive('\n').map(without_time).collect()
}

impl Ended {
    /// Parses the program's stdout as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

/// A running program.
pub struct Running {
    child: Child,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        Running { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal);
    }

    /// Whether the program has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the program ends.
    pub fn end(mut self) -> Ended {
        let mut take = || -> Option<Output> {
            let (stdout, stderr) = (self.child.stdout.take()?, self.child.stderr.take()?);
            let read = |mut from: Box<dyn std::io::Read + Send>| {
                std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    from.read_to_end(&mut bytes).map(|_| bytes)
                })
            };
            let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
            let status = self.child.wait().unwrap();
            Some(Output { status, stdout: stdout.join().unwrap().unwrap(), stderr: stderr.join().unwrap().unwrap() })
        };
        Ended::from(take().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `sweepline mock` with a log, for plans that name a `url`.
pub struct Server {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Server {
    pub fn start(lab: &Lab, flags: &[&str]) -> Server {
        let log = lab.path().join("server.jsonl");
        let mut command = lab.command(&["mock", "--ttft", "1ms", "--itl", "1ms", "--log"]);
        let mut child = command.arg(&log).args(flags).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("not ready: {line:?}"));
        Server { child, address: address.to_owned(), log }
    }

    /// Returns the base address of the mock's API.
    pub fn url(&self) -> String {
        format!("{}/v1", self.address)
    }

    /// Returns the number of requests that the mock has received on any path, not counting those sent by
    /// this method. The log is written in the order in which requests end, with a short delay. The line of
    /// our own request shows that everything before it has been written.
    pub fn requests(&self) -> usize {
        const OURS: &str = "\"request_id\":\"the tests' own\"";
        let read = || std::fs::read_to_string(&self.log).unwrap();
        let ours = |text: &str| text.lines().filter(|line| line.contains(OURS)).count();
        let before = ours(&read());
        let mut stream = std::net::TcpStream::connect(self.address.trim_start_matches("http://")).unwrap();
        let request =
            "GET /v1/models HTTP/1.1\r\nHost: mock\r\nx-request-id: the tests' own\r\nConnection: close\r\n\r\n";
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        std::io::Read::read_to_end(&mut stream, &mut Vec::new()).unwrap();
        let text = wait_for("the log", || Some(read()).filter(|text| ours(text) > before));
        // The first line is not counted.
        text.lines().count() - 1 - ours(&text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until there is a result, for at most [`DEADLINE`].
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the peak resident memory of a process since its program was started, in bytes; `None` if the
/// process has ended. `ru_maxrss` is not used: it counts the memory of the process that spawned it, and
/// this one grows with each backtrace that is printed.
pub fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())?;
    Some(kib * 1024)
}

/// Waits for a child and returns its status and its peak memory in bytes, as last read before its end.
pub fn wait_with_peak(child: &mut Child) -> (ExitStatus, u64) {
    let mut peak = 0;
    loop {
        peak = peak_memory(child.id()).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().unwrap() {
            return (status, peak);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
