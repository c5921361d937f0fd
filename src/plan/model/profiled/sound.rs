//! Validates a profile, because files may come from anywhere.

use crate::dataset::profile::{PROFILE_VERSION, Profile};

/// Maximum number of ranges in a valid profile; `dataset profile` writes a few hundred.
const MOST_RANGES: usize = 10_000;
/// Maximum count; larger counts are not counts of requests.
const MOST_REQUESTS: u64 = 1_000_000_000_000;
/// Thirty years, the longest valid time.
const MOST_SECONDS: f64 = 1e9;

/// Returns the error of an invalid profile.
pub(crate) fn check(profile: &Profile) -> Result<(), String> {
    let Profile { sweepline_profile, k: _, requests: _, lengths, arrivals, prefixes, turns } = profile;
    if *sweepline_profile != PROFILE_VERSION {
        return Err(format!("its version is {sweepline_profile}, but this sweepline reads version {PROFILE_VERSION}"));
    }
    let stretches = arrivals.iter().flat_map(|arrivals| &arrivals.stretches);
    let classes = prefixes.iter().flat_map(|prefixes| &prefixes.classes);
    let of_turns = turns.iter().flat_map(|turns| &turns.buckets);
    let counts = lengths.buckets.iter().map(|bucket| bucket.requests);
    let counts = counts.chain(stretches.clone().map(|stretch| stretch.requests));
    let counts = counts.chain(classes.clone().map(|class| class.requests));
    let counts: Vec<u64> = counts.chain(of_turns.clone().map(|bucket| bucket.conversations)).collect();
    if counts.len() > MOST_RANGES {
        return Err(format!("it has more than {MOST_RANGES} ranges"));
    }
    if let Some(count) = counts.iter().find(|count| **count > MOST_REQUESTS) {
        return Err(format!("{count} requests in one range are too many"));
    }
    let backwards = lengths
        .buckets
        .iter()
        .any(|bucket| bucket.prompt[0] > bucket.prompt[1] || bucket.output.is_some_and(|output| output[0] > output[1]));
    if backwards || of_turns.clone().any(|bucket| bucket.turns[0] > bucket.turns[1] || bucket.turns[0] == 0) {
        return Err("one of its ranges ends before it begins".to_owned());
    }
    if let Some(class) = classes.clone().find(|class| class.groups > class.requests) {
        return Err(format!("{} groups of {} requests are impossible", class.groups, class.requests));
    }
    let share = prefixes.as_ref().map_or(0.0, |prefixes| prefixes.reusable_share);
    if !(0.0..=1.0).contains(&share) {
        return Err(format!("`reusable_share` must be a share from 0 to 1, not {share}"));
    }
    let times = stretches.map(|stretch| stretch.seconds);
    if let Some(seconds) = times.clone().find(|seconds| !(0.0..=MOST_SECONDS).contains(seconds)) {
        return Err(format!("a stretch of {seconds} seconds is impossible"));
    }
    let cv = arrivals.as_ref().map_or(0.0, |arrivals| arrivals.gap_cv);
    if !(0.0..=1e6).contains(&cv) {
        return Err(format!("`gap_cv` must not be {cv}"));
    }
    Ok(())
}
