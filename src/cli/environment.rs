//! Checks, before a sweep, whether servers are still the ones on which the results were measured. Sends
//! only GET requests, and only to servers whose version was recorded with results.

use std::collections::HashMap;
use std::path::Path;
use std::thread;

use indexmap::IndexMap;

use super::workspace::Workspace;
use crate::cli::failure::Failure;
use crate::expand::{PlannedRun, RunSpec};
use crate::plan::{Endpoint, EnvironmentPolicy};
use crate::rows::{Changed, Fingerprint};
use crate::server::{Question, SelfDescription, look};
use crate::sweep::environment::{Expected, LaunchedSaid, changed, in_words, pin_broken};
use crate::sweep::resume::{Action, Decision, again};
use crate::sweep::{question, secrets_of, target};
use crate::units::text::counted;

/// Self-descriptions of servers before and after a sweep.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Self-descriptions of servers that sweepline does not launch, by endpoint; `None` for servers that
    /// did not respond.
    asked: IndexMap<String, Option<SelfDescription>>,
    /// Self-descriptions of servers that the sweep launched, which cannot be queried beforehand.
    launched: Vec<LaunchedSaid>,
}

/// Returns the committed runs whose results would be kept, each with its index and the recorded
/// self-description of its server. Runs without a recorded server version are skipped.
fn settled<'w>(
    workspace: &'w Workspace,
    decisions: &'w [Option<Decision>],
) -> impl Iterator<Item = (usize, &'w PlannedRun, &'w Fingerprint)> {
    let runs = workspace.expansion.runs.iter().zip(decisions).enumerate();
    runs.filter(|(_, (_, decision))| decision.as_ref().is_some_and(|decision| decision.action == Action::Cached))
        .filter_map(|(at, (run, _))| {
            let was = &**workspace.disk.said(&run.id)?.server.as_ref()?;
            was.version.is_some().then_some((at, run, was))
        })
}

impl Looks {
    /// Queries, in parallel, the servers of the settled runs whose endpoints `wanted` accepts; queries none
    /// if the plan sets `environment: ignore`. `folder` is the plan's folder.
    pub(super) fn take(
        workspace: &Workspace,
        decisions: &[Option<Decision>],
        folder: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> Looks {
        if workspace.plan().environment == EnvironmentPolicy::Ignore {
            return Looks::default();
        }
        let mut questions: IndexMap<&str, Option<Question>> = IndexMap::new();
        for (_, run, _) in settled(workspace, decisions) {
            let name = run.spec.endpoint.name.as_str();
            let endpoint = &workspace.plan().endpoints[name];
            if let Some(url) = endpoint.url.as_ref().filter(|_| endpoint.is_served_elsewhere() && wanted(name)) {
                questions.entry(name).or_insert_with(|| to_ask(workspace, (endpoint, url), &run.spec, folder));
            }
        }
        thread::scope(|scope| {
            let asking: Vec<_> = questions
                .into_iter()
                .map(|(name, question)| {
                    let declared = workspace.plan().endpoints[name].engine;
                    (name, scope.spawn(move || question.and_then(|question| look(&question, declared))))
                })
                .collect();
            // A thread that panicked has no result.
            let said = asking.into_iter().map(|(name, asked)| (name.to_owned(), asked.join().ok().flatten()));
            Looks { asked: said.collect(), launched: Vec::new() }
        })
    }

    /// Whether any server was queried.
    pub(super) fn any(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Adds the self-descriptions of launched servers if the plan requires runs to be measured again when
    /// their server has changed. If the plan pins its servers, the sweep itself has already refused a
    /// different server.
    pub(super) fn with_launched(self, workspace: &Workspace, launched: Vec<LaunchedSaid>) -> Looks {
        let counts = workspace.plan().environment == EnvironmentPolicy::Match;
        Looks { launched: if counts { launched } else { Vec::new() }, ..self }
    }

    /// Whether the server of an endpoint was queried but did not respond.
    pub(super) fn missed(&self, endpoint: &str) -> bool {
        self.asked.get(endpoint).is_some_and(Option::is_none)
    }

    /// Returns the settled runs whose server now reports something different, with the differences.
    fn changed<'w>(
        &self,
        workspace: &'w Workspace,
        decisions: &'w [Option<Decision>],
    ) -> Vec<(usize, &'w PlannedRun, Vec<Changed>)> {
        let (mut differs, mut unasked) = (Vec::new(), Vec::new());
        for (at, run, was) in settled(workspace, decisions) {
            match self.said(&run.spec) {
                Some(said) => differs.push((at, run, changed(run, was, said))),
                None => unasked.push((at, run, was)),
            }
        }
        differs.retain(|(_, _, changed)| !changed.is_empty());
        // The remaining runs have settings with which no server was started this time. If the same server
        // was started with another setting and has changed, the results of these runs are outdated too.
        let spread = unasked.into_iter().filter_map(|(at, run, was)| {
            let is_of_the_same = |(_, other, changed): &&(usize, &PlannedRun, Vec<Changed>)| {
                other.spec.endpoint.name == run.spec.endpoint.name && was.is_what_was(changed)
            };
            let (_, _, changed) = differs.iter().find(is_of_the_same)?;
            Some((at, run, changed.clone()))
        });
        let spread: Vec<_> = spread.collect();
        differs.extend(spread);
        differs.sort_by_key(|(at, ..)| *at);
        differs
    }

    /// Returns the self-description of a run's server; `None` if the server was not queried or did not
    /// respond.
    fn said(&self, spec: &RunSpec) -> Option<&SelfDescription> {
        let launched = self.launched.iter().rev().find(|launched| launched.is_of(spec)).map(|launched| &launched.said);
        launched.or_else(|| self.asked.get(&spec.endpoint.name)?.as_ref())
    }

    /// Marks runs to be measured again if their server now reports something different; fails if the plan
    /// pins the server. Returns a line for each affected endpoint.
    pub(super) fn apply(
        &self,
        workspace: &Workspace,
        decisions: &mut [Option<Decision>],
    ) -> Result<Vec<String>, Failure> {
        let differs = self.changed(workspace, decisions);
        if workspace.plan().environment == EnvironmentPolicy::Pin {
            let mut reasons: IndexMap<&str, String> = IndexMap::new();
            for (_, run, changed) in &differs {
                let name = run.spec.endpoint.name.as_str();
                reasons.entry(name).or_insert_with(|| pin_broken(name, &changed[0]));
            }
            let reasons: Vec<String> = reasons.into_values().collect();
            return if reasons.is_empty() { Ok(Vec::new()) } else { Err(Failure::Usage(reasons.join("\nerror: "))) };
        }
        let mut told: IndexMap<(&str, String), usize> = IndexMap::new();
        let mut redo = Vec::new();
        for (at, run, changed) in &differs {
            let reason = in_words(changed);
            *told.entry((run.spec.endpoint.name.as_str(), reason.clone())).or_default() += 1;
            redo.push((*at, reason));
        }
        let told = told.into_iter().map(|((endpoint, reason), runs)| {
            let are = if runs == 1 { "is" } else { "are" };
            format!("{endpoint}: {reason}; {} {are} measured again (environment: match)", counted(runs, "run"))
        });
        let told = told.collect();
        for (at, reason) in redo {
            let run = &workspace.expansion.runs[at];
            let retries = workspace.plan().endpoints.get(&run.spec.endpoint.name).map_or(0, Endpoint::retries);
            decisions[at] = Some(again(run, &workspace.disk, retries, reason));
        }
        Ok(told)
    }

    /// Returns a line for each queried server. `run` prints these lines if it has nothing to execute.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |(endpoint, said): (&String, &Option<SelfDescription>)| match said {
            None => format!("{endpoint}: its server did not respond, so its version was not compared"),
            Some(SelfDescription { version: Some(version), .. }) => {
                format!("{endpoint}: its server reports version {version}, the same as when it was measured")
            }
            Some(_) => format!("{endpoint}: its server no longer reports a version, so it was not compared"),
        };
        self.asked.iter().map(line).collect()
    }

    /// Returns the server versions that a sweep expects, and the fingerprints that it requires if the plan
    /// pins its servers.
    pub(super) fn expected(&self, workspace: &Workspace, decisions: &[Option<Decision>]) -> Expected {
        let version =
            |(name, said): (&String, &Option<SelfDescription>)| Some((name.clone(), said.as_ref()?.version.clone()?));
        let versions: HashMap<String, String> = self.asked.iter().filter_map(version).collect();
        let is_pinned = workspace.plan().environment == EnvironmentPolicy::Pin;
        let pinned = settled(workspace, decisions).filter(|_| is_pinned).map(|(at, _, was)| (at, was.clone()));
        Expected { pinned: pinned.collect(), versions }
    }
}

/// Returns the query to an endpoint's server; `None` if the query needs a secret that cannot be read.
fn to_ask(
    workspace: &Workspace,
    (endpoint, url): (&Endpoint, &str),
    spec: &RunSpec,
    folder: &Path,
) -> Option<Question> {
    let runs = workspace.expansion.runs.iter().map(|run| &run.spec);
    let secrets = secrets_of(runs.filter(|other| other.endpoint.name == spec.endpoint.name));
    let target = target(endpoint, url, &secrets, folder).ok()?;
    Some(question(&target, spec))
}
