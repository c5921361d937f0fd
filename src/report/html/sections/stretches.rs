//! Computes positions on the axis of the timeline, from which long pauses are cut out.

use jiff::Timestamp;

/// Minimum length of a pause that is cut out, in seconds. The pause must also be long compared with the busy
/// time ([`SHARE`]).
const LONG: f64 = 60.0;

/// Minimum length of a pause that is cut out, as a share of the busy time. The pause must also last at least
/// [`LONG`] seconds.
const SHARE: f64 = 0.08;

/// Length of the gap on the axis that stands for a pause that was cut out, as a share of the busy time. All
/// gaps together take at most a quarter of the busy time.
const ROOM: f64 = 0.04;

/// Approximate number of ticks on the axis.
const MOST_TICKS: usize = 5;

/// A pause that was cut out of the timeline.
pub(super) struct Pause {
    /// The position of the middle of the pause on the axis.
    pub(super) place: f64,
    /// Start of the pause.
    pub(super) from: Timestamp,
    /// The length of the pause, rounded to whole seconds.
    pub(super) secs: u64,
}

/// A stretch of time without a long pause: its start and end in seconds since 1970, and the position of its
/// start on the axis.
struct Stretch {
    from: f64,
    to: f64,
    place: f64,
}

/// The axis of the timeline: stretches of time, in seconds, with long pauses cut out between them.
pub(super) struct Stretches {
    stretches: Vec<Stretch>,
    /// The pauses that were cut out, in order.
    pub(super) pauses: Vec<Pause>,
    busy: f64,
}

fn secs(at: Timestamp) -> f64 {
    at.as_nanosecond() as f64 / 1e9
}

impl Stretches {
    /// Builds the axis from activities, each given by its beginning and its end.
    pub(super) fn of(spans: impl Iterator<Item = (Timestamp, Timestamp)>) -> Stretches {
        let mut spans: Vec<(Timestamp, Timestamp)> = spans.map(|(from, to)| (from, to.max(from))).collect();
        spans.sort();
        // Blocks of activity without any pause.
        let mut blocks: Vec<(Timestamp, Timestamp)> = Vec::new();
        for (from, to) in spans {
            match blocks.last_mut().filter(|last| from <= last.1) {
                Some(last) => last.1 = last.1.max(to),
                None => blocks.push((from, to)),
            }
        }
        let busy: f64 = blocks.iter().map(|(from, to)| secs(*to) - secs(*from)).sum();
        let is_long = |pause: f64| pause >= LONG && pause >= busy * SHARE;
        let long = blocks.windows(2).filter(|pair| is_long(secs(pair[1].0) - secs(pair[0].1))).count();
        let room = busy * ROOM.min(0.25 / long.max(1) as f64);
        let (mut stretches, mut pauses): (Vec<Stretch>, Vec<Pause>) = (Vec::new(), Vec::new());
        for (from, to) in blocks {
            let place = match stretches.last_mut() {
                None => 0.0,
                Some(last) => {
                    let pause = secs(from) - last.to;
                    let end = last.place + last.to - last.from;
                    if !is_long(pause) {
                        last.to = secs(to);
                        continue;
                    }
                    let began = Timestamp::from_nanosecond((last.to * 1e9) as i128).unwrap_or(from);
                    pauses.push(Pause { place: end + room / 2.0, from: began, secs: pause.round() as u64 });
                    end + room
                }
            };
            stretches.push(Stretch { from: secs(from), to: secs(to), place });
        }
        Stretches { stretches, pauses, busy }
    }

    /// Returns the length of the axis, in seconds.
    pub(super) fn length(&self) -> f64 {
        let last = self.stretches.last().map_or(0.0, |last| last.place + last.to - last.from);
        if last > 0.0 { last } else { 1.0 }
    }

    /// Returns the total time in which something was active, in seconds.
    pub(super) fn busy_secs(&self) -> f64 {
        self.busy
    }

    /// Returns the position of a time on the axis; for a time within a pause that was cut out, the position
    /// of the pause's start.
    pub(super) fn place(&self, at: Timestamp) -> f64 {
        let at = secs(at);
        let Some(stretch) = self.stretches.iter().rfind(|stretch| stretch.from <= at) else { return 0.0 };
        stretch.place + (at - stretch.from).min(stretch.to - stretch.from)
    }

    /// Returns whether a pause was cut out between two times.
    pub(super) fn has_pause(&self, from: Timestamp, to: Timestamp) -> bool {
        self.pauses.iter().any(|pause| pause.from >= from && pause.from < to)
    }

    /// Returns the positions of ticks with their times, far enough apart to be readable: the start of each
    /// stretch, and further positions if there is enough space.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, Timestamp)> {
        let apart = self.length() / MOST_TICKS as f64;
        let mut ticks: Vec<(f64, f64)> = Vec::new();
        for stretch in &self.stretches {
            let mut at = 0.0;
            while at <= stretch.to - stretch.from {
                let place = stretch.place + at;
                if ticks.last().is_none_or(|(last, _)| place - last >= apart * 0.98) {
                    ticks.push((place, stretch.from + at));
                }
                at += apart;
            }
        }
        // A label at the right end would be truncated.
        let most = self.length() * 0.94;
        let shown = ticks.into_iter().enumerate().filter(move |(number, (place, _))| *number == 0 || *place <= most);
        shown.filter_map(|(_, (place, at))| Some((place, Timestamp::from_nanosecond((at * 1e9) as i128).ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + secs).expect("an instant")
    }

    #[test]
    fn short_pauses_stay_and_long_ones_are_cut_out() {
        let short = Stretches::of([(at(0), at(100)), (at(110), at(200))].into_iter());
        assert_eq!((short.pauses.len(), short.length(), short.busy_secs()), (0, 200.0, 190.0));
        assert_eq!(short.place(at(105)), 105.0);
        let long = Stretches::of([(at(0), at(100)), (at(5_000), at(5_100))].into_iter());
        assert_eq!((long.pauses.len(), long.pauses[0].secs), (1, 4_900));
        assert_eq!((long.place(at(100)), long.place(at(3_000))), (100.0, 100.0));
        assert!(long.place(at(5_000)) > 100.0 && long.length() < 210.0);
        assert!(long.has_pause(at(50), at(5_001)) && !long.has_pause(at(5_001), at(5_050)));
        assert!(long.ticks().count() >= 2);
    }

    #[test]
    fn an_instant_has_an_axis_too() {
        let one = Stretches::of([(at(3), at(3))].into_iter());
        assert_eq!((one.length(), one.place(at(3))), (1.0, 0.0));
        assert_eq!(one.ticks().count(), 1);
    }
}
