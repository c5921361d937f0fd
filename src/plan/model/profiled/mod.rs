//! Anonymous profiles that a scenario replays: lengths, arrivals, shared beginnings and turns, as `dataset profile` wrote them.
//!
//! The file is read when the plan is loaded and becomes what a plan could say itself: a table of lengths, steps of a rate, shares of
//! prompts with common beginnings, a table of turns. These are what a run is; the file's name and its form are not.

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

/// What a profile says of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiled {
    /// Lengths of prompts and answers; of answers that the profile does not tell, one token.
    pub lengths: Rows<Joint>,
    /// Requests of which the profile does not tell how long the answers are, of how many.
    pub(crate) without_output: (u64, u64),
    /// When requests come, where the profile has times.
    pub arrivals: Option<Arc<Recorded>>,
    /// What prompts have in common at their beginnings, where they have.
    pub sharing: Option<Rows<Sharing>>,
    /// Turns of conversations, where entries were conversations.
    pub turns: Option<Rows<TurnCount>>,
}

impl Profiled {
    /// What `profile` says, `speed` times as fast as it was recorded; else what is wrong with it.
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
