//! Which of several configurations is best, in less time than all of them at full length: successive halving over the lengths of runs
//! (Jamieson and Talwalkar, *Non-stochastic best arm identification and hyperparameter optimization*, AISTATS 2016; Karnin, Koren and Somekh,
//! *Almost optimal exploration in multi-armed bandits*, ICML 2013). Every configuration has a run; the best third goes on to runs three times as
//! long, and so on. Nothing is cut on luck: a configuration whose interval reaches that of the last of the third goes on with it, and the
//! budget bounds what that costs. Whoever is hardly more than 3 % better than the best estimate has no longer run either. What was measured on the way counts to the end.
//!
//! A run that the client spoiled says nothing of its configuration: it is made once more, and a configuration of which nothing is known in
//! the end is said to be so. Where an objective is asked, a configuration that is shown to miss it is none, the best is one that met it as
//! observed, and what its runs do not show has a longer run. Configurations that were left out for one that misses come back.
//!
//! Pure: no clock, no random numbers. A sweep that is resumed replays its decisions from the runs. How often it is right: `docs/SEARCH.md`.

mod decide;
mod question;
mod rank;

pub use decide::{AGAIN, next, stands};
pub use question::{End, Estimate, Meets, Next, Outcome, Question, Says, Seen, Stands};
pub use rank::estimates;

#[cfg(test)]
mod tests;
