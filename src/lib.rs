//! testgrad turns what tests say about code into a reward that a learner can climb.
//!
//! This crate is the core; it builds and tests without Python. The Python package `testgrad` is a thin
//! face over it (`py`, behind the feature `python`).

pub mod agent_loop;
pub mod containment;
pub mod curve;
pub mod feedback;
pub mod mark;
pub mod outcome;
pub mod reward;
pub mod runner;
pub mod sandbox;
pub mod store;
pub mod task;

#[cfg(feature = "python")]
mod py;
