//! Which of several configurations is best, in less time than all of them at full length: successive
//! halving over run lengths (Jamieson and Talwalkar, *Non-stochastic best arm identification and
//! hyperparameter optimization*, AISTATS 2016; Karnin, Koren and Somekh, *Almost optimal exploration in
//! multi-armed bandits*, ICML 2013). Every configuration gets a run; the best third advances to runs
//! three times as long, and so on. No configuration is eliminated by chance alone: one whose interval
//! reaches that of the last of the third advances with it, and the budget bounds the cost. A
//! configuration that is at most about 3 % better than the best estimate gets no longer run either. All
//! measurements count to the end.
//!
//! A run that the client spoiled is no evidence on its configuration: it is repeated, and a
//! configuration that remains unknown is reported as such. With an objective, a configuration that is
//! shown to miss it is eliminated, the best one is one that was observed to meet it, and anything its
//! runs do not show gets a longer run. Configurations that were excluded in favor of one that misses
//! come back.
//!
//! Pure: no clock, no random numbers. A resumed sweep replays its decisions from the runs. How often it
//! is right: `docs/SEARCH.md`.

mod decide;
mod question;
mod rank;

pub use decide::{AGAIN, next, stands};
pub use question::{End, Estimate, Meets, Next, Outcome, Question, Says, Seen, Stands};
pub use rank::estimates;

#[cfg(test)]
mod tests;
