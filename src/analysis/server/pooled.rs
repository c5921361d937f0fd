//! Combines the sums of the repeats of one load into the mean over all their requests.

use super::parts::{DECODE, NETWORK, OUTSIDE, Part, STALLS, UNASSIGNED, UNKNOWN, Whole, is_missing};

impl Whole {
    /// Combines the sums of several runs; `None` without runs. A part that is unknown in one run is
    /// unknown for all of them, and its time is then included in `unknown`.
    pub fn pooled(wholes: &[&Whole]) -> Option<Whole> {
        if let [one] = wholes {
            return Some((*one).clone());
        }
        // If one of the runs lacks the network time, the network time of all runs is counted as part of
        // the rest outside the server.
        let knows = |whole: &&Whole| whole.parts.iter().any(|part| part.name == NETWORK.0);
        let is_known = wholes.iter().all(knows);
        let mut wholes: Vec<Whole> =
            wholes.iter().map(|whole| if is_known { (*whole).clone() } else { whole.without_network() }).collect();
        if wholes.iter().any(|whole| whole.part_ms(STALLS.0).is_none()) {
            wholes.iter_mut().for_each(Whole::put_stalls_back);
        }
        let first = wholes.first()?;
        let requests: u64 = wholes.iter().map(|whole| whole.requests).sum();
        let weighted = |value: &dyn Fn(&Whole) -> Option<f64>| {
            let sum: f64 =
                wholes.iter().map(|whole| Some(value(whole)? * whole.requests as f64)).sum::<Option<f64>>()?;
            (requests > 0).then(|| sum / requests as f64)
        };
        let mean_ms = weighted(&|whole| Some(whole.mean_ms))?;
        let is_left = |name: &str| name == UNASSIGNED.0 || name == UNKNOWN.0;
        let why = |name: &str| {
            let of = |whole: &Whole| whole.parts.iter().find(|part| part.name == name)?.ms.clone().err();
            wholes.iter().find_map(of).unwrap_or_else(|| "a repeat does not have it".to_owned())
        };
        let mut parts: Vec<Part> = first.parts.clone();
        for part in &mut parts {
            part.ms = weighted(&|whole| whole.part_ms(part.name)).ok_or_else(|| why(part.name));
        }
        let decode_is_known = parts.iter().any(|part| part.name == DECODE.0 && part.ms.is_ok());
        let is_missing =
            parts.iter().any(|part| !is_left(part.name) && is_missing(part.name, &part.ms, decode_is_known));
        let known: f64 = parts.iter().filter(|part| !is_left(part.name)).filter_map(|part| part.ms.as_ref().ok()).sum();
        let is_told = wholes.iter().all(|whole| whole.part_ms(UNKNOWN.0).is_some());
        for part in parts.iter_mut().filter(|_| is_missing) {
            if part.name == UNKNOWN.0 && is_told {
                part.ms = Ok(mean_ms - known);
            } else if part.name == UNASSIGNED.0 {
                part.ms = Err("unknown while another part is missing".to_owned());
            }
        }
        Some(Whole { name: first.name, requests, mean_ms, parts })
    }

    /// Returns the sum with the network time included in the rest outside the server.
    fn without_network(&self) -> Whole {
        let mut whole = self.clone();
        let Some(network) = self.part_ms(NETWORK.0) else { return whole };
        whole.parts.retain(|part| part.name != NETWORK.0);
        let outside = whole.parts.iter_mut().filter(|part| part.name == OUTSIDE.0);
        outside.for_each(|part| part.ms = part.ms.clone().map(|ms| ms + network));
        whole
    }

    /// Adds the stalls back to the decode time, from which they were subtracted.
    fn put_stalls_back(&mut self) {
        let (Some(stalls), Some(decode)) = (self.part_ms(STALLS.0), self.part_ms(DECODE.0)) else { return };
        for part in &mut self.parts {
            match part.name {
                name if name == DECODE.0 => part.ms = Ok(decode + stalls),
                name if name == STALLS.0 => part.ms = Err("a repeat does not have them".to_owned()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(requests: u64, mean_ms: f64, parts: &[(&'static str, Option<f64>)]) -> Whole {
        let part = |(name, ms): &(&'static str, Option<f64>)| Part {
            name,
            doc: "",
            ms: ms.ok_or_else(|| "a scrape failed".to_owned()),
        };
        Whole { name: "ttft", requests, mean_ms, parts: parts.iter().map(part).collect() }
    }

    #[test]
    fn repeats_count_by_their_requests() {
        let one = whole(100, 10.0, &[("queue", Some(4.0)), ("server_unassigned", Some(6.0)), ("unknown", Some(0.0))]);
        let two = whole(300, 30.0, &[("queue", Some(8.0)), ("server_unassigned", Some(22.0)), ("unknown", Some(0.0))]);
        let pooled = Whole::pooled(&[&one, &two]).unwrap();
        assert_eq!((pooled.requests, pooled.mean_ms, pooled.part_ms("queue")), (400, 25.0, Some(7.0)));
        assert_eq!((pooled.part_ms("server_unassigned"), pooled.part_ms("unknown")), (Some(18.0), Some(0.0)));
        assert_eq!(Whole::pooled(&[&one]).unwrap(), one);
        assert_eq!(Whole::pooled(&[]), None);
    }

    #[test]
    fn a_network_that_one_repeat_does_not_know_is_outside_of_all() {
        let one = whole(100, 10.0, &[("network", Some(2.0)), ("outside_server", Some(8.0)), ("unknown", Some(0.0))]);
        let two = whole(100, 30.0, &[("outside_server", Some(30.0)), ("unknown", Some(0.0))]);
        for pooled in [Whole::pooled(&[&one, &two]).unwrap(), Whole::pooled(&[&two, &one]).unwrap()] {
            let parts: Vec<_> = pooled.parts.iter().map(|part| (part.name, part.ms.clone().unwrap())).collect();
            assert_eq!(parts, [("outside_server", 20.0), ("unknown", 0.0)]);
        }
        assert_eq!(Whole::pooled(&[&one, &one]).unwrap().part_ms("network"), Some(2.0));
    }

    #[test]
    fn stalls_that_one_repeat_does_not_know_are_in_the_decode_of_all() {
        let of =
            |decode, stalls| whole(100, 30.0, &[("decode", Some(decode)), ("stalls", stalls), ("unknown", Some(0.0))]);
        let (one, two) = (of(20.0, Some(10.0)), of(30.0, None));
        for pooled in [Whole::pooled(&[&one, &two]).unwrap(), Whole::pooled(&[&two, &one]).unwrap()] {
            let parts = ["decode", "stalls", "unknown"].map(|name| pooled.part_ms(name));
            assert_eq!(parts, [Some(30.0), None, Some(0.0)]);
        }
        assert_eq!(Whole::pooled(&[&one, &one]).unwrap().part_ms("stalls"), Some(10.0));
    }

    #[test]
    fn what_one_repeat_does_not_know_is_unknown_of_all() {
        let one = whole(100, 10.0, &[("client", Some(1.0)), ("queue", Some(4.0)), ("unknown", Some(0.0))]);
        let two = whole(100, 30.0, &[("client", Some(3.0)), ("queue", None), ("unknown", Some(27.0))]);
        let pooled = Whole::pooled(&[&one, &two]).unwrap();
        assert_eq!((pooled.part_ms("client"), pooled.part_ms("queue")), (Some(2.0), None));
        assert_eq!(pooled.part_ms("unknown"), Some(18.0), "the queue of the first is not claimed for both");
        assert_eq!(pooled.parts[1].ms, Err("a scrape failed".to_owned()));
        assert!((pooled.assigned_share().unwrap() - 0.1).abs() < 1e-9);
        // If the parts of one repeat exceed its whole, the remainder of all repeats together is unknown.
        let three = whole(100, 30.0, &[("client", Some(3.0)), ("queue", None), ("unknown", None)]);
        assert_eq!(Whole::pooled(&[&one, &three]).unwrap().part_ms("unknown"), None);
    }
}
