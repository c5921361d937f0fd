//! How the time of a run's requests is divided: their mean TTFT and mean E2E, both from the schedule, as
//! sums of parts.
//!
//! Most servers count queue, prefill, decode and end-to-end times when a request ends, so the sums cover
//! the requests that ended in the window. Servers count their own time to first token when that token is
//! produced. It is therefore compared with the client's TTFT of the requests whose first token arrived
//! in the window, and the difference is time outside the server. If an exporter's table specifies
//! otherwise, each histogram is compared with the requests that it covers.
//!
//! If the responses themselves report the server's times (`told`), these times belong to exactly the
//! requests of the sum and take precedence over histograms.

use crate::analysis::request::Metric;
use crate::analysis::stalls::Stalls;
use crate::analysis::window::{contains, request};
use crate::rows::{Facts, Measured};
use crate::telemetry::engines::{Moment, moment};

use super::scraped::{Counted, Scraped};
use super::told::told_mean_ms;

/// Maximum relative difference between the counts of client and server. If they differ by more, the server's
/// mean covers other requests than the client's. The value was chosen, not measured.
const ALIKE: f64 = 0.05;
/// A negative part is within the accuracy of means if it is no more than the share `NOISE` of the whole,
/// or `NOISE_MS` milliseconds, below zero. The values were chosen; the mock's means lie within 0.5 ms of its
/// log (`benches/way.py`).
const NOISE: f64 = 0.02;
const NOISE_MS: f64 = 1.0;

/// A mean latency from the schedule, and its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Name: `ttft` or `e2e`.
    pub name: &'static str,
    /// Number of requests over which the mean is taken.
    pub requests: u64,
    /// The mean, in milliseconds.
    pub mean_ms: f64,
    /// The parts of the mean; the known parts add up to the mean.
    pub parts: Vec<Part>,
}

/// One part of a mean latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The name of the part in tables: `queue`.
    pub name: &'static str,
    /// The meaning of the part.
    pub doc: &'static str,
    /// Mean milliseconds per request, or why they are unknown.
    pub ms: Result<f64, String>,
}

impl Whole {
    /// Returns the mean milliseconds of the part of this name; `None` if unknown.
    pub fn part_ms(&self, name: &str) -> Option<f64> {
        self.parts.iter().find(|part| part.name == name)?.ms.as_ref().ok().copied()
    }

    /// Returns the share of the whole that is assigned to parts, which excludes unassigned and unknown
    /// time; `None` if the unassigned time is unknown.
    pub fn assigned_share(&self) -> Option<f64> {
        let unknown = self.part_ms(UNKNOWN.0)?;
        // If the unassigned part is unknown, its time is included in the unknown part.
        let unassigned = self.part_ms(UNASSIGNED.0).unwrap_or(0.0);
        (self.mean_ms > 0.0).then(|| 1.0 - (unknown.abs() + unassigned.abs()) / self.mean_ms)
    }
}

impl Whole {
    /// Returns the mean and its parts as columns with name, unit, meaning and value.
    pub fn columns(&self) -> Vec<(String, &'static str, String, Option<f64>)> {
        let Whole { name, requests, mean_ms, parts } = self;
        let title = name.to_uppercase();
        let or_begun =
            if *name == "ttft" { " (with SGLang: of the requests whose first token came in the window)" } else { "" };
        let of_all = format!("Mean {title} from the schedule of the requests that ended in the window{or_begun}.");
        let count = format!("Number of requests that the parts of {title} cover.");
        let share = format!("Share of mean {title} that is neither unassigned nor unknown.");
        let first = [
            (format!("{name}_requests"), "", count, Some(*requests as f64)),
            (format!("{name}_mean_ms"), "ms", of_all, Some(*mean_ms)),
        ];
        let part = |part: &Part| {
            let doc = format!("Part of mean {title}. {}", part.doc);
            (format!("{name}_{}_ms", part.name), "ms", doc, part.ms.as_ref().ok().copied())
        };
        let share = (format!("{name}_assigned_share"), "share", share, self.assigned_share());
        first.into_iter().chain(parts.iter().map(part)).chain([share]).collect()
    }
}

pub(super) type Named = (&'static str, &'static str);

const CLIENT: Named = ("client", "From the schedule to sending, without connecting: the in-flight cap and lateness.");
const CONNECTION: Named =
    ("connection", "Name lookup, TCP and TLS handshake if a connection was opened for a request; else 0.");
pub(super) const NETWORK: Named =
    ("network", "One round trip to the server, measured by TCP under load: the way there and back.");
pub(super) const OUTSIDE: Named = (
    "outside_server",
    "From sending to receiving, minus the server's own time and, if known, one round trip: proxies, HTTP handling.",
);
const QUEUE: Named = ("queue", "In the server's queue, as the server reports it.");
const PREFILL: Named = ("prefill", "Prefill, as the server reports it.");
pub(super) const DECODE: Named =
    ("decode", "From the first token to the last, as the server reports it, minus stalls if they are known.");
pub(super) const STALLS: Named = (
    "stalls",
    "Excess over the median of the response's gaps between tokens, for gaps longer than five times the median, \
     as the client observed them.",
);
pub(super) const UNASSIGNED: Named =
    ("server_unassigned", "In the server according to its own total time, but in none of the other parts.");
pub(super) const UNKNOWN: Named = ("unknown", "The rest of the whole if a part is unknown; 0 if all parts are known.");

/// The data for one sum: the time outside the server, and the parts inside it.
struct Told {
    /// The client's time from sending minus the server's own time.
    outside: Result<f64, String>,
    /// The round trip to the server, in milliseconds; `None` if it was not measured.
    network: Option<f64>,
    parts: Vec<(Named, Result<f64, String>)>,
}

/// Returns the mean TTFT and the mean E2E of the requests that ended in the window, as sums. If the
/// server counts the parts of TTFT at the first token, the TTFT covers the requests whose first token
/// arrived in the window. Empty if nothing was scraped or no request ended; there is no TTFT if
/// responses were not streamed.
pub(super) fn wholes(scraped: &Scraped, rows: &[Measured], facts: &Facts, stalls: &Stalls) -> Vec<Whole> {
    let members = Members::of(rows, facts);
    let told = |key: &str| members.mean_of(scraped, key);
    let [queue, prefill, decode] = ["queue_seconds", "prefill_seconds", "decode_seconds"].map(told);
    let since_sent = |row: &&Measured| request(row, facts).observe(Metric::E2e).value();

    let network = scraped.round_trips.under_load_ms().and_then(Result::ok);
    let begun = members.of_histogram("ttft_seconds").map(|rows| rows.iter().filter_map(|row| first_token_ms(row)));
    let outside = told("ttft_seconds").and_then(|own| outside(mean(begun?), own, "TTFT"));
    let parts = vec![(QUEUE, queue.clone()), (PREFILL, prefill.clone())];
    // Requests whose prefill the server counted in the window.
    let of_prefill = members.of_histogram("prefill_seconds").unwrap_or(&members.ended);
    let ttft = observed(of_prefill, Metric::TtftFromSchedule, facts);
    let ttft = whole("ttft", (&ttft, Metric::TtftFromSchedule), Told { outside, network, parts }, facts);

    let answered = observed(&members.ended, Metric::E2eFromSchedule, facts);
    let own = told("e2e_seconds");
    let seen = mean(answered.iter().filter_map(since_sent));
    let outside = own.and_then(|own| self::outside(seen, own, "E2E"));
    let (decode, stalls) = decode_and_stalls(decode, stalls, facts.stream);
    let parts = vec![(QUEUE, queue), (PREFILL, prefill), (DECODE, decode), (STALLS, stalls)];
    let e2e = whole("e2e", (&answered, Metric::E2eFromSchedule), Told { outside, network, parts }, facts);
    ttft.into_iter().chain(e2e).collect()
}

/// The requests of the window, grouped by when a server counts them.
struct Members<'a> {
    /// Requests that ended successfully in the window.
    ended: Vec<&'a Measured>,
    /// Requests whose first token arrived in the window.
    begun: Vec<&'a Measured>,
    /// The exporters whose histograms the scraped pages contain.
    exporters: Vec<&'a str>,
}

impl<'a> Members<'a> {
    fn of(rows: &'a [Measured], facts: &'a Facts) -> Members<'a> {
        let in_window = |instant: Option<u64>| instant.is_some_and(|at| contains(&facts.windows, at));
        let exporters = facts.telemetry.iter().flat_map(|telemetry| telemetry.exporters.iter().flatten());
        Members {
            ended: rows.iter().filter(|row| row.outcome.is_ok() && in_window(row.done_ns())).collect(),
            begun: rows.iter().filter(|row| first_token_ms(row).is_some() && in_window(row.first_token_ns())).collect(),
            exporters: exporters.map(String::as_str).collect(),
        }
    }

    /// Returns the requests that a histogram covers.
    fn of_histogram(&self, key: &str) -> Result<&[&'a Measured], String> {
        let first = moment(self.exporters.first().copied(), key);
        if self.exporters.iter().any(|exporter| moment(Some(exporter), key) != first) {
            return Err(format!("the servers behind the pages count {key} at different moments"));
        }
        Ok(match first {
            Moment::FirstToken => &self.begun,
            Moment::End => &self.ended,
        })
    }

    /// Returns the mean that the responses themselves report for the quantity of a histogram, or else
    /// the mean of the histogram, in milliseconds.
    fn mean_of(&self, scraped: &Scraped, key: &str) -> Result<f64, String> {
        match told_mean_ms(self.of_histogram(key)?, key) {
            Some(Ok(ms)) => Ok(ms),
            Some(Err(few)) => self.mean_of_histogram(scraped, key).map_err(|why| format!("{why}; {few}")),
            None => self.mean_of_histogram(scraped, key),
        }
    }

    /// Returns the mean of a histogram in milliseconds, if it counted as many requests as the client.
    fn mean_of_histogram(&self, scraped: &Scraped, key: &str) -> Result<f64, String> {
        let counted = scraped.histogram(key).ok_or_else(|| format!("no page has {key}"))?;
        let Counted { mean, count } = counted?;
        let client = self.of_histogram(key)?.len();
        if (count - client as f64).abs() > ALIKE * client as f64 {
            return Err(format!("{key} counted {count:.0} requests in the window, the client {client}"));
        }
        Ok(mean * 1e3)
    }
}

/// Returns the server's decode time without stalls, and the stalls. If the stalls are unknown, they stay
/// part of the decode time.
fn decode_and_stalls(
    decode: Result<f64, String>,
    stalls: &Stalls,
    stream: bool,
) -> (Result<f64, String>, Result<f64, String>) {
    let stalls = match stalls.mean_ms() {
        _ if !stream => Err("responses were not streamed".to_owned()),
        Some(ms) if stalls.unknown as f64 <= ALIKE * (stalls.known + stalls.unknown) as f64 => Ok(ms),
        _ => {
            let (unknown, all) = (stalls.unknown, stalls.known + stalls.unknown);
            Err(format!("{unknown} of {all} responses have no steady pace"))
        }
    };
    match (decode, stalls) {
        (Ok(decode), Ok(stalls)) => {
            let why = || format!("stalls are {stalls:.1} ms, the server's decode only {decode:.1} ms");
            match not_below(decode - stalls, decode, why) {
                Ok(rest) => (Ok(rest), Ok(stalls)),
                Err(why) => (Ok(decode), Err(why)),
            }
        }
        other => other,
    }
}

/// Returns whether a missing part leaves time unknown. Missing stalls leave no time unknown if the decode
/// time, which contains them, is known.
pub(super) fn is_missing(name: &str, ms: &Result<f64, String>, decode_is_known: bool) -> bool {
    ms.is_err() && !(name == STALLS.0 && decode_is_known)
}

/// Returns the rows that have a metric.
fn observed<'a>(rows: &[&'a Measured], metric: Metric, facts: &Facts) -> Vec<&'a Measured> {
    rows.iter().filter(|row| request(row, facts).observe(metric).value().is_some()).copied().collect()
}

fn first_token_ms(row: &Measured) -> Option<f64> {
    Some(millis(row.first_token_ns()?, row.sent_ns()?))
}

fn millis(to: u64, from: u64) -> f64 {
    (to as f64 - from as f64) / 1e6
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Returns the client's time from sending minus the server's own time.
fn outside(client: Option<f64>, server: f64, what: &str) -> Result<f64, String> {
    let client = client.ok_or_else(|| format!("no request of the window has a {what}"))?;
    not_below(client - server, client, || {
        format!("the server's own {what} of {server:.1} ms exceeds the client's of {client:.1} ms")
    })
}

/// Returns the time outside the server: the network time, if it was measured, and the rest. If the
/// network time is unknown, it is part of the rest. A round trip that is longer than all the time
/// outside the server did not belong to these requests.
fn outside_parts(network: Option<f64>, outside: Result<f64, String>) -> Vec<(Named, Result<f64, String>)> {
    let Some(network) = network else { return vec![(OUTSIDE, outside)] };
    match outside {
        Err(why) => vec![(NETWORK, Ok(network)), (OUTSIDE, Err(why))],
        Ok(outside) if outside - network < -NOISE_MS => vec![(OUTSIDE, Ok(outside))],
        Ok(outside) => vec![(NETWORK, Ok(network)), (OUTSIDE, Ok(outside - network))],
    }
}

/// Returns a remainder, or an error if it is below zero by more than the accuracy of means.
fn not_below(left: f64, whole: f64, why: impl FnOnce() -> String) -> Result<f64, String> {
    if left < -(NOISE * whole).max(NOISE_MS) { Err(why()) } else { Ok(left) }
}

fn whole(name: &'static str, (rows, metric): (&[&Measured], Metric), told: Told, facts: &Facts) -> Option<Whole> {
    let of = |value: &dyn Fn(&Measured) -> Option<f64>| mean(rows.iter().filter_map(|row| value(row)));
    let mean_ms = of(&|row| request(row, facts).observe(metric).value())?;
    let connection = of(&|row| Some(row.connecting_ns().unwrap_or(0) as f64 / 1e6))?;
    let client = of(&|row| Some(millis(row.sent_ns()?, row.scheduled_ns)))? - connection;
    let mut parts = vec![(CLIENT, Ok(client)), (CONNECTION, Ok(connection))];
    parts.extend(outside_parts(told.network, told.outside));
    parts.extend(told.parts);
    let decode_is_known = parts.iter().any(|((name, _), ms)| *name == DECODE.0 && ms.is_ok());
    let is_one = |((name, _), ms): &&(Named, Result<f64, String>)| is_missing(name, ms, decode_is_known);
    let missing: Vec<&str> = parts.iter().filter(is_one).map(|((name, _), _)| *name).collect();
    let left = mean_ms - parts.iter().filter_map(|(_, ms)| ms.as_ref().ok()).sum::<f64>();
    let rest = not_below(left, mean_ms, || format!("the parts exceed the whole by {:.1} ms", -left));
    let (unassigned, unknown) = match missing.as_slice() {
        [] => {
            let unknown = rest.clone().map(|_| 0.0);
            (rest, unknown)
        }
        missing => (Err(format!("unknown without {}", missing.join(", ").replace('_', " "))), rest),
    };
    parts.extend([(UNASSIGNED, unassigned), (UNKNOWN, unknown)]);
    let parts = parts.into_iter().map(|((name, doc), ms)| Part { name, doc, ms }).collect();
    Some(Whole { name, requests: rows.len() as u64, mean_ms, parts })
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
