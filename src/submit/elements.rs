//! The elements of a plan: what one job does. The sweeps of a part whose turn comes together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::parts::{Part, endpoint_of, list, parts};
use crate::expand::{Expansion, Pending};
use crate::plan::Plan;
use crate::plan::model::Resources;

/// What one job does.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// The part whose runs it makes.
    pub part: Part,
    /// The sweeps that it makes them of, in declared order.
    pub sweeps: Vec<String>,
    /// Whether other elements have other sweeps of the same part.
    pub is_one_of_several: bool,
    /// What its job needs: of each kind the most that one of its endpoints asks for.
    pub resources: Resources,
    /// The elements that it waits for, by position.
    pub waits: BTreeMap<usize, Wait>,
}

/// How an element waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Until it has ended, well or not: a sweep comes `after` another.
    Ended,
    /// Until it has ended well: a sweep asks for what the other one finds.
    Succeeded,
}

impl Element {
    /// Its name among people: the part, and the sweeps where the part has several elements.
    pub fn name(&self) -> String {
        match self.is_one_of_several {
            true => format!("{}: {}", self.part.name, self.sweeps.join(", ")),
            false => self.part.name.clone(),
        }
    }

    /// Its sweeps as `--only` selects them; none where they are all sweeps of the part.
    pub fn only(&self) -> Option<String> {
        self.is_one_of_several.then(|| format!("sweep in {}", list(&self.sweeps)))
    }

    /// Whether a cell that is no run yet is its own.
    pub fn has_cell(&self, cell: &Pending) -> bool {
        endpoint_of(cell).is_some_and(|endpoint| self.has(&cell.sweep, endpoint))
    }

    /// Whether a run of this sweep on this endpoint is its own.
    pub fn has(&self, sweep: &str, endpoint: &str) -> bool {
        self.part.has(endpoint) && self.sweeps.iter().any(|own| own == sweep)
    }
}

/// The elements of a plan, such that each waits for earlier ones alone; or why there are none, in words.
///
/// A sweep that comes after others is a later element of its part, except where all that it waits for is made by the same part: then one
/// process makes both, and a launched server stays up.
pub fn elements(plan: &Plan, expansion: &Expansion) -> Result<Vec<Element>, String> {
    let parts = parts(plan, expansion);
    let levels = Levels::of(plan, expansion, &parts);
    // By level first: what an element waits for stands before it.
    let mut sweeps: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for sweep in plan.sweeps.keys() {
        for (part, level) in levels.of_sweep(sweep) {
            sweeps.entry((level, part)).or_default().push(sweep);
        }
    }
    let places: HashMap<(usize, usize), usize> = sweeps.keys().enumerate().map(|(at, key)| (*key, at)).collect();
    let several = |part: usize| sweeps.keys().filter(|(_, of)| *of == part).count() > 1;
    let element = |(&(level, part), own): (&(usize, usize), &Vec<&str>)| {
        let before = sweeps.keys().filter(|(other, of)| *of == part && *other < level).max();
        let mut waits: BTreeMap<usize, Wait> = before.map(|key| (places[key], Wait::Ended)).into_iter().collect();
        for sweep in own {
            for earlier in levels.before(sweep) {
                let asks = plan.sweeps[*sweep].asks().any(|(asked, _)| asked == earlier);
                let wait = if asks { Wait::Succeeded } else { Wait::Ended };
                for (of, at) in levels.of_sweep(earlier) {
                    if (at, of) != (level, part) {
                        let known = waits.entry(places[&(at, of)]).or_insert(wait);
                        *known = (*known).max(wait);
                    }
                }
            }
        }
        Ok(Element {
            part: parts[part].clone(),
            sweeps: own.iter().map(|sweep| (*sweep).to_owned()).collect(),
            is_one_of_several: several(part),
            resources: resources(plan, &parts[part])?,
            waits,
        })
    };
    sweeps.iter().map(element).collect()
}

/// What each element waits for, of those that are `there`: submitted now, or in the queue. In the place of another one stands what that one
/// waits for.
pub fn still_waits(elements: &[Element], is_there: &dyn Fn(usize) -> bool) -> Vec<BTreeMap<usize, Wait>> {
    let mut all: Vec<BTreeMap<usize, Wait>> = Vec::with_capacity(elements.len());
    for element in elements {
        let mut own: BTreeMap<usize, Wait> = BTreeMap::new();
        for (earlier, wait) in &element.waits {
            let further = if is_there(*earlier) { BTreeMap::from([(*earlier, *wait)]) } else { all[*earlier].clone() };
            for (at, wait) in further {
                let known = own.entry(at).or_insert(wait);
                *known = (*known).max(wait);
            }
        }
        all.push(own);
    }
    all
}

/// For each sweep, which parts have runs of it, and in which of their elements.
struct Levels<'a> {
    /// For each sweep the parts, each with the level of its element.
    of: HashMap<&'a str, BTreeMap<usize, usize>>,
    /// For each sweep all that must end before it, however many steps away.
    before: HashMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Levels<'a> {
    fn of(plan: &'a Plan, expansion: &'a Expansion, parts: &[Part]) -> Levels<'a> {
        let mut used: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for run in expansion.possible() {
            used.entry(&run.sweep).or_default().insert(&run.spec.endpoint.name);
        }
        for cell in &expansion.pending {
            used.entry(&cell.sweep).or_default().extend(endpoint_of(cell));
        }
        let part_of = |endpoint: &str| parts.iter().position(|part| part.has(endpoint));
        let of_sweep = |sweep: &str| -> BTreeSet<usize> {
            used.get(sweep).into_iter().flatten().filter_map(|endpoint| part_of(endpoint)).collect()
        };
        let mut levels = Levels { of: HashMap::new(), before: HashMap::new() };
        // A checked plan has no circles, so each round finds a sweep of which all earlier ones are known.
        while levels.of.len() < plan.sweeps.len() {
            let known = |name: &str| levels.of.contains_key(name);
            let next = plan.sweeps.keys().find(|name| !known(name) && direct(plan, expansion, name).all(known));
            let Some(sweep) = next else { break };
            let mut before: BTreeSet<&str> = direct(plan, expansion, sweep).collect();
            let further: Vec<&str> = before.iter().flat_map(|name| levels.before[name].iter().copied()).collect();
            before.extend(further);
            let level = |part: usize| before.iter().filter_map(|name| levels.behind(name, part)).max().unwrap_or(0);
            let of = of_sweep(sweep).into_iter().map(|part| (part, level(part))).collect();
            levels.of.insert(sweep, of);
            levels.before.insert(sweep, before);
        }
        levels
    }

    /// The first level at which a part can go on once this sweep has ended; none where no part has runs of it.
    fn behind(&self, sweep: &str, part: usize) -> Option<usize> {
        let of = &self.of[sweep];
        match of.get(&part) {
            Some(level) if of.len() == 1 => Some(*level),
            _ => of.values().max().map(|level| level + 1),
        }
    }

    fn of_sweep(&self, sweep: &str) -> impl Iterator<Item = (usize, usize)> {
        self.of.get(sweep).into_iter().flatten().map(|(part, level)| (*part, *level))
    }

    fn before(&self, sweep: &str) -> impl Iterator<Item = &'a str> {
        self.before.get(sweep).into_iter().flatten().copied()
    }
}

/// The sweeps that a sweep names: those it comes after, and those it asks.
fn direct<'a>(plan: &'a Plan, expansion: &'a Expansion, sweep: &str) -> impl Iterator<Item = &'a str> {
    let after = expansion.after.get(sweep).into_iter().flatten().map(String::as_str);
    after.chain(plan.sweeps.get(sweep).into_iter().flat_map(|sweep| sweep.asks().map(|(asked, _)| asked)))
}

/// What a part needs. Of what can be counted the most; of names there can be one.
fn resources(plan: &Plan, part: &Part) -> Result<Resources, String> {
    let none = Resources::default();
    let mut all = Resources::default();
    for name in &part.endpoints {
        let own = plan.endpoints.get(name).and_then(|endpoint| endpoint.resources.as_ref()).unwrap_or(&none);
        all.gpus = all.gpus.max(own.gpus);
        all.cpus = all.cpus.max(own.cpus);
        all.memory = all.memory.max(own.memory);
        all.time = all.time.max(own.time);
        let one = |key: &str, all: &Option<String>, own: &Option<String>| match (all, own) {
            (Some(all), Some(own)) if all != own => Err(differ(part, key, (all, own))),
            _ => Ok(all.clone().or_else(|| own.clone())),
        };
        all.partition = one("partition", &all.partition, &own.partition)?;
        all.account = one("account", &all.account, &own.account)?;
        let further = own.slurm.0.iter().filter(|option| !all.slurm.0.contains(option)).cloned().collect::<Vec<_>>();
        all.slurm.0.extend(further);
        match (&all.kubernetes, &own.kubernetes) {
            (Some(one), Some(other)) if one != other => {
                return Err(differ(part, "kubernetes", ("one pod", "another")));
            }
            _ => all.kubernetes = all.kubernetes.or_else(|| own.kubernetes.clone()),
        }
    }
    Ok(all)
}

fn differ(part: &Part, key: &str, (one, other): (&str, &str)) -> String {
    format!(
        "the runs of endpoints {} are made by one job, and their `resources` differ in `{key}`: {one} and {other}; write the same, or \
         give the endpoints another `resource` each",
        part.endpoints.join(" and ")
    )
}
