//! The section with the timeline: runs, server starts, attempts without a result, and the pauses in between.

use jiff::Timestamp;

use super::super::chart::{Axis, Bar, Look, lanes};
use super::super::error::PageError;
use super::super::sources::{Sources, Span, SpanKind};
use super::super::view::{Block, Cell, Figure, Found, Missing, Section, Table};
use super::stretches::Stretches;
use crate::report::format::{cut, digits, duration, plain};
use crate::units::text::counted;

const TITLE: &str = "Timeline";

/// Maximum number of bars. If there are more, bars of the same kind that are close together are merged.
const MOST_BARS: usize = 240;

/// Maximum number of lanes of the timeline.
const MOST_LANES: usize = 16;

/// Maximum number of pauses that the caption names.
const MOST_PAUSES: usize = 3;

/// Maximum number of characters of a run's name.
const LONGEST: usize = 120;

/// Builds the section, or states why it is missing.
pub(crate) fn timeline(sources: &Sources) -> Result<Found, PageError> {
    if sources.timeline.is_empty() {
        return Ok(Err(Missing { title: TITLE, why: "no run or attempt has a recorded time".to_owned() }));
    }
    let figure = Drawn::of(&sources.timeline).figure()?;
    let text = "What ran when, by the wall clock of the client's machine: one lane per resource, since runs on \
                one resource never overlap.";
    let blocks = vec![
        Block::Text { text: text.to_owned() },
        Block::Heading { text: "The whole sweep".to_owned() },
        Block::Figures { figures: vec![figure] },
    ];
    Ok(Ok(Section { id: "timeline", title: TITLE, blocks }))
}

/// Spans of the same kind in one lane that are drawn as one bar.
struct Piece<'a> {
    lane: usize,
    spans: Vec<&'a Span>,
    from: Timestamp,
    to: Timestamp,
}

/// The timeline in the form in which it is drawn.
struct Drawn<'a> {
    spans: &'a [Span],
    lanes: Vec<String>,
    lanes_left: usize,
    stretches: Stretches,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Drawn<'a> {
    fn of(spans: &'a [Span]) -> Drawn<'a> {
        let mut resources: Vec<(&str, Vec<&str>)> = Vec::new();
        for span in spans {
            let at = resources.iter().position(|(lane, _)| *lane == span.lane).unwrap_or_else(|| {
                resources.push((&span.lane, Vec::new()));
                resources.len() - 1
            });
            let names = &mut resources[at].1;
            if !names.contains(&span.endpoint.as_str()) {
                names.push(&span.endpoint);
            }
        }
        let lanes_left = resources.len().saturating_sub(MOST_LANES);
        resources.truncate(MOST_LANES);
        let stretches = Stretches::of(spans.iter().map(|span| (span.from, span.to)));
        let lane = |span: &Span| resources.iter().position(|(lane, _)| *lane == span.lane);
        let pieces: Vec<Piece> = spans
            .iter()
            .filter_map(|span| Some(Piece { lane: lane(span)?, spans: vec![span], from: span.from, to: span.to }))
            .collect();
        let pieces = merged(pieces, &stretches);
        let lanes = resources.iter().map(|(_, names)| plain(&names.join(", "))).collect();
        Drawn { spans, lanes, lanes_left, stretches, pieces }
    }

    fn count(&self, is: impl Fn(SpanKind) -> bool) -> usize {
        self.spans.iter().filter(|span| is(span.kind)).count()
    }

    fn figure(&self) -> Result<Figure, PageError> {
        let total = self.stretches.length();
        let ticks = self.stretches.ticks().map(|(place, at)| (place, at.strftime("%H:%M:%S").to_string())).collect();
        let cuts = if self.stretches.pauses.is_empty() { "" } else { ", pauses cut out" };
        let x = Axis::of_places(format!("time of day, UTC{cuts}"), total, ticks);
        let bar = |piece: &Piece| Bar {
            lane: piece.lane,
            from: self.stretches.place(piece.from),
            to: self.stretches.place(piece.to),
            look: look(piece.spans[0].kind),
            text: format!("{}: {}", piece.name(), piece.spans[0].kind.name()),
        };
        let bars: Vec<Bar> = self.pieces.iter().map(bar).collect();
        let mut legend: Vec<(Look, &str)> = Vec::new();
        for kind in self.pieces.iter().map(|piece| piece.spans[0].kind) {
            let entry = (look(kind), meaning(kind));
            if !legend.contains(&entry) {
                legend.push(entry);
            }
        }
        let breaks: Vec<f64> = self.stretches.pauses.iter().map(|pause| pause.place).collect();
        Ok(Figure {
            id: "timeline-all".to_owned(),
            title: self.finding(),
            caption: self.caption().into(),
            metric: None,
            drawing: lanes(&x, &self.lanes, &bars, &breaks, &legend)?,
            table: self.table(),
        })
    }

    /// Returns the finding for the title: the total busy time, and the number of lost attempts.
    fn finding(&self) -> String {
        let runs = self.count(|kind| matches!(kind, SpanKind::Run(_)));
        let busy = duration(self.stretches.busy_secs().round() as u64);
        let stretches = counted(self.stretches.pauses.len() + 1, "stretch").replace("stretchs", "stretches");
        let lost = self.count(|kind| {
            matches!(kind, SpanKind::Spoiled | SpanKind::Failed | SpanKind::Interrupted | SpanKind::Replaced)
        });
        let lost = match lost {
            0 => "no attempt was lost".to_owned(),
            1 => "1 attempt failed or was replaced".to_owned(),
            lost => format!("{lost} attempts failed or were replaced"),
        };
        format!("{} took {busy} together, in {stretches}; {lost}", counted(runs, "run"))
    }

    fn caption(&self) -> Vec<String> {
        let mut caption = Vec::new();
        let pauses = &self.stretches.pauses;
        let when = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M UTC").to_string();
        let named =
            pauses.iter().take(MOST_PAUSES).map(|pause| format!("{} from {}", duration(pause.secs), when(pause.from)));
        let named = named.collect::<Vec<_>>().join(", ");
        match pauses.len() {
            0 => caption.push("The axis is continuous: no pause was cut out.".to_owned()),
            count => {
                let more =
                    if count > MOST_PAUSES { format!(" and {} more", count - MOST_PAUSES) } else { String::new() };
                let were = if count == 1 {
                    "pause in which nothing of the plan ran is"
                } else {
                    "pauses in which nothing of the plan ran are"
                };
                caption.push(format!("{count} {were} cut out at the double lines: {named}{more}."));
            }
        }
        let drawn: usize = self.pieces.iter().map(|piece| piece.spans.len()).sum();
        if self.pieces.len() < drawn {
            caption.push(format!(
                "{drawn} stretches of time are drawn as {} bars: adjacent ones of one kind are merged.",
                self.pieces.len()
            ));
        }
        if self.lanes_left > 0 {
            caption.push(format!("{} more resources are not drawn.", self.lanes_left));
        }
        caption.push("A bar of less than a pixel is drawn as one pixel.".to_owned());
        caption
    }

    fn table(&self) -> Table {
        let columns = ["lane", "what", "run", "runs#", "from (UTC)", "to (UTC)", "seconds#"];
        let mut table = Table::new("What ran when", &columns);
        let when = |at: Timestamp| Cell::text(&at.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string());
        for piece in &self.pieces {
            let seconds = (piece.to.as_nanosecond() - piece.from.as_nanosecond()) as f64 / 1e9;
            table.rows.push(vec![
                Cell::text(&self.lanes[piece.lane]),
                Cell::text(piece.spans[0].kind.name()),
                Cell::text(&piece.name()),
                Cell::count(piece.spans.len() as u64),
                when(piece.from),
                when(piece.to),
                Cell { text: digits(seconds), value: Some(seconds), ..Cell::default() },
            ]);
        }
        table
    }
}

impl Piece<'_> {
    fn name(&self) -> String {
        match self.spans.as_slice() {
            [span] => cut(&span.name, LONGEST),
            several => format!("{} stretches of time", several.len()),
        }
    }
}

/// Merges neighbouring bars of the same kind in a lane, the closest ones first, until there are few enough
/// bars to draw.
fn merged<'a>(mut pieces: Vec<Piece<'a>>, stretches: &Stretches) -> Vec<Piece<'a>> {
    let mut near = stretches.length() / 1_000.0;
    while pieces.len() > MOST_BARS && near <= stretches.length() * 2.0 {
        pieces.sort_by_key(|piece| (piece.lane, piece.from));
        let mut joined: Vec<Piece> = Vec::new();
        for piece in pieces {
            let fits = joined.last().is_some_and(|last: &Piece| {
                last.lane == piece.lane
                    && last.spans[0].kind == piece.spans[0].kind
                    && stretches.place(piece.from) - stretches.place(last.to) <= near
                    && !stretches.has_pause(last.to, piece.from)
            });
            match joined.last_mut().filter(|_| fits) {
                Some(last) => {
                    last.to = last.to.max(piece.to);
                    last.spans.extend(piece.spans);
                }
                None => joined.push(piece),
            }
        }
        pieces = joined;
        near *= 2.0;
    }
    pieces
}

fn look(kind: SpanKind) -> Look {
    match kind {
        SpanKind::Run("suspect") => Look::Lower,
        SpanKind::Run("invalid") => Look::Hollow,
        SpanKind::Run(_) => Look::Whole,
        SpanKind::ServerStart => Look::Thin,
        SpanKind::Spoiled | SpanKind::Failed => Look::Foot,
        SpanKind::Interrupted | SpanKind::Replaced | SpanKind::UnderWay => Look::HollowFoot,
    }
}

fn meaning(kind: SpanKind) -> &'static str {
    match look(kind) {
        Look::Whole => "run, valid",
        Look::Lower => "run, suspect",
        Look::Hollow => "run, invalid",
        Look::Thin => "server start",
        Look::Foot => "attempt, spoiled or failed",
        Look::HollowFoot => "attempt, interrupted, replaced or in progress",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(kind: SpanKind, from: i64, to: i64) -> Span {
        let at = |secs| Timestamp::from_second(1_800_000_000 + secs).expect("an instant");
        let text = || "e".to_owned();
        Span { lane: text(), endpoint: text(), kind, name: "n".to_owned(), from: at(from), to: at(to) }
    }

    #[test]
    fn a_thousand_runs_are_few_bars_that_hold_all_of_them() {
        let spans: Vec<Span> = (0..1_000)
            .map(|at| span(SpanKind::Run(if at % 50 == 0 { "suspect" } else { "valid" }), at * 30, at * 30 + 28))
            .collect();
        let drawn = Drawn::of(&spans);
        assert!(drawn.pieces.len() <= MOST_BARS, "{}", drawn.pieces.len());
        assert_eq!(drawn.pieces.iter().map(|piece| piece.spans.len()).sum::<usize>(), 1_000);
        let suspect = drawn.pieces.iter().filter(|piece| piece.spans[0].kind == SpanKind::Run("suspect"));
        assert_eq!(suspect.map(|piece| piece.spans.len()).sum::<usize>(), 20, "kinds are never joined");
        assert!(drawn.caption().iter().any(|sentence| sentence.starts_with("1000 stretches of time are drawn as")));
    }

    #[test]
    fn a_night_between_two_invocations_is_cut_out_and_said() {
        let spans = [
            span(SpanKind::Run("valid"), 0, 60),
            span(SpanKind::Spoiled, 60, 70),
            span(SpanKind::Run("valid"), 36_000, 36_060),
        ];
        let drawn = Drawn::of(&spans);
        assert_eq!(drawn.pieces.len(), 3);
        assert!(drawn.stretches.length() < 300.0, "{}", drawn.stretches.length());
        assert!(
            drawn.caption()[0].contains("1 pause in which nothing of the plan ran is cut out"),
            "{:?}",
            drawn.caption()
        );
        assert!(drawn.caption()[0].contains("9h58m from 2027-01-15 08:01 UTC"), "{:?}", drawn.caption());
        assert_eq!(drawn.finding(), "2 runs took 2m10s together, in 2 stretches; 1 attempt failed or was replaced");
    }
}
