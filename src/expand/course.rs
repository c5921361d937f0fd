//! The rate profile of an open loop over a run. It gives the number of arrivals expected by a given time, and
//! the expected time of a given arrival.
//!
//! The rate is piecewise linear, so the expected number Λ(t) is quadratic in each piece, and both Λ and its
//! inverse are computed exactly. During fill, the rate rises linearly from 0; without a profile, it then
//! stays constant. A profile begins with the measure window, and the stabilize phase runs at the first rate
//! of the profile. A repeating profile already repeats during stabilize, aligned so that a cycle begins with
//! the window; its mean is the rate at the end of fill.

use crate::plan::{Bursts, Point, Profile, Ramp, RateShape, StepOfProfile};

use super::{Load, Phases};

/// The expected arrivals of an open loop over time, in seconds since the run's start.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The pieces that occur once, in order.
    head: Vec<Piece>,
    tail: Tail,
    /// The rate at the end of fill.
    settled: f64,
}

/// A period with a linear rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    /// The start of the piece, in seconds.
    from: f64,
    /// Number of arrivals expected before the piece.
    before: f64,
    /// The length of the piece, in seconds.
    length: f64,
    /// The rates at the start and at the end of the piece, in requests per second.
    rates: (f64, f64),
}

/// The endless part of the profile after the head.
#[derive(Debug, Clone, PartialEq)]
enum Tail {
    /// A constant rate: (t − lead) × rate arrivals are expected in the first t seconds of the run.
    Hold { lead: f64, rate: f64 },
    /// A cycle that begins at `from`, before which `before` arrivals are expected. Its pieces are
    /// relative to its own start.
    Cycle { from: f64, before: f64, pieces: Vec<Piece> },
}

impl Piece {
    /// Number of arrivals expected in this piece.
    fn area(&self) -> f64 {
        self.length * (self.rates.0 + self.rates.1) / 2.0
    }

    fn end(&self) -> f64 {
        self.from + self.length
    }

    /// Number of arrivals expected by `seconds`.
    fn expected(&self, seconds: f64) -> f64 {
        let (passed, (start, end)) = ((seconds - self.from).clamp(0.0, self.length), self.rates);
        self.before + passed * (start + (end - start) * passed / self.length / 2.0)
    }

    /// The time by which `count` arrivals are expected.
    fn at(&self, count: f64) -> f64 {
        let (count, (start, end)) = ((count - self.before).max(0.0), self.rates);
        let passed = if start == 0.0 {
            (2.0 * self.length * count / end).sqrt()
        } else {
            let squared = start * start + 2.0 * count * (end - start) / self.length;
            2.0 * count / (start + squared.max(0.0).sqrt())
        };
        self.from + passed.min(self.length)
    }
}

/// Builds consecutive pieces from their lengths in nanoseconds and their rates at the start and at the end.
fn chain(mut from: f64, mut before: f64, parts: &[(u64, f64, f64)]) -> Vec<Piece> {
    let piece = |(length, start, end): &(u64, f64, f64)| {
        let piece = Piece { from, before, length: *length as f64 / 1e9, rates: (*start, *end) };
        from = piece.end();
        before += piece.area();
        piece
    };
    parts.iter().filter(|(length, ..)| *length > 0).map(piece).collect()
}

/// Returns the pieces of a profile, where `qps` is 100 %: length in nanoseconds, and the rates at the start
/// and at the end in requests per second.
fn parts(profile: &Profile, qps: f64) -> Vec<(u64, f64, f64)> {
    match &profile.shape {
        RateShape::Ramp(Ramp { from, to, over }) => vec![(over.0, from.at(qps), to.at(qps))],
        RateShape::Steps(steps) => {
            let part = |StepOfProfile { qps: rate, duration }: &StepOfProfile| (duration.0, rate.at(qps), rate.at(qps));
            steps.iter().map(part).collect()
        }
        RateShape::Bursts(bursts @ Bursts { on, off, low }) => {
            let (high, low) = (bursts.high() * qps, low.to_f64() * qps);
            vec![(on.0, high, high), (off.0, low, low)]
        }
        RateShape::Curve(points) => {
            let part = |pair: &[Point]| {
                let (Point(from, start), Point(to, end)) = (pair[0], pair[1]);
                (to.0.saturating_sub(from.0), start.at(qps), end.at(qps))
            };
            points.windows(2).map(part).collect()
        }
    }
}

/// Returns the same cycle, but starting `by` nanoseconds after its original start.
fn rotated(parts: &[(u64, f64, f64)], by: u64) -> Vec<(u64, f64, f64)> {
    let (mut late, mut early, mut at) = (Vec::new(), Vec::new(), 0);
    for &(length, start, end) in parts {
        let cut = by.saturating_sub(at).min(length);
        let there = if length == 0 { start } else { start + (end - start) * (cut as f64 / length as f64) };
        early.push((cut, start, there));
        late.push((length - cut, there, end));
        at += length;
    }
    late.into_iter().chain(early).filter(|(length, ..)| *length > 0).collect()
}

impl Course {
    /// The rate profile of `load` under `phases`; `None` for a closed loop, whose rate depends on the
    /// server.
    pub fn new(load: &Load, phases: &Phases) -> Option<Course> {
        let Load::Open { qps, arrivals, .. } = load else { return None };
        let qps = qps.to_f64();
        let (fill, stabilize) = (phases.fill.0, phases.stabilize.0);
        Some(match &arrivals.profile {
            None => Course::steady(qps, fill),
            Some(profile) if profile.goes_on() => Course::cycle(&parts(profile, qps), fill, stabilize),
            Some(profile) => Course::once(&parts(profile, qps), fill, stabilize),
        })
    }

    /// A rate that rises over `fill` nanoseconds and then stays constant.
    pub fn steady(qps: f64, fill: u64) -> Course {
        // The lead is half of fill, not the area divided by the rate, which would be subject to rounding.
        // Runs from before profiles existed therefore keep their arrival times to the nanosecond.
        let tail = Tail::Hold { lead: fill as f64 / 1e9 / 2.0, rate: qps };
        Course { head: chain(0.0, 0.0, &[(fill, 0.0, qps)]), tail, settled: qps }
    }

    fn once(parts: &[(u64, f64, f64)], fill: u64, stabilize: u64) -> Course {
        let first = parts.first().map_or(0.0, |part| part.1);
        let rate = parts.last().map_or(0.0, |part| part.2);
        let head = [&[(fill, 0.0, first), (stabilize, first, first)], parts].concat();
        let head = chain(0.0, 0.0, &head);
        let (end, before) = head.last().map_or((0.0, 0.0), |piece| (piece.end(), piece.before + piece.area()));
        let lead = if rate > 0.0 { end - before / rate } else { end };
        Course { head, tail: Tail::Hold { lead, rate }, settled: first }
    }

    fn cycle(parts: &[(u64, f64, f64)], fill: u64, stabilize: u64) -> Course {
        let period: u64 = parts.iter().map(|part| part.0).sum();
        let begun = (period - stabilize % period.max(1)) % period.max(1);
        let pieces = chain(0.0, 0.0, &rotated(parts, begun));
        let (length, total) = pieces.last().map_or((1.0, 0.0), |piece| (piece.end(), piece.before + piece.area()));
        let settled = total / length;
        let head = chain(0.0, 0.0, &[(fill, 0.0, settled)]);
        let (from, before) = head.last().map_or((0.0, 0.0), |piece| (piece.end(), piece.area()));
        Course { head, tail: Tail::Cycle { from, before, pieces }, settled }
    }

    /// Number of arrivals expected in the first `seconds` of the run.
    pub fn expected(&self, seconds: f64) -> f64 {
        if let Some(piece) = self.head.iter().find(|piece| seconds < piece.end()) {
            return piece.expected(seconds);
        }
        let head = self.head.last().map_or(0.0, |piece| piece.before + piece.area());
        match &self.tail {
            Tail::Hold { rate, .. } => head + (seconds - self.head.last().map_or(0.0, Piece::end)) * rate,
            Tail::Cycle { from, before, pieces } => {
                let Some(last) = pieces.last() else { return *before };
                let cycles = ((seconds - from) / last.end()).floor();
                let inside = seconds - from - cycles * last.end();
                let piece = pieces.iter().find(|piece| inside < piece.end()).unwrap_or(last);
                before + cycles * (last.before + last.area()) + piece.expected(inside)
            }
        }
    }

    /// The time by which `count` arrivals are expected, in seconds since the run's start; `None` if
    /// the number of arrivals never reaches `count`. If the rate is 0 at that time, the result is
    /// the end of the period without arrivals, because an arrival belongs to the load that begins
    /// with it.
    pub fn at(&self, count: f64) -> Option<f64> {
        let holds = |piece: &&Piece| count < piece.before + piece.area();
        let index = self.head.partition_point(|piece| !holds(&piece));
        if let Some(piece) = self.head.get(index) {
            return Some(piece.at(count));
        }
        match &self.tail {
            Tail::Hold { lead, rate } => (*rate > 0.0).then(|| lead + count / rate),
            Tail::Cycle { from, before, pieces } => {
                let last = pieces.last()?;
                let total = last.before + last.area();
                let cycles = ((count - before) / total).floor();
                let inside = count - before - cycles * total;
                let index = pieces.partition_point(|piece| inside >= piece.before + piece.area());
                let within = pieces.get(index).map_or(last.end(), |piece| piece.at(inside));
                (total > 0.0).then(|| from + cycles * last.end() + within)
            }
        }
    }

    /// Number of arrivals expected between two times, which are given in nanoseconds since the run's start.
    pub fn between(&self, from: u64, to: u64) -> f64 {
        self.expected(to as f64 / 1e9) - self.expected(from as f64 / 1e9)
    }

    /// The rate at the end of fill: the first rate of a profile, the mean rate of a repeating profile, or the
    /// constant rate.
    pub fn settled(&self) -> f64 {
        self.settled
    }

    /// The highest rate.
    pub fn peak(&self) -> f64 {
        let highest =
            |pieces: &[Piece]| pieces.iter().map(|piece| piece.rates.0.max(piece.rates.1)).fold(0.0, f64::max);
        let tail = match &self.tail {
            Tail::Hold { rate, .. } => *rate,
            Tail::Cycle { pieces, .. } => highest(pieces),
        };
        highest(&self.head).max(tail)
    }
}

#[cfg(test)]
#[path = "tests/course.rs"]
mod tests;
