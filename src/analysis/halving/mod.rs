//! Finds the best of several configurations in less time than it takes to run all of them at full
//! length, by successive halving over run lengths (Jamieson and Talwalkar, *Non-stochastic best arm
//! identification and hyperparameter optimization*, AISTATS 2016; Karnin, Koren and Somekh, *Almost
//! optimal exploration in multi-armed bandits*, ICML 2013). Every configuration gets a run; the best third
//! advances to the next rung, where runs are three times as long, and so on. No configuration is eliminated by chance
//! alone: if its interval overlaps with that of the last configuration that advances, it advances too,
//! and the budget bounds the cost. A configuration that can be at most about 3 % better than the best
//! estimate does not get a longer run. The estimate of a configuration combines its runs from all rungs.
//!
//! A run that the client spoiled provides no evidence about its configuration, so it is repeated; a
//! configuration for which there is still no evidence is reported as unknown. With an objective, a
//! configuration that is shown to miss the objective is eliminated, and only a configuration whose
//! observed value meets it can be the best. If the observed value meets the objective but the test is
//! undecided, the configuration gets a longer run. If a configuration is eliminated because it misses
//! the objective, the configurations that were excluded in its favor are brought back.
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
