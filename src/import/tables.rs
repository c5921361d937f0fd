//! Merges the jobs of several commands into one plan. If jobs differ only in their loads, the loads become
//! one axis. Scenarios, models and endpoints with the same loads become axes, too.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::clean;
use super::crossed::crossed;
use super::draft::{Draft, Field, Section, Sweep, unused};
use super::job::{Job, Lasts, Load, Searched, Setting};
use super::notes::Notes;
use super::said::Said;
use super::text::{list, name_of, scalar, seconds};
use crate::plan::model::content::built_in;
use crate::units::Decimal;

/// The shortest window that a plan takes over from a source, in seconds.
const BRIEFEST: f64 = 0.1;
/// The shortest window derived from a number of prompts, in seconds. A shorter window has too few requests
/// for tail percentiles, and leaves the server too little time to reach a steady state.
const SHORTEST: f64 = 60.0;
/// The window of a load without a rate, in seconds.
const CLOSED: u32 = 120;
/// The maximum window of a load without a rate whose number of prompts is given, in seconds.
const CLOSED_AT_MOST: u32 = 600;

/// One load of one command.
#[derive(Debug, Clone)]
struct Point {
    value: Decimal,
    origin: String,
    lasts: Lasts,
}

/// The draft of a sweep, which contains jobs that were merged.
#[derive(Debug, Clone)]
struct Group {
    endpoints: Vec<String>,
    models: Vec<String>,
    scenarios: Vec<String>,
    /// The axes `prompt_tokens` and `output_tokens`, if one scenario has several lengths.
    lengths: Vec<Field>,
    /// Settings of the server, each as a map in YAML; empty if none is varied.
    settings: Vec<String>,
    is_open: bool,
    /// Whether the load is determined by `arrivals` or by a trace.
    is_own: bool,
    /// Whether starts of the server are measured.
    is_start: bool,
    /// Whether the job of the group was listed together with others, so that scenarios and loads
    /// change together.
    is_listed: bool,
    /// The name that keeps the group separate from groups with other names.
    apart: Option<Said<String>>,
    /// The caps on requests in flight, for loads with a rate.
    caps: Vec<Said<u32>>,
    arrivals: Option<Said<String>>,
    points: Vec<Point>,
    /// The load that is searched for, instead of the points.
    search: Option<Searched>,
    repeats: Option<Field>,
    /// `fill`, `stabilize` and `drain`, if they differ from the plan's.
    phases: Vec<Field>,
    /// Other fields that belong next to the matrix.
    fields: Vec<Field>,
    /// The window of a load that is not an axis.
    lasts: Lasts,
    label: Option<String>,
}

/// Returns the plan with these jobs.
pub(crate) fn draft(mut jobs: Vec<Job>, name: Field, notes: &Notes) -> Draft {
    jobs.iter_mut().for_each(|job| clean::job(job, notes));
    let mut draft = Draft::default();
    draft.head.push(name);
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<String, Vec<usize>> = HashMap::new();
    jobs.iter().for_each(|job| once(&mut draft, job, notes));
    one_seed(&jobs, notes);
    let settings = Settings::new(&jobs);
    for (job, count) in counted(jobs) {
        let group = group(&mut draft, &job, count);
        let alike = known.entry(group.key(true)).or_default();
        // If the same load occurs twice with different numbers of prompts, it becomes two sweeps.
        let fits = |known: &&usize| {
            let there: &Group = &groups[**known];
            !there.points.iter().any(|point| group.points.iter().any(|other| other.value == point.value))
        };
        match alike.iter().find(fits).copied() {
            Some(number) => {
                let there = &mut groups[number];
                there.label = there.label.take().filter(|label| group.label.as_ref() == Some(label));
                there.points.extend(group.points);
            }
            None => {
                alike.push(groups.len());
                groups.push(group);
            }
        }
    }
    let mut groups = merged(groups.into_iter().flat_map(Group::by_window).collect());
    cross(&mut draft, &mut groups);
    if groups.iter().any(|group| !group.is_start) {
        phases(&mut draft);
    }
    let mut names = HashMap::new();
    draft.sweeps = joined(groups).into_iter().map(|groups| sweep(groups, &mut names, &settings, notes)).collect();
    draft
}

/// Merges equal jobs, and returns each job with the number of its occurrences, which become repeats.
fn counted(jobs: Vec<Job>) -> Vec<(Job, u32)> {
    let mut counted: IndexMap<String, (Job, u32)> = IndexMap::new();
    for job in jobs {
        let values =
            |fields: &[Field]| fields.iter().map(|field| format!("{}={};", field.key, field.value)).collect::<String>();
        let Job { endpoint, model, setting, scenario, load, search, lasts, repeats, phases, fields, .. } = &job;
        let load = (
            load.batch_size.as_ref().map(|said| said.value),
            load.qps.iter().map(|said| said.value.to_string()).collect::<Vec<_>>(),
            load.arrivals.as_ref().map(|said| said.value.clone()),
        );
        let tables = [&endpoint.1, &model.1, &scenario.1, phases, fields].map(|fields| values(fields)).join("|");
        let apart = job.apart.as_ref().map(|said| &said.value);
        let key = format!("{tables}|{setting:?}|{load:?}|{search:?}|{}|{repeats:?}|{apart:?}", said(lasts));
        counted.entry(key).or_insert_with(|| (job, 0)).1 += 1;
    }
    counted.into_values().collect()
}

/// Returns the window as text, without its origin.
fn said(lasts: &Lasts) -> String {
    match lasts {
        Lasts::Requests(said) => format!("{} requests", said.value),
        Lasts::Seconds(said) => format!("{} s", said.value),
        Lasts::First(time, count) => format!("{} s, {} requests", time.value, count.value),
        Lasts::Unsaid => String::new(),
    }
}

/// Returns the maximum time, in seconds; `None` if it is not specified.
fn time_of(lasts: &Lasts) -> Option<f64> {
    match lasts {
        Lasts::Seconds(said) | Lasts::First(said, _) => Some(said.value),
        Lasts::Requests(_) | Lasts::Unsaid => None,
    }
}

/// Returns the window for a source that measures until a time has passed or a number of requests has ended,
/// whichever comes first.
fn first(time: &Said<f64>, counts: &[&Said<u32>]) -> Field {
    let longest = time.value.max(BRIEFEST);
    let requests = together(counts.iter().map(|said| said.origin.as_str()));
    if longest <= SHORTEST {
        return Field::new(
            "measure",
            seconds(longest),
            format!("{}: the full time, regardless of {requests}", time.origin),
        );
    }
    let fewest = counts.iter().map(|said| said.value).min().unwrap_or(1).max(1);
    let how = if counts.iter().all(|said| said.value == fewest) { "" } else { " (the fewest)" };
    let value = format!("{{ for: {}, min_requests: {fewest}, at_most: {} }}", seconds(SHORTEST), seconds(longest));
    let origin =
        format!("{}, {requests}{how}: at least a minute, and then until one of the two is reached", time.origin);
    Field::new("measure", value, origin)
}

/// Adds the settings of a job that a plan contains only once. The value of the first command that specifies a
/// setting is used.
fn once(draft: &mut Draft, job: &Job, notes: &Notes) {
    for (key, field) in &job.once {
        let fields = match *key {
            "seed" | "notes" | "currency" => &mut draft.head,
            key => draft.section(key),
        };
        match fields.iter().find(|known| known.key == field.key) {
            Some(known) if known.value != field.value => {
                let why = format!("a plan has one {}: {} of an earlier command is used", field.key, known.value);
                notes.missing(&field.origin, &why, job.line);
            }
            Some(_) => {}
            None => fields.push(field.clone()),
        }
    }
}

/// Lists a seed that only some of the commands set, because a plan has one seed for all commands.
fn one_seed(jobs: &[Job], notes: &Notes) {
    let of = |job: &Job| job.once.iter().find(|(_, field)| field.key == "seed").map(|(_, field)| field.clone());
    let Some((seed, line)) = jobs.iter().find_map(|job| Some((of(job)?, job.line))) else { return };
    if jobs.iter().any(|job| of(job).is_none()) {
        notes.differs(&seed.origin, "a plan has one seed: that of the other commands is used here too", line);
    }
}

/// If loads with different numbers of requests share one window, lists that the window requires only the
/// smallest number.
fn fewest(group: &Group, notes: &Notes) {
    let counts: Vec<&Said<u32>> = group.points.iter().filter_map(|point| count_of(&point.lasts)).collect();
    let Some(fewest) = counts.iter().map(|said| said.value).min() else { return };
    let is_counted = group.measure().is_some_and(|field| field.value.contains("min_requests"));
    if is_counted && counts.iter().any(|said| said.value != fewest) {
        let why = format!(
            "a sweep has one window: here, at least {fewest} requests of each load, the smallest of these numbers"
        );
        notes.differs(&together(counts.iter().map(|said| said.origin.as_str())), &why, 0);
    }
}

/// Returns the number of requests; `None` if it is not specified.
fn count_of(lasts: &Lasts) -> Option<&Said<u32>> {
    match lasts {
        Lasts::Requests(said) | Lasts::First(_, said) => Some(said),
        Lasts::Seconds(_) | Lasts::Unsaid => None,
    }
}

/// Returns the group of a single job that occurs `count` times, and adds the job's endpoint, model and
/// scenario to the plan.
fn group(draft: &mut Draft, job: &Job, count: u32) -> Group {
    let Job { endpoint, model, setting, scenario, load, search, lasts, label, repeats, .. } = job;
    let Load { is_own, .. } = *load;
    let own = if built_in(&scenario.0).is_some() { format!("own-{}", scenario.0) } else { scenario.0.clone() };
    let is_open = is_own || !load.qps.is_empty();
    let point = |value: Decimal, origin: &str| Point { value, origin: origin.to_owned(), lasts: lasts.clone() };
    let points = match (&load.batch_size, is_open) {
        (Some(size), false) => vec![point(Decimal::from(size.value), &size.origin)],
        _ => load.qps.iter().map(|rate| point(rate.value, &rate.origin)).collect(),
    };
    let counted =
        (count > 1).then(|| Field::new("repeats", count.to_string(), format!("the same command {count} times")));
    Group {
        endpoints: vec![draft.endpoints.add(&endpoint.0, endpoint.1.clone())],
        models: vec![draft.models.add(&model.0, model.1.clone())],
        scenarios: match job.is_start() {
            true => Vec::new(),
            false => vec![draft.scenarios.add(&own, scenario.1.clone())],
        },
        lengths: Vec::new(),
        settings: setting.iter().map(Setting::value).collect(),
        is_open,
        is_own,
        is_start: job.is_start(),
        is_listed: job.is_listed,
        apart: job.apart.clone(),
        caps: load.batch_size.clone().filter(|_| is_open).into_iter().collect(),
        arrivals: load.arrivals.clone(),
        points,
        search: search.clone(),
        repeats: repeats.clone().or(counted),
        phases: job.phases.clone(),
        fields: job.fields.clone(),
        lasts: lasts.clone(),
        label: label.clone(),
    }
}

/// Adds the phases of the plan. Other tools do not let the load settle before they measure, so a comment
/// explains the phases.
fn phases(draft: &mut Draft) {
    let note = "The tool measures from its first request to its last response. Here load rises (fill) and settles \
                (stabilize) first, and is kept up while the measured requests end (drain). These are sweepline's \
                defaults: shorten them for a first look.";
    let known: Vec<Field> = std::mem::take(draft.section("phases"));
    draft.sections.retain(|section| section.key != "phases");
    let defaults = [("fill", "30s"), ("stabilize", "60s"), ("drain", "30s")]
        .map(|(key, value)| Field::new(key, value, "default of sweepline"));
    let is_said = |field: &Field| known.iter().any(|known| known.key == field.key);
    let notes = if defaults.iter().all(is_said) { Vec::new() } else { vec![note.to_owned()] };
    let mut fields = known.clone();
    fields.extend(defaults.into_iter().filter(|field| !is_said(field)));
    fields.sort_by_key(|field| {
        ["idle", "fill", "stabilize", "measure", "drain"].iter().position(|key| *key == field.key)
    });
    draft.sections.insert(0, Section { key: "phases", notes, fields, ..Section::default() });
}

/// Returns how long a number of prompts takes at a rate, in seconds, but at least a minute. If the source
/// sets a duration, returns that duration.
fn time(point: &Point) -> f64 {
    match &point.lasts {
        Lasts::Requests(said) => (f64::from(said.value) / point.value.to_f64()).ceil().max(SHORTEST),
        Lasts::Seconds(said) | Lasts::First(said, _) => said.value.max(BRIEFEST),
        Lasts::Unsaid => f64::from(CLOSED),
    }
}

impl Group {
    /// Returns the key that must be equal for groups to be merged, either with or without their loads.
    fn key(&self, without_loads: bool) -> String {
        let loads: Vec<String> = self
            .points
            .iter()
            .filter(|_| !without_loads)
            .map(|point| format!("{}×{}", point.value, said(&point.lasts)))
            .collect();
        let pairs =
            |fields: &[Field]| fields.iter().map(|field| format!("{}={};", field.key, field.value)).collect::<String>();
        let lasts = if self.points.is_empty() { said(&self.lasts) } else { String::new() };
        format!(
            "{:?}|{:?}|{:?}|{:?}|{}|{:?}|{:?}|{:?}|{:?}|{loads:?}|{}|{}|{}|{lasts}|{:?}",
            self.endpoints,
            self.models,
            self.scenarios,
            self.settings,
            self.is_open,
            self.caps.iter().map(|said| said.value).collect::<Vec<_>>(),
            self.arrivals.as_ref().map(|said| said.value.clone()),
            self.repeats.as_ref().map(|field| &field.value),
            self.search.as_ref().map(|search| (search.axis, &search.range)),
            self.is_own,
            pairs(&self.phases),
            pairs(&self.fields),
            self.apart.as_ref().map(|said| &said.value),
        )
    }

    /// Splits a group into one group per window, unless one window can express the windows of all loads.
    fn by_window(self) -> Vec<Group> {
        let first = self.points.first().map(|point| said(&point.lasts));
        let is_one = self.points.iter().all(|point| Some(said(&point.lasts)) == first);
        let times: Vec<Option<f64>> = self.points.iter().map(|point| time_of(&point.lasts)).collect();
        let is_counted = times.iter().all(|time| *time == times[0])
            && self.points.iter().all(|point| matches!(point.lasts, Lasts::Requests(_) | Lasts::First(..)));
        if is_one || self.search.is_some() || (!self.is_open && is_counted) {
            return vec![self];
        }
        let mut groups: IndexMap<String, Group> = IndexMap::new();
        for point in &self.points {
            let empty = || Group { points: Vec::new(), ..self.clone() };
            groups.entry(seconds(time(point))).or_insert_with(empty).points.push(point.clone());
        }
        groups.into_values().collect()
    }

    /// Returns the window; `None` if it is not specified.
    fn measure(&self) -> Option<Field> {
        let points = &self.points;
        let all: Vec<&Lasts> = points.iter().map(|point| &point.lasts).chain([&self.lasts]).collect();
        let counts: Vec<&Said<u32>> = all
            .iter()
            .filter_map(|lasts| match lasts {
                Lasts::Requests(said) | Lasts::First(_, said) => Some(said),
                _ => None,
            })
            .collect();
        if let Lasts::Seconds(said) = all[0] {
            return Some(Field::new("measure", seconds(said.value.max(BRIEFEST)), &said.origin));
        }
        if let Lasts::First(time, _) = all[0] {
            return Some(first(time, &counts));
        }
        (!counts.is_empty()).then(|| self.counted(&counts))
    }

    /// Returns a window that is long enough for these numbers of requests. For loads in requests in flight,
    /// it only has to be long enough for the smallest number.
    fn counted(&self, counts: &[&Said<u32>]) -> Field {
        let points = &self.points;
        let prompts = together(counts.iter().map(|said| said.origin.as_str()));
        let fewest = counts.iter().map(|said| said.value).min().unwrap_or(1);
        if !self.is_open || self.search.is_some() || points.is_empty() {
            let value = format!("{{ for: {CLOSED}s, min_requests: {fewest}, at_most: {CLOSED_AT_MOST}s }}");
            let how = if counts.iter().all(|said| said.value == fewest) { "" } else { " (the fewest)" };
            let origin = format!(
                "{prompts}{how}: 2 minutes, or longer until the window holds that number of requests, at most 10 \
                 minutes"
            );
            return Field::new("measure", value, origin);
        }
        let times: Vec<f64> = points.iter().map(time).collect();
        let longest = times.iter().copied().fold(SHORTEST, f64::max);
        if times.iter().all(|time| *time == longest) {
            let why = if longest > SHORTEST { "prompts / rate" } else { "prompts / rate, at least 60s" };
            return Field::new("measure", seconds(longest), format!("{prompts}: {why}"));
        }
        // The limit is 10 % longer than the time that the slowest rate needs, because arrivals vary.
        let at_most = seconds((longest * 1.1).ceil());
        let value = format!("{{ for: 60s, min_requests: {fewest}, at_most: {at_most} }}");
        Field::new("measure", value, format!("{prompts}: prompts / rate at each rate, at least 60s"))
    }

    /// Returns the phases of this sweep that override the plan's phases; `None` if there are none.
    fn own_phases(&self) -> Option<Field> {
        let all: Vec<Field> = self.phases.iter().cloned().chain(self.measure()).collect();
        let values: Vec<String> = all.iter().map(|field| format!("{}: {}", field.key, field.value)).collect();
        let origins: Vec<&str> = all.iter().map(|field| field.origin.as_str()).collect();
        (!all.is_empty()).then(|| Field::new("phases", format!("{{ {} }}", values.join(", ")), origins.join("; ")))
    }

    fn sweep(self, names: &mut HashMap<String, usize>, settings: &Settings) -> Sweep {
        let kind = match (self.is_open, self.caps.is_empty()) {
            _ if self.is_start => "starts",
            _ if self.is_own => "arrivals",
            (false, _) => "batches",
            (true, true) => "rates",
            (true, false) => "capped-rates",
        };
        let kind = if self.search.is_some() { "limit" } else { kind };
        let mut matrix =
            vec![Field::new("endpoint", list(&self.endpoints), ""), Field::new("model", list(&self.models), "")];
        if !self.is_start {
            matrix.push(Field::new("scenario", list(&self.scenarios), ""));
            matrix.extend(self.lengths.clone());
        }
        if !self.settings.is_empty() {
            matrix.push(Field::new(
                "server",
                format!("[{}]", self.settings.join(", ")),
                settings.origin(&self.settings),
            ));
        }
        if !self.caps.is_empty() {
            let said = together(self.caps.iter().map(|cap| cap.origin.as_str()));
            let origin = format!("{said}: requests beyond the cap wait, and their waiting time counts");
            let values: Vec<String> = self.caps.iter().map(|cap| cap.value.to_string()).collect();
            matrix.push(Field::new("batch_size", format!("[{}]", values.join(", ")), origin));
        }
        let values: Vec<String> = self.points.iter().map(|point| point.value.to_string()).collect();
        let origin = together(self.points.iter().map(|point| point.origin.as_str()));
        let axis = if self.is_open { "qps" } else { "batch_size" };
        if self.search.is_none() && !self.points.is_empty() {
            matrix.push(Field::new(axis, format!("[{}]", values.join(", ")), origin));
        }
        let mut fields: Vec<Field> =
            self.arrivals.iter().map(|said| Field::new("arrivals", said.value.as_str(), &said.origin)).collect();
        match &self.search {
            None => fields.extend(self.repeats.clone()),
            // A search repeats a load as often as its result requires.
            Some(Searched { axis, range, origin }) => {
                fields.push(Field::new("search", format!("{{ {axis}: {{ {range} }} }}"), origin));
            }
        }
        fields.extend(self.fields.clone());
        fields.extend((!self.is_start).then(|| self.own_phases()).flatten());
        let label = self.label.map(|label| Said { origin: format!("--label {label}"), value: label });
        let said = self.apart.or(label);
        let name = said.as_ref().map_or_else(|| kind.to_owned(), |said| name_of(&said.value, kind));
        let origin = said.map_or_else(String::new, |said| said.origin);
        Sweep { name: unused(names, &name), origin, matrix, fields }
    }
}

/// The server settings by value, each with its origin.
struct Settings(HashMap<String, Setting>);

impl Settings {
    fn new(jobs: &[Job]) -> Settings {
        let all = jobs.iter().filter_map(|job| job.setting.as_ref());
        Settings(all.map(|setting| (setting.value(), setting.clone())).collect())
    }

    /// Returns the words that specify these values, and the names of the values in the source.
    fn origin(&self, values: &[String]) -> String {
        let all: Vec<&Setting> = values.iter().filter_map(|value| self.0.get(value)).collect();
        let words = together(all.iter().map(|setting| setting.origin.as_str()));
        let names: Vec<&str> = all.iter().filter_map(|setting| setting.name.as_deref()).collect();
        if names.is_empty() { words } else { format!("{words}: {}", names.join(", ")) }
    }
}

/// Replaces scenarios that are all combinations of their lengths with one scenario and two axes.
fn cross(draft: &mut Draft, groups: &mut [Group]) {
    let of = |origins: &[String]| together(origins.iter().map(String::as_str));
    for group in groups.iter_mut().filter(|group| !group.is_listed && !group.is_start) {
        if let Some(one) = crossed(&draft.scenarios, &group.scenarios, of) {
            group.scenarios = vec![draft.scenarios.add(&one.name, one.fields)];
            group.lengths = one.axes;
        }
    }
    draft.scenarios.keep(|name| groups.iter().any(|group| group.scenarios.iter().any(|used| used == name)));
}

/// Merges groups with the same rates that differ only in their caps.
fn capped(groups: Vec<Group>) -> Vec<Group> {
    let mut kept: IndexMap<String, Group> = IndexMap::new();
    for (number, mut group) in groups.into_iter().enumerate() {
        let (caps, label) = (std::mem::take(&mut group.caps), group.label.clone());
        let is_axis = !caps.is_empty() && group.search.is_none() && !group.points.is_empty();
        let key = if is_axis { group.key(false) } else { format!("alone {number}") };
        let there = kept.entry(key).or_insert(group);
        there.label = there.label.take().filter(|own| label.as_ref() == Some(own));
        there.caps.extend(caps);
    }
    kept.into_values().collect()
}

/// Merges groups that differ only in their scenarios, models, server settings or endpoints.
fn merged(groups: Vec<Group>) -> Vec<Group> {
    let axes: [fn(&mut Group) -> &mut Vec<String>; 4] = [
        |group| &mut group.scenarios,
        |group| &mut group.models,
        |group| &mut group.settings,
        |group| &mut group.endpoints,
    ];
    axes.into_iter().fold(capped(groups), |groups, axis| {
        let mut kept: IndexMap<String, Group> = IndexMap::new();
        for mut group in groups {
            let (names, label) = (std::mem::take(axis(&mut group)), group.label.clone());
            let there = kept.entry(group.key(false)).or_insert(group);
            there.label = there.label.take().filter(|own| label.as_ref() == Some(own));
            let there = axis(there);
            there.extend(names.into_iter().filter(|name| !there.contains(name)).collect::<Vec<_>>());
        }
        kept.into_values().collect()
    })
}

/// Merges groups of one list that differ only in scenario and load. Each combination becomes a point of one
/// axis.
fn joined(groups: Vec<Group>) -> Vec<Vec<Group>> {
    let mut kept: IndexMap<String, Vec<Group>> = IndexMap::new();
    for (number, group) in groups.into_iter().enumerate() {
        let Group { scenarios, points, .. } = &group;
        let is_point = group.is_listed && group.search.is_none() && !points.is_empty() && scenarios.len() == 1;
        let key = match is_point {
            true => {
                let bare = Group { scenarios: Vec::new(), ..group.clone() };
                // For rates, the window follows from the number of requests.
                let lasts = if group.is_open { points.iter().map(|point| said(&point.lasts)).next() } else { None };
                format!("{}|{lasts:?}", bare.key(true))
            }
            false => format!("alone {number}"),
        };
        kept.entry(key).or_default().push(group);
    }
    kept.into_values().collect()
}

/// Returns the sweep of merged groups.
fn sweep(groups: Vec<Group>, names: &mut HashMap<String, usize>, settings: &Settings, notes: &Notes) -> Sweep {
    let mut groups = groups.into_iter();
    let mut first = groups.next().expect("groups are kept where there is one");
    let others: Vec<Group> = groups.collect();
    if others.is_empty() {
        fewest(&first, notes);
        return first.sweep(names, settings);
    }
    let axis = if first.is_open { "qps" } else { "batch_size" };
    let points = |group: &Group| -> Vec<String> {
        let one = |point: &Point| format!("{{ scenario: {}, {axis}: {} }}", scalar(&group.scenarios[0]), point.value);
        group.points.iter().map(one).collect()
    };
    let all: Vec<String> = std::iter::once(&first).chain(&others).flat_map(points).collect();
    for other in others {
        first.label = first.label.take().filter(|label| other.label.as_ref() == Some(label));
        first.points.extend(other.points);
    }
    fewest(&first, notes);
    let origin = together(first.points.iter().map(|point| point.origin.as_str()));
    let workload = Field::new("workload", format!("[{}]", all.join(", ")), format!("--bench-params: {origin}"));
    let mut sweep = first.sweep(names, settings);
    sweep.matrix.retain(|field| field.key != "scenario" && field.key != axis);
    sweep.matrix.push(workload);
    sweep
}

/// Joins origins: `--request-rate 1` and `--request-rate 2` become `--request-rate 1, 2`.
fn together<'a>(origins: impl Iterator<Item = &'a str>) -> String {
    let mut each: Vec<&str> = Vec::new();
    for origin in origins {
        if !each.contains(&origin) && each.len() < 64 {
            each.push(origin);
        }
    }
    let of_option =
        |text: &'a str| text.strip_prefix("default ").unwrap_or(text).split_once(' ').map_or("", |(option, _)| option);
    let begin = each.first().map_or("", |first| {
        let length = of_option(first).len();
        &first[..if first.starts_with("default --") { length + "default ".len() } else { length }]
    });
    let option = begin;
    let values: Option<Vec<&str>> = each.iter().map(|origin| origin.strip_prefix(option)?.strip_prefix(' ')).collect();
    match values {
        Some(values) if option.starts_with("--") || option.starts_with("default --") => {
            format!("{option} {}", values.join(", "))
        }
        _ => each.join("; "),
    }
}
