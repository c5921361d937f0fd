//! What several commands measure → one plan: loads that differ in nothing else are one axis, and so are scenarios, models and
//! endpoints that share their loads.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::arguments::Said;
use super::job::{Job, Searched, Setting};
use crate::import::draft::{Draft, Field, Listed, Section, Sweep, unused};
use crate::import::text::{list, name_of, seconds};
use crate::plan::model::content::built_in;
use crate::units::Decimal;

/// The shortest window that is made of a number of prompts, in seconds: a tail needs requests, and a server time.
const SHORTEST: f64 = 60.0;
/// The window of a load without a rate, in seconds.
const CLOSED: u32 = 120;
/// The longest that such a window gets, in seconds.
const CLOSED_AT_MOST: u32 = 600;

/// The heaviest load of a search.
const SEARCHED_TO: u32 = 1000;

/// One load of one command.
#[derive(Debug, Clone)]
struct Point {
    value: Decimal,
    origin: String,
    prompts: Said<u32>,
}

/// A sweep on its way.
#[derive(Debug, Clone)]
struct Group {
    endpoints: Vec<String>,
    models: Vec<String>,
    scenarios: Vec<String>,
    /// Settings of the server, each a map in YAML; empty where none is varied.
    settings: Vec<String>,
    is_open: bool,
    cap: Option<Said<u32>>,
    arrivals: Option<Said<String>>,
    points: Vec<Point>,
    /// Which load is searched, in the place of the points.
    search: Option<Searched>,
    repeats: Option<Field>,
    label: Option<String>,
}

/// The plan of these commands.
pub(crate) fn draft(jobs: Vec<Job>, name: Field, listed: Vec<Listed>) -> Draft {
    let mut draft = Draft { listed, ..Draft::default() };
    draft.head.push(name);
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<String, Vec<usize>> = HashMap::new();
    jobs.iter().for_each(|job| once(&mut draft, job));
    let settings = Settings::new(&jobs);
    for (job, count) in counted(jobs) {
        let group = group(&mut draft, &job, count);
        let alike = known.entry(group.key(true)).or_default();
        // The same load twice, with other numbers of prompts: two sweeps.
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
    draft.listed.sort_by_key(|one| one.lines.first().copied());
    let groups = merged(groups.into_iter().flat_map(Group::by_window).collect());
    phases(&mut draft);
    let mut names = HashMap::new();
    draft.sweeps = groups.into_iter().map(|group| group.sweep(&mut names, &settings)).collect();
    draft
}

/// Commands that say the same count as repeats.
fn counted(jobs: Vec<Job>) -> Vec<(Job, u32)> {
    let mut counted: IndexMap<String, (Job, u32)> = IndexMap::new();
    for job in jobs {
        let values =
            |fields: &[Field]| fields.iter().map(|field| format!("{}={};", field.key, field.value)).collect::<String>();
        let Job { endpoint, model, setting, scenario, load, search, prompts, repeats, .. } = &job;
        let load = (
            load.batch_size.as_ref().map(|said| said.value),
            load.qps.iter().map(|said| said.value.to_string()).collect::<Vec<_>>(),
            load.arrivals.as_ref().map(|said| said.value.clone()),
        );
        let key = format!(
            "{}|{setting:?}|{}|{}|{load:?}|{search:?}|{}|{repeats:?}",
            values(&endpoint.1),
            values(&model.1),
            values(&scenario.1),
            prompts.value
        );
        counted.entry(key).or_insert_with(|| (job, 0)).1 += 1;
    }
    counted.into_values().collect()
}

/// What a plan says once: the first command decides.
fn once(draft: &mut Draft, job: &Job) {
    for (key, field) in &job.once {
        let fields = match *key {
            "seed" | "notes" => &mut draft.head,
            key => {
                let number = draft.sections.iter().position(|section| section.key == key).unwrap_or_else(|| {
                    draft.sections.push(Section { key, notes: Vec::new(), fields: Vec::new() });
                    draft.sections.len() - 1
                });
                &mut draft.sections[number].fields
            }
        };
        match fields.iter().find(|known| known.key == field.key) {
            Some(known) if known.value != field.value => {
                let why = format!("a plan has one {}: {} of an earlier command is taken", field.key, known.value);
                draft.listed.push(Listed::missing(&field.origin, why, job.line));
            }
            Some(_) => {}
            None => fields.push(field.clone()),
        }
    }
}

/// The sweep that one command alone would be.
fn group(draft: &mut Draft, job: &Job, count: u32) -> Group {
    let Job { endpoint, model, setting, scenario, load, search, prompts, label, repeats, .. } = job;
    let own = if built_in(&scenario.0).is_some() { format!("own-{}", scenario.0) } else { scenario.0.clone() };
    let is_open = !load.qps.is_empty();
    let point = |value: Decimal, origin: &str| Point { value, origin: origin.to_owned(), prompts: prompts.clone() };
    let points = match (&load.batch_size, is_open) {
        (Some(size), false) => vec![point(Decimal::from(size.value), &size.origin)],
        _ => load.qps.iter().map(|rate| point(rate.value, &rate.origin)).collect(),
    };
    let counted =
        (count > 1).then(|| Field::new("repeats", count.to_string(), format!("the same command {count} times")));
    Group {
        endpoints: vec![draft.endpoints.add(&endpoint.0, endpoint.1.clone())],
        models: vec![draft.models.add(&model.0, model.1.clone())],
        scenarios: vec![draft.scenarios.add(&own, scenario.1.clone())],
        settings: setting.iter().map(Setting::value).collect(),
        is_open,
        cap: load.batch_size.clone().filter(|_| is_open),
        arrivals: load.arrivals.clone(),
        points,
        search: search.clone(),
        repeats: repeats.clone().or(counted),
        label: label.clone(),
    }
}

/// Load that no tool of the field settles before it measures.
fn phases(draft: &mut Draft) {
    let note = "The tool measures from its first request to its last answer. Here load rises (fill) and settles (stabilize) \
                first, and is kept up while the measured requests end (drain). These are sweepline's defaults: shorten them \
                for a first look.";
    let fields = [("fill", "30s"), ("stabilize", "60s"), ("drain", "30s")];
    let fields = fields.map(|(key, value)| Field::new(key, value, "default of sweepline")).to_vec();
    draft.sections.insert(0, Section { key: "phases", notes: vec![note.to_owned()], fields });
}

/// Seconds that a number of prompts takes at a rate, at least a minute.
fn time(point: &Point) -> f64 {
    (f64::from(point.prompts.value) / point.value.to_f64()).ceil().max(SHORTEST)
}

impl Group {
    /// All that must be equal where loads become one axis; without the loads, or with them.
    fn key(&self, without_loads: bool) -> String {
        let loads: Vec<String> = self
            .points
            .iter()
            .filter(|_| !without_loads)
            .map(|point| format!("{}×{}", point.value, point.prompts.value))
            .collect();
        format!(
            "{:?}|{:?}|{:?}|{:?}|{}|{:?}|{:?}|{:?}|{:?}|{loads:?}",
            self.endpoints,
            self.models,
            self.scenarios,
            self.settings,
            self.is_open,
            self.cap.as_ref().map(|said| said.value),
            self.arrivals.as_ref().map(|said| said.value.clone()),
            self.repeats.as_ref().map(|field| &field.value),
            self.search.as_ref().map(|search| search.axis),
        )
    }

    /// Rates whose windows cannot be said together become sweeps of their own.
    fn by_window(self) -> Vec<Group> {
        let prompts = self.points.first().map(|point| point.prompts.value);
        if !self.is_open
            || self.search.is_some()
            || self.points.iter().all(|point| Some(point.prompts.value) == prompts)
        {
            return vec![self];
        }
        let mut groups: IndexMap<String, Group> = IndexMap::new();
        for point in &self.points {
            let empty = || Group { points: Vec::new(), ..self.clone() };
            groups.entry(seconds(time(point))).or_insert_with(empty).points.push(point.clone());
        }
        groups.into_values().collect()
    }

    fn measure(&self) -> Field {
        let points = &self.points;
        let prompts = together(points.iter().map(|point| point.prompts.origin.as_str()));
        let fewest = points.iter().map(|point| point.prompts.value).min().unwrap_or(1);
        if !self.is_open || self.search.is_some() {
            let value = format!("{{ for: {CLOSED}s, min_requests: {fewest}, at_most: {CLOSED_AT_MOST}s }}");
            let how = if points.iter().all(|point| point.prompts.value == fewest) { "" } else { " (the fewest)" };
            let origin = format!("{prompts}{how}: 2 minutes, or until it holds as many, at most 10");
            return Field::new("measure", value, origin);
        }
        let times: Vec<f64> = points.iter().map(time).collect();
        let longest = times.iter().copied().fold(SHORTEST, f64::max);
        if times.iter().all(|time| *time == longest) {
            let why = if longest > SHORTEST { "prompts / rate" } else { "prompts / rate, at least 60s" };
            return Field::new("measure", seconds(longest), format!("{prompts}: {why}"));
        }
        // A tenth more than the slowest rate needs, since arrivals scatter.
        let at_most = seconds((longest * 1.1).ceil());
        let value = format!("{{ for: 60s, min_requests: {fewest}, at_most: {at_most} }}");
        Field::new("measure", value, format!("{prompts}: prompts / rate at each rate, at least 60s"))
    }

    fn sweep(self, names: &mut HashMap<String, usize>, settings: &Settings) -> Sweep {
        let kind = match (self.is_open, &self.cap) {
            (false, _) => "batches",
            (true, None) => "rates",
            (true, Some(_)) => "capped-rates",
        };
        let kind = if self.search.is_some() { "limit" } else { kind };
        let mut matrix = vec![
            Field::new("endpoint", list(&self.endpoints), ""),
            Field::new("model", list(&self.models), ""),
            Field::new("scenario", list(&self.scenarios), ""),
        ];
        if !self.settings.is_empty() {
            matrix.push(Field::new(
                "server",
                format!("[{}]", self.settings.join(", ")),
                settings.origin(&self.settings),
            ));
        }
        if let Some(cap) = &self.cap {
            let origin = format!("{}: requests beyond it wait, and their wait counts", cap.origin);
            matrix.push(Field::new("batch_size", format!("[{}]", cap.value), origin));
        }
        let values: Vec<String> = self.points.iter().map(|point| point.value.to_string()).collect();
        let origin = together(self.points.iter().map(|point| point.origin.as_str()));
        let axis = if self.is_open { "qps" } else { "batch_size" };
        if self.search.is_none() {
            matrix.push(Field::new(axis, format!("[{}]", values.join(", ")), origin));
        }
        let mut fields: Vec<Field> =
            self.arrivals.iter().map(|said| Field::new("arrivals", said.value.as_str(), &said.origin)).collect();
        match &self.search {
            None => fields.extend(self.repeats.clone()),
            Some(Searched { axis, origin }) => {
                // A search repeats a load as often as the answer needs it.
                let origin = format!("{origin}: there up to 65536; raise `to` where the answer lies above it");
                let value = format!("{{ {axis}: {{ from: 1, to: {SEARCHED_TO}, within: 5% }} }}");
                fields.push(Field::new("search", value, origin));
            }
        }
        let measure = self.measure();
        fields.push(Field::new("phases", format!("{{ measure: {} }}", measure.value), measure.origin));
        let name = self.label.as_deref().map_or_else(|| kind.to_owned(), |label| name_of(label, kind));
        let origin = self.label.map_or_else(String::new, |label| format!("--label {label}"));
        Sweep { name: unused(names, &name), origin, matrix, fields }
    }
}

/// Where the settings of servers came from, by their value.
struct Settings(HashMap<String, Setting>);

impl Settings {
    fn new(jobs: &[Job]) -> Settings {
        let all = jobs.iter().filter_map(|job| job.setting.as_ref());
        Settings(all.map(|setting| (setting.value(), setting.clone())).collect())
    }

    /// The words that named these values, and what they are called there.
    fn origin(&self, values: &[String]) -> String {
        let all: Vec<&Setting> = values.iter().filter_map(|value| self.0.get(value)).collect();
        let words = together(all.iter().map(|setting| setting.origin.as_str()));
        let names: Vec<&str> = all.iter().filter_map(|setting| setting.name.as_deref()).collect();
        if names.is_empty() { words } else { format!("{words}: {}", names.join(", ")) }
    }
}

/// Sweeps that differ in one table's names alone become one.
fn merged(groups: Vec<Group>) -> Vec<Group> {
    let axes: [fn(&mut Group) -> &mut Vec<String>; 4] = [
        |group| &mut group.scenarios,
        |group| &mut group.models,
        |group| &mut group.settings,
        |group| &mut group.endpoints,
    ];
    axes.into_iter().fold(groups, |groups, axis| {
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

/// `--request-rate 1`, `--request-rate 2` as `--request-rate 1, 2`.
fn together<'a>(origins: impl Iterator<Item = &'a str>) -> String {
    let mut each: Vec<&str> = Vec::new();
    for origin in origins {
        if !each.contains(&origin) && each.len() < 64 {
            each.push(origin);
        }
    }
    let option = each.first().and_then(|first| first.split_once(' ')).map_or("", |(option, _)| option);
    let values: Option<Vec<&str>> = each.iter().map(|origin| origin.strip_prefix(option)?.strip_prefix(' ')).collect();
    match values {
        Some(values) if option.starts_with("--") => format!("{option} {}", values.join(", ")),
        _ => each.join("; "),
    }
}
