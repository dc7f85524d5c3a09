//! What looks suspicious in a candidate, with what shows it. A mark informs: by itself it changes no outcome and
//! no reward, since honest programs do odd things, too.

use serde::{Deserialize, Serialize};

/// The kinds of marks.
pub const KINDS: [&str; 5] = ["tampering", "blocked", "internals", "table", "gap"];

/// The kinds that are seen while a candidate runs.
const SEEN: [&str; 2] = ["tampering", "blocked"];

/// Something suspicious in a candidate.
///
/// Args:
///     kind: "tampering" changes what tests judge with, or does so if it can; "blocked" tries what containment
///         refuses; "internals" refers to what runs the tests; "table" holds the answers of the tests; "gap"
///         passes what it was shown and fails what it was not.
///     evidence: What shows it, with file and line where there is one.
///     test: The test in which it was seen.
///
/// Raises:
///     ValueError: An unknown kind.
///
/// Example:
///     >>> from testgrad import Mark
///     >>> Mark("blocked", "solution.py, line 3: connects to 10.0.0.1, port 80", test="test_a.py::test_b").kind
///     'blocked'
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, from_py_object, module = "testgrad"))]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// One of [`KINDS`].
    pub kind: String,
    /// What shows it.
    pub evidence: String,
    /// The test in which it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
}

impl Mark {
    /// A mark; `None` where there is no such kind.
    pub fn new(kind: &str, evidence: &str, test: Option<&str>) -> Option<Self> {
        KINDS.contains(&kind).then(|| Self {
            kind: kind.to_owned(),
            evidence: evidence.to_owned(),
            test: test.map(str::to_owned),
        })
    }

    /// Whether it was seen while the candidate ran.
    pub fn is_seen(&self) -> bool {
        SEEN.contains(&self.kind.as_str())
    }
}

/// What to do with a suite that has marks of what was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTamper {
    /// Nothing: the marks are in the suite.
    #[default]
    Report,
    /// No test counts as passed.
    Zero,
    /// There is no verdict.
    NoVerdict,
}

impl OnTamper {
    /// The one of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "report" => Some(Self::Report),
            "zero" => Some(Self::Zero),
            "no_verdict" => Some(Self::NoVerdict),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_mark_of_an_unknown_kind() {
        assert!(Mark::new("odd", "x", None).is_none());
        assert!(Mark::new("blocked", "x", Some("t")).is_some_and(|mark| mark.is_seen()));
        assert!(Mark::new("gap", "x", None).is_some_and(|mark| !mark.is_seen()));
    }
}
