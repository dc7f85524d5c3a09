//! The list of what Python sees. Each file here holds the Python methods of the core file of the same name.

mod agent_loop;
mod batch;
mod command;
mod containment;
mod convert;
mod curve;
mod enums;
mod errors;
mod feedback;
mod function;
mod history;
mod loop_run;
mod mark;
mod outcome;
mod pytest;
mod repr;
mod reward;
mod runner;
mod sandbox;
mod stdio;
mod task;
mod value;

/// The binary half of testgrad; use the package `testgrad`, which re-exports it.
#[pyo3::pymodule]
mod _testgrad {
    #[pymodule_export]
    use super::agent_loop::AgentTestLoop;
    #[pymodule_export]
    use super::batch::{
        advantages, decoupled_advantages, difficulty_score, difficulty_weights, group_signal,
        leave_one_out_baseline, rewards, rewards_from_arrays,
    };
    #[pymodule_export]
    use super::command::CommandRunner;
    #[pymodule_export]
    use super::curve::{convergence_rate, learning_curve, reward_trend};
    #[pymodule_export]
    use super::feedback::{build_feedback, extract_failing_tests, infer_strategy};
    #[pymodule_export]
    use super::function::FunctionRunner;
    #[pymodule_export]
    use super::history::History;
    #[pymodule_export]
    use super::loop_run::LoopRun;
    #[pymodule_export]
    use super::pytest::{PytestRunner, run_pytest};
    #[pymodule_export]
    use super::reward::{
        binary_reward, compute_reward_signal, pass_rate_reward, progression_reward, severity_weighted_reward,
        speed_score,
    };
    #[pymodule_export]
    use super::runner::{_cancel_runs, run_many};
    #[pymodule_export]
    use super::sandbox::{_end, _idle_workers, _is_sound, _launch, close};
    #[pymodule_export]
    use super::stdio::StdioRunner;
    #[pymodule_export]
    use super::task::_TaskReader;
    #[pymodule_export]
    use super::value::{_encode_value, _parse_value};
    #[pymodule_export]
    use crate::containment::{Containment, Layer};
    #[pymodule_export]
    use crate::curve::LearningPoint;
    #[pymodule_export]
    use crate::feedback::{CodeSubmission, FeedbackEntry};
    #[pymodule_export]
    use crate::mark::Mark;
    #[pymodule_export]
    use crate::outcome::{SuiteResult, TestResult};
    #[pymodule_export]
    use crate::reward::group::GroupSignal;
    #[pymodule_export]
    use crate::reward::{
        Binary, Curriculum, Gated, MultiSignal, PassRate, Progression, RewardSignal, RewardWeights,
        SeverityWeighted,
    };
    #[pymodule_export]
    use crate::sandbox::Limits;
    #[pymodule_export]
    use crate::task::Task;

    /// Python's own word for what has a length, an order and places; it also lets `match` unpack them.
    #[pymodule_init]
    fn register_sequences() -> pyo3::PyResult<()> {
        use pyo3::types::PySequence;
        pyo3::Python::attach(|py| {
            PySequence::register::<History>(py)?;
            PySequence::register::<SuiteResult>(py)
        })
    }

    /// The version of the package.
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    /// True when this is a debug build, which no speed should be judged by.
    #[pymodule_export]
    const DEBUG_BUILD: bool = cfg!(debug_assertions);
    /// Status code of a suite that could not be judged: its row becomes NaN.
    #[pymodule_export]
    const NO_VERDICT: u8 = crate::reward::batch::NO_VERDICT;
    /// Status code of a test that a suite does not have (padding).
    #[pymodule_export]
    const ABSENT: u8 = crate::reward::batch::ABSENT;
}
