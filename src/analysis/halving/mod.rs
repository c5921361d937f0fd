//! Finds the best of several configurations in less time than it takes to run all of them at full
//! length, by successive halving over run lengths (Jamieson and Talwalkar, *Non-stochastic best arm
//! identification and hyperparameter optimization*, AISTATS 2016; Karnin, Koren and Somekh, *Almost
//! optimal exploration in multi-armed bandits*, ICML 2013). Every configuration gets a run; the best
//! third advances to runs three times as long, and so on. No configuration is eliminated by chance
//! alone: if its interval overlaps with that of the last configuration that advances, it advances too,
//! and the budget bounds the cost. A configuration that can be at most about 3 % better than the best
//! estimate does not get a longer run. All measurements count until the end.
//!
//! A run that the client spoiled provides no evidence on its configuration, so it is repeated; a
//! configuration that remains unknown is reported as such. With an objective, a configuration that is
//! shown to miss it is eliminated, and only a configuration that was observed to meet it can be the
//! best. If its runs do not show that it meets the objective, it gets a longer run. Configurations that
//! were excluded in favor of a configuration that misses are brought back.
//!
//! The code is pure: it uses no clock and no random numbers. A resumed sweep replays its decisions from
//! the runs. `docs/SEARCH.md` lists how often the result is right.

mod decide;
mod question;
mod rank;

pub use decide::{AGAIN, next, stands};
pub use question::{End, Estimate, Meets, Next, Outcome, Question, Says, Seen, Stands};
pub use rank::estimates;

#[cfg(test)]
mod tests;
