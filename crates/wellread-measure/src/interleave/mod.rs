//! Runs variants interleaved, in random order, so that what disturbs the machine disturbs all of them alike.
//!
//! Measured one after the other, whatever ran while the machine was warm, throttled or shared looks slow. A
//! [`Plan`] therefore goes in rounds: every round runs every variant once, in a freshly shuffled (seeded)
//! order. The first rounds are warm-up and kept apart. Values of one round are pairs
//! ([`crate::intervals::Pairing::Paired`]).
//!
//! A **twin** ([`Plan::twin`]) is a second, hidden turn of the same closure in each round: an A/A pair. The
//! interval of its ratio to the visible turn is the run's noise floor ([`Outcome::noise_floor`]). [`Plan::twin_of_each`] repeats
//! another variant in each round, so that no single noisy variant decides for all.
//!
//! A variant that fails or panics is recorded with its message, gets no further turns, and the others go on. A time
//! budget stops after a whole round, never within one, and not before the fewest rounds asked for. A plan that must
//! keep to its budget ([`Plan::fit`]) leaves variants out where not even one round of all of them fits. Warm-up takes
//! half of the budget at most, and its times predict the first round. Left-out variants run after all at the end of the
//! first measured round, where that has left time: variants matter more than further rounds.
//!
//! ```
//! use wellread_measure::{intervals::IntervalEstimator, interleave::Plan, clock::time};
//!
//! let data: Vec<u64> = (0..20_000).map(|i| i * 2_654_435_761 % 65_536).collect();
//! let outcome = Plan::new(42)
//!     .rounds(8)
//!     .warmup(1)
//!     .add("stable", || Ok::<f64, String>(time(|| { let mut d = data.clone(); d.sort(); d }).1))
//!     .add("unstable", || Ok::<f64, String>(time(|| { let mut d = data.clone(); d.sort_unstable(); d }).1))
//!     .twin("stable")
//!     .run(|_progress| ())?;
//! let estimator = IntervalEstimator::seeded(42);
//! let comparison = outcome.compare("unstable", "stable", |seconds| *seconds, &estimator).unwrap();
//! println!("unstable is {} than stable, noise floor {:?}", comparison.verdict, comparison.noise_floor);
//! # Ok::<(), wellread_measure::Error>(())
//! ```

mod outcome;
mod plan;
mod progress;
mod run;

pub use outcome::{Failure, Outcome, Run, Stopped, VariantResult};
pub use plan::Plan;
pub use progress::{Event, Flow, Progress, Turn};

#[cfg(test)]
mod tests;
