//! Extracts the requested values from a page: canonical values, by the tables of exporters and the mappings
//! in the plan, and raw values by name.

use std::collections::HashMap;

use super::canonical::{CANONICAL, Canonical, Kind};
use super::engines::{EXPORTERS, Exporter, Source};
use super::gathered::Gathered;
use super::selector::Selector;
use super::text::{BadLine, Labels, samples};

/// The values that are requested from every page.
#[derive(Debug, Clone)]
pub struct Wanted {
    rules: Vec<Rule>,
    /// For each metric name: the rules that use the metric, each with the index of the rule, the index of
    /// the selector in the rule, and the part of the series that the metric provides.
    by_name: HashMap<String, Vec<(usize, usize, Part)>>,
    /// Metrics whose presence identifies the exporter of a page.
    marks: Vec<&'static str>,
    /// Names of the metrics whose series are stored unchanged.
    raw: Vec<String>,
}

#[derive(Debug, Clone)]
struct Rule {
    /// The index in `CANONICAL` of the series that the rule provides.
    canonical: usize,
    /// The selectors whose values are combined into the series.
    selectors: Vec<Selector>,
    /// The metric that must be on the page for the rule to apply; `None` if the rule always applies.
    only_with: Option<&'static str>,
    /// The exporter that the rule belongs to; `None` if it comes from the plan.
    exporter: Option<&'static str>,
}

/// The part of a canonical series that a metric of a page provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Value,
    Sum,
    Count,
}

/// A canonical value: the series, the suffix of its name, and the value. The suffix is `.sum` or `.count`
/// for the two parts of a histogram, and empty otherwise.
pub type Value = (&'static Canonical, &'static str, f64);

/// The requested values found on one page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The canonical values on the page, with two entries for each histogram.
    pub canonical: Vec<Value>,
    /// The raw series on the page: name, labels and value of each.
    pub raw: Vec<(String, String, f64)>,
    /// The exporter whose table was used for the server's histograms on the page; `None` if the page has no
    /// histograms, or if the plan maps them.
    pub exporter: Option<&'static str>,
}

impl Reading {
    /// Returns the value of a canonical series that is not a histogram; `None` if the page does not have
    /// it.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.canonical.iter().find(|(canonical, part, _)| canonical.key == key && part.is_empty()).map(|found| found.2)
    }
}

/// Maximum number of raw series per scrape; a page with more is treated as too large.
pub const MOST_RAW: usize = 20_000;

/// Why a page cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// A line of the page is in neither text format.
    #[error(transparent)]
    Malformed(#[from] BadLine),
    /// The page has more raw series than can be kept.
    #[error("it has more than {MOST_RAW} series of the metrics listed under `raw`")]
    TooMany,
}

impl Wanted {
    /// Creates the rules from the plan's mappings (`map`) and the exporters' tables. For a series that the
    /// plan maps, the exporters' tables are not used. Keys of `map` that are not canonical names are
    /// ignored.
    pub fn new<'a>(
        map: impl IntoIterator<Item = (&'a str, Selector)>,
        raw: impl IntoIterator<Item = String>,
    ) -> Wanted {
        let marks = EXPORTERS.iter().filter_map(|exporter| exporter.only_with).collect();
        let raw = raw.into_iter().collect();
        let mut wanted = Wanted { rules: Vec::new(), by_name: HashMap::new(), marks, raw };
        for (key, selector) in map {
            if let Some(canonical) = place(key) {
                wanted.want(Rule { canonical, selectors: vec![selector], only_with: None, exporter: None });
            }
        }
        let mapped: Vec<usize> = wanted.rules.iter().map(|rule| rule.canonical).collect();
        let known: Vec<Rule> = EXPORTERS.iter().flat_map(rules).collect();
        known.into_iter().filter(|rule| !mapped.contains(&rule.canonical)).for_each(|rule| wanted.want(rule));
        wanted
    }

    fn want(&mut self, rule: Rule) {
        let at = self.rules.len();
        for (index, Selector { metric, .. }) in rule.selectors.iter().enumerate() {
            let names = match CANONICAL[rule.canonical].kind {
                Kind::Gauge => vec![(metric.clone(), Part::Value)],
                Kind::Counter if metric.ends_with("_total") => vec![(metric.clone(), Part::Value)],
                Kind::Counter => vec![(metric.clone(), Part::Value), (format!("{metric}_total"), Part::Value)],
                Kind::Histogram => {
                    vec![(format!("{metric}_sum"), Part::Sum), (format!("{metric}_count"), Part::Count)]
                }
            };
            for (name, part) in names {
                self.by_name.entry(name).or_default().push((at, index, part));
            }
        }
        self.rules.push(rule);
    }

    /// Reads the requested values from a page.
    ///
    /// # Errors
    /// Fails if a line is in neither format, or if there are too many raw series.
    pub fn read(&self, page: &str) -> Result<Reading, PageError> {
        let mut gathered: Vec<[Gathered; 2]> = vec![Default::default(); self.rules.len()];
        let mut reading = Reading::default();
        let mut marks: Vec<&str> = Vec::new();
        for sample in samples(page) {
            let sample = sample?;
            marks.extend(self.marks.iter().filter(|mark| sample.name == **mark));
            for (rule, index, part) in self.by_name.get(&*sample.name).into_iter().flatten() {
                let Rule { canonical, selectors, .. } = &self.rules[*rule];
                let selector = &selectors[*index];
                if selector.takes(sample.labels) && !is_blank(&sample.name, sample.value) {
                    let factor = if *part == Part::Count { 1.0 } else { selector.factor };
                    let half = usize::from(*part == Part::Count);
                    let over = CANONICAL[*canonical].over;
                    gathered[*rule][half].add(sample.value * factor, over, *index);
                }
            }
            if self.raw.iter().any(|raw| is_of(&sample.name, raw)) {
                reading.raw.push((sample.name.into_owned(), plain(sample.labels), sample.value));
            }
            if reading.raw.len() > MOST_RAW {
                return Err(PageError::TooMany);
            }
        }
        (reading.canonical, reading.exporter) = self.values(&gathered, &marks);
        Ok(reading)
    }

    /// Returns the values of the canonical series, each from the first rule with data on the page, and the
    /// exporter of the histograms.
    fn values(&self, gathered: &[[Gathered; 2]], marks: &[&str]) -> (Vec<Value>, Option<&'static str>) {
        let (mut values, mut exporter) = (Vec::new(), None);
        for (at, canonical) in CANONICAL.iter().enumerate() {
            let is_meant = |rule: &Rule| rule.only_with.is_none_or(|mark| marks.contains(&mark));
            let rules = self.rules.iter().zip(gathered).filter(|(rule, _)| rule.canonical == at && is_meant(rule));
            // Every selector of a rule must have matched, because a sum without one of its parts would be
            // wrong.
            let mut whole = rules.filter(|(rule, found)| found[0].has_all(rule.selectors.len()));
            let Some((rule, [value, count])) = whole.next() else { continue };
            if canonical.kind == Kind::Histogram {
                exporter = exporter.or(rule.exporter);
            }
            let parts = match (canonical.kind, count.n) {
                (Kind::Histogram, 0) => continue,
                (Kind::Histogram, _) => vec![(".sum", value), (".count", count)],
                _ => vec![("", value)],
            };
            let known =
                parts.into_iter().filter_map(|(part, one)| Some((canonical, part, one.result(canonical.over)?)));
            values.extend(known);
        }
        (values, exporter)
    }
}

/// Whether the metric `name` is the requested raw metric `raw`, or one of the series of this metric.
fn is_of(name: &str, raw: &str) -> bool {
    let tail = name.strip_prefix(raw);
    tail.is_some_and(|tail| matches!(tail, "" | "_total" | "_sum" | "_count" | "_bucket"))
}

fn place(key: &str) -> Option<usize> {
    CANONICAL.iter().position(|canonical| canonical.key == key)
}

/// Returns the rules of an exporter's table. Metrics that are added up form one rule.
fn rules(exporter: &Exporter) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for source in exporter.series {
        let Some(canonical) = place(source.canonical) else { continue };
        let selector = of_table(source);
        match rules.last_mut().filter(|last| source.adds && last.canonical == canonical) {
            Some(last) => last.selectors.push(selector),
            None => {
                let Exporter { only_with, title, .. } = exporter;
                let (only_with, exporter) = (*only_with, Some(*title));
                rules.push(Rule { canonical, selectors: vec![selector], only_with, exporter });
            }
        }
    }
    rules
}

fn of_table(source: &Source) -> Selector {
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    let labels = source.labels.iter().map(|(name, values)| ((*name).to_owned(), owned(values))).collect();
    Selector { metric: source.metric.to_owned(), labels, factor: source.factor }
}

/// Whether this is a value that DCGM writes for a missing field: the largest signed integer of 32 or 64
/// bits, or one of the 15 integers below it.
fn is_blank(name: &str, value: f64) -> bool {
    name.starts_with("DCGM_")
        && (value >= 9_223_372_036_854_774_784.0 || (2_147_483_632.0..=2_147_483_647.0).contains(&value))
}

/// Formats labels sorted by name, so a series always has the same text.
fn plain(labels: Labels) -> String {
    let mut pairs: Vec<_> = labels.iter().collect();
    pairs.sort();
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value:?}"));
    pairs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
