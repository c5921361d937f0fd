//! Anonymous profiles that a scenario replays: lengths, arrivals, shared prefixes and turns, as written by
//! `dataset profile`.
//!
//! The file is read when the plan is loaded, and converted to settings that a plan could also contain
//! directly: a table of lengths, steps of a rate, shares of prompts with common prefixes, and a table of
//! turns. These are part of a run's identity; the file's name and format are not.

pub(crate) mod arrivals;
pub(crate) mod file;
pub(crate) mod lengths;
pub(crate) mod sharing;
pub(crate) mod sound;
pub(crate) mod turns;

pub(crate) use crate::plan::model::profiled::arrivals::Recorded;
pub(crate) use crate::plan::model::profiled::sharing::{Sharing, coupled};
pub(crate) use crate::plan::model::profiled::turns::TurnCount;

use std::sync::Arc;

use crate::dataset::profile::Profile;
use crate::plan::model::lengths::resolved::{Joint, Rows};
use crate::units::Decimal;

/// The requests that a profile describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiled {
    /// Lengths of prompts and responses; one token for responses of unknown length.
    pub lengths: Rows<Joint>,
    /// The number of requests with unknown response length, and the number of all requests.
    pub(crate) without_output: (u64, u64),
    /// The arrivals, if the profile has times.
    pub arrivals: Option<Arc<Recorded>>,
    /// How much text prompts share at their beginnings, if any.
    pub sharing: Option<Rows<Sharing>>,
    /// The numbers of turns of conversations, if the entries of the profiled log were conversations.
    pub turns: Option<Rows<TurnCount>>,
}

impl Profiled {
    /// Converts `profile`, replayed at `speed` times its recorded speed; returns an error if the
    /// profile is not usable.
    pub(crate) fn new(profile: &Profile, speed: Decimal) -> Result<Profiled, String> {
        sound::check(profile)?;
        let lengths = lengths::rows(&profile.lengths)?;
        let buckets = &profile.lengths.buckets;
        let untold = buckets.iter().filter(|bucket| bucket.output.is_none()).map(|bucket| bucket.requests).sum();
        let all = buckets.iter().map(|bucket| bucket.requests).sum();
        Ok(Profiled {
            without_output: (untold, all),
            arrivals: profile.arrivals.as_ref().and_then(|one| Recorded::new(one, speed)).map(Arc::new),
            sharing: profile.prefixes.as_ref().and_then(|one| sharing::rows(one, &lengths)),
            turns: profile.turns.as_ref().and_then(turns::rows),
            lengths,
        })
    }
}
