//! The section on how the time of requests was spent: for each curve, the mean TTFT and the mean E2E at
//! each load, as sums of parts that the client measured and the server reported.

use super::super::chart::{Axis, Fill, Stack, Stripe, stack};
use super::super::error::PageError;
use super::super::naming::load_of;
use super::super::sources::Sources;
use super::super::view::{Block, Caption, Cell, Figure, Found, Link, Missing, Section, Table};
use super::groups::{Group, groups};
use crate::analysis::curve::{Curve, Rung};
use crate::analysis::{Part, Whole};
use crate::metrics;
use crate::report::format::{digits, plain};
use crate::report::words;
use crate::units::text::counted;

const TITLE: &str = "Where the time went";

/// Maximum number of figures in this section.
const MOST_FIGURES: usize = 12;

/// Maximum number of bars in a figure. If there are more loads, only the heaviest are drawn, and the table of
/// numbers contains the others.
const MOST_BARS: usize = 10;

/// The sums that are drawn, each with the key of the metric whose mean it is.
const WHOLES: [(&str, &str); 2] = [("ttft", "ttft_from_schedule"), ("e2e", "e2e_from_schedule")];

/// The look of each part, in the order in which the parts add up.
const LOOKS: [(&str, Fill); 10] = [
    ("client", Fill::Series(1)),
    ("connection", Fill::Series(4)),
    ("network", Fill::Series(3)),
    ("outside_server", Fill::Series(5)),
    ("queue", Fill::Series(0)),
    ("prefill", Fill::Series(2)),
    ("decode", Fill::Step(2)),
    ("stalls", Fill::Step(4)),
    ("server_unassigned", Fill::Pale),
    ("unknown", Fill::Hollow),
];

/// Builds the section, or states why it is missing.
pub(crate) fn time(sources: &Sources) -> Result<Found, PageError> {
    let (mut blocks, mut drawn, mut left) = (Vec::new(), 0, 0);
    for (number, group) in groups(sources.curves).into_iter().enumerate() {
        let mut figures = Vec::new();
        for (at, label) in group.members.iter().zip(&group.labels) {
            let curve = &sources.curves[*at];
            for sum in WHOLES {
                let Some(one) = Sum::of(curve, (&group, label), sum) else { continue };
                if drawn >= MOST_FIGURES {
                    left += 1;
                    continue;
                }
                drawn += 1;
                figures.push(one.figure(&format!("time-{}-{}-{}", number + 1, at + 1, sum.0))?);
            }
        }
        if !figures.is_empty() {
            blocks.extend([Block::Heading { text: group.title.clone() }, Block::Figures { figures }]);
        }
    }
    if blocks.is_empty() {
        let why = "no counted run has scraped metrics of its server (`telemetry: on` for an endpoint), and \
                   no response reported its times";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    let text = "Mean TTFT and E2E from the schedule, as sums of the client's measurements and of the times in \
                the server's histograms or responses for the \
                same requests: those that ended in the window. Unknown parts are drawn hollow, and nothing is \
                guessed. For a mix, the sums cover all requests.";
    blocks.insert(0, Block::Text { text: text.to_owned() });
    if left > 0 {
        let text = format!(
            "{} would make the page too large: `sweepline export --columns all` has every number (`parts.…`).",
            counted(left, "more figure")
        );
        blocks.push(Block::Text { text });
    }
    Ok(Ok(Section { id: "time", title: TITLE, blocks }))
}

/// One sum of a curve at each of its loads.
struct Sum<'s, 'a> {
    curve: &'s Curve<'a>,
    group: &'s Group,
    label: &'s str,
    /// The name of the sum: `TTFT` or `E2E`.
    name: String,
    metric: &'static str,
    /// The loads at which every run has the sum, with the sum over these runs.
    known: Vec<(&'s Rung<'a>, Whole)>,
}

impl<'s, 'a> Sum<'s, 'a> {
    /// Collects the sum at each load; `None` if no load has the sum.
    fn of(
        curve: &'s Curve<'a>,
        (group, label): (&'s Group, &'s str),
        (name, metric): (&str, &'static str),
    ) -> Option<Sum<'s, 'a>> {
        let of_rung = |rung: &'s Rung<'a>| {
            let named = rung.runs.iter().map(|run| run.metrics.wholes.iter().find(|whole| whole.name == name));
            Some((rung, Whole::pooled(&named.collect::<Option<Vec<_>>>()?)?))
        };
        let known: Vec<(&Rung, Whole)> = curve.rungs.iter().filter_map(of_rung).collect();
        let name = name.to_uppercase();
        (!known.is_empty()).then_some(Sum { curve, group, label, name, metric, known })
    }

    fn figure(&self, id: &str) -> Result<Figure, PageError> {
        let shown = &self.known[self.known.len().saturating_sub(MOST_BARS)..];
        let most = shown.iter().map(|(_, whole)| length(whole).max(whole.mean_ms)).fold(0.0, f64::max);
        let x = Axis::from_zero(format!("mean {} from the schedule, ms", self.name), most);
        let rows: Vec<Stack> = shown.iter().map(|(rung, whole)| self.bar(rung, whole)).collect();
        let is_drawn = |number: usize| {
            rows.iter().flat_map(|row| &row.stripes).any(|one| one.number == number && one.length > 0.0)
        };
        let legend: Vec<(usize, Fill, String)> = LOOKS
            .iter()
            .enumerate()
            .filter(|(at, _)| is_drawn(at + 1))
            .map(|(at, (name, fill))| (at + 1, *fill, words(name)))
            .collect();
        Ok(Figure {
            id: id.to_owned(),
            title: self.finding(),
            caption: self.caption(shown.len()),
            metric: metrics::find(self.metric).map(|metric| Link { key: metric.key, title: metric.title }),
            drawing: stack(&x, &rows, &legend)?,
            table: self.table(),
        })
    }

    fn bar(&self, rung: &Rung, whole: &Whole) -> Stack {
        let load = load_of(self.curve.axis, rung.load);
        let stripe = |part: &Part| {
            let (at, (_, fill)) = LOOKS.iter().enumerate().find(|(_, (name, _))| *name == part.name)?;
            let ms = part.ms.as_ref().ok().copied()?;
            let text = format!("{load}: {} {} ms{}", words(part.name), digits(ms), share(ms, whole));
            Some(Stripe { number: at + 1, length: ms, fill: *fill, text })
        };
        Stack {
            name: format!("{load}: {} ms", digits(whole.mean_ms)),
            stripes: whole.parts.iter().filter_map(stripe).collect(),
        }
    }

    /// Returns the finding for the title: the sum and its largest part at the heaviest load.
    fn finding(&self) -> String {
        let Some((rung, whole)) = self.known.last() else { return self.name.clone() };
        let parts = whole.parts.iter().filter_map(|part| Some((part.name, part.ms.as_ref().ok().copied()?)));
        let largest = parts.max_by(|a, b| a.1.total_cmp(&b.1));
        let largest = largest.map(|(name, ms)| format!(", most of it {}{}", words(name), share(ms, whole)));
        format!(
            "{}: mean {} of {} ms at {}{}",
            self.label,
            self.name,
            digits(whole.mean_ms),
            load_of(self.curve.axis, rung.load),
            largest.unwrap_or_default()
        )
    }

    fn caption(&self, drawn: usize) -> Caption {
        let requests: u64 = self.known.iter().map(|(_, whole)| whole.requests).sum();
        let runs: usize = self.known.iter().map(|(rung, _)| rung.runs.len()).sum();
        let (all, known) = (self.curve.rungs.len(), self.known.len());
        let mut shown = vec![format!("n: {requests} requests of {}.", counted(runs, "run"))];
        if known < all {
            shown.push(format!(
                "n/a at {} of {all} loads: nothing was scraped there, or no request ended.",
                all - known
            ));
        }
        if drawn < known {
            shown.push(format!("{} lighter loads are not drawn; they are in the numbers.", known - drawn));
        }
        shown.extend(self.reasons());
        let mut details = vec![
            "Each stripe's number is printed below it if there is room, and in the legend. There is no interval."
                .to_owned(),
            "A part below 0, which is possible within the precision of means, is not drawn; it is in the \
            numbers."
                .to_owned(),
        ];
        if self.known.iter().any(|(rung, _)| rung.runs.len() > 1) {
            details.push("For repeats, it is the mean over all their requests.".to_owned());
        }
        Caption { shown, details }
    }

    /// Lists the reasons why parts are unknown, one sentence per part.
    fn reasons(&self) -> Vec<String> {
        let mut said: Vec<(String, String, usize)> = Vec::new();
        for part in self.known.iter().flat_map(|(_, whole)| &whole.parts) {
            let Err(why) = &part.ms else { continue };
            let name = words(part.name);
            match said.iter_mut().find(|(other, ..)| *other == name) {
                Some((.., count)) => *count += 1,
                None => said.push((name, plain(why), 1)),
            }
        }
        said.into_iter()
            .map(|(name, why, count)| format!("{name} n/a at {} ({why}).", counted(count, "load")))
            .collect()
    }

    /// Returns a table of the figure's numbers.
    fn table(&self) -> Table {
        let mut names: Vec<&str> = Vec::new();
        for part in self.known.iter().flat_map(|(_, whole)| &whole.parts) {
            if !names.contains(&part.name) {
                names.push(part.name);
            }
        }
        let key = self.name.to_lowercase();
        let mut columns = vec![
            format!("{}#", self.curve.axis.name()),
            "runs#".into(),
            format!("{key}_requests#"),
            format!("{key}_mean_ms#"),
        ];
        columns.extend(names.iter().map(|name| format!("{key}_{name}_ms#")));
        columns.push(format!("{key}_assigned_share#"));
        let caption = format!("Parts of mean {}; {}, {}", self.name, self.group.title, self.label);
        let mut table = Table::new(caption, &columns.iter().map(String::as_str).collect::<Vec<_>>());
        for (rung, whole) in &self.known {
            let mut row = vec![
                Cell::exact(rung.load),
                Cell::count(rung.runs.len() as u64),
                Cell::count(whole.requests),
                Cell::number(Some(whole.mean_ms)),
            ];
            row.extend(names.iter().map(|name| Cell::number(whole.part_ms(name))));
            row.push(Cell::number(whole.assigned_share()));
            table.rows.push(row);
        }
        table
    }
}

/// Returns the length of a bar in milliseconds, which is the sum of the parts that are drawn.
fn length(whole: &Whole) -> f64 {
    whole.parts.iter().filter_map(|part| part.ms.as_ref().ok()).map(|ms| ms.max(0.0)).sum()
}

/// Formats a part as a share of the whole: ` (94 %)`; returns an empty string if the whole is 0.
fn share(ms: f64, whole: &Whole) -> String {
    if whole.mean_ms > 0.0 { format!(" ({:.0} %)", ms / whole.mean_ms * 100.0) } else { String::new() }
}
