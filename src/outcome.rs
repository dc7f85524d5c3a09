//! What tests did: one [`TestResult`] per test, one [`SuiteResult`] per run.
//!
//! These are values: frozen, cheap to clone (text and tests are shared), equal and hashable by content,
//! JSON both ways. Rewards are computed from them in `reward`; this file knows no reward.

use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::containment::Containment;
use crate::mark::Mark;
use serde::{Deserialize, Serialize};

/// What was wrong with a value given to the core.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A number outside its allowed range.
    #[error("{argument} must be {allowed}, got {got}")]
    OutOfRange {
        /// The argument's public name.
        argument: &'static str,
        /// The allowed range, in words.
        allowed: &'static str,
        /// What was given.
        got: f64,
    },
    /// A word that names no member of an enum.
    #[error("{argument} must be one of {allowed}, got {got:?}")]
    UnknownWord {
        /// The argument's public name.
        argument: &'static str,
        /// The allowed words.
        allowed: &'static str,
        /// What was given.
        got: String,
    },
    /// Arguments that do not fit each other.
    #[error("{argument}: {problem}")]
    Mismatch {
        /// The argument's public name.
        argument: &'static str,
        /// What does not fit, and what would.
        problem: String,
    },
    /// Text that is not the JSON of this type.
    #[error("{what} json{place}: {problem}")]
    Json {
        /// The type that was expected.
        what: &'static str,
        /// `, line 3, column 14`; empty when the text is JSON but no such value.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Checks that `value` is finite and within `range`, and says so by name if it is not.
pub(crate) fn check_range(
    argument: &'static str,
    allowed: &'static str,
    range: impl std::ops::RangeBounds<f64>,
    value: f64,
) -> Result<f64, Error> {
    if value.is_finite() && range.contains(&value) {
        Ok(value + 0.0) // -0.0 becomes 0.0, so that equal values have equal bits
    } else {
        Err(Error::OutOfRange { argument, allowed, got: value })
    }
}

/// Checks a whole number that is at least `least`, and says so by name if it is not.
pub fn check_whole(
    argument: &'static str,
    allowed: &'static str,
    least: u32,
    value: i64,
) -> Result<u32, Error> {
    match u32::try_from(value) {
        Ok(whole) if whole >= least => Ok(whole),
        _ => Err(Error::OutOfRange { argument, allowed, got: value as f64 }),
    }
}

/// What one test did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TestStatus {
    /// It ran and held.
    Passed = 0,
    /// An assertion or an exception inside the test.
    Failed = 1,
    /// Anything else that stopped a verdict because of the candidate.
    Error = 2,
    /// It was not meant to run here.
    Skipped = 3,
}

impl TestStatus {
    /// All members, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::Error, Self::Skipped];

    /// The member's value: `"passed"`, `"failed"`, `"error"` or `"skipped"`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }

    /// The member whose value or name is `word`, in any case.
    pub fn parse(word: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|s| s.as_str().eq_ignore_ascii_case(word)).ok_or_else(|| {
            Error::UnknownWord {
                argument: "status",
                allowed: "passed, failed, error, skipped",
                got: word.to_owned(),
            }
        })
    }
}

/// How much a test matters: its weight in the severity score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TestSeverity {
    /// Weight 1.
    Minor = 1,
    /// Weight 2.
    #[default]
    Major = 2,
    /// Weight 3.
    Critical = 3,
}

impl TestSeverity {
    /// All members, heaviest first.
    pub const ALL: [Self; 3] = [Self::Critical, Self::Major, Self::Minor];

    /// The member's weight: 3, 2 or 1.
    pub fn weight(self) -> u8 {
        self as u8
    }

    /// The member's name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Major => "major",
            Self::Minor => "minor",
        }
    }

    /// The member named `word`, in any case.
    pub fn parse(word: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|s| s.as_str().eq_ignore_ascii_case(word)).ok_or_else(|| {
            Error::UnknownWord {
                argument: "severity",
                allowed: "critical (3), major (2), minor (1)",
                got: word.to_owned(),
            }
        })
    }

    /// The member with this weight.
    pub fn from_weight(weight: i64) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|s| i64::from(s.weight()) == weight).ok_or_else(|| Error::UnknownWord {
            argument: "severity",
            allowed: "critical (3), major (2), minor (1)",
            got: weight.to_string(),
        })
    }
}

const SHARED_SLOTS: usize = 16_384;
const SHARED_MAX_BYTES: usize = 200;

thread_local! {
    static SHARED: RefCell<Vec<Option<Arc<str>>>> = const { RefCell::new(Vec::new()) };
}

/// Text that is likely to be seen again (a test's name, a file's path), stored once per thread.
///
/// The same suite is judged again and again, so its names repeat; a direct-mapped cache of fixed size
/// makes ten thousand runs of a thousand tests hold a thousand names.
pub fn shared(text: &str) -> Arc<str> {
    if text.len() > SHARED_MAX_BYTES {
        return Arc::from(text);
    }
    SHARED.with_borrow_mut(|slots| {
        if slots.is_empty() {
            slots.resize(SHARED_SLOTS, None);
        }
        match slots.get_mut(slot_of(text)) {
            Some(Some(known)) if &**known == text => Arc::clone(known),
            Some(slot) => Arc::clone(slot.insert(Arc::from(text))),
            None => Arc::from(text),
        }
    })
}

fn slot_of(text: &str) -> usize {
    // FNV-1a over eight bytes at a time: quick on short names, and only speed depends on it.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0_u8; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    (hash as usize) % SHARED_SLOTS
}

/// What one test did, with severity, message and duration.
///
/// Args:
///     name: The test's name, usually its node id.
///     status: A `TestStatus`, or its value or name in any case.
///     severity: A `TestSeverity`, or its value or name in any case.
///     message: The short message of a failure.
///     duration_ms: How long it took in milliseconds, finite and >= 0.
///     details: Traceback and output.
///     reason: Why it is an ERROR or SKIPPED: "timeout", "memory", "crash", "collection", ...
///     file: The file the test is in.
///     line: The line the test starts at, from 1.
///
/// Raises:
///     ValueError: An unknown status or severity, a duration that is negative, NaN or infinite.
///
/// Example:
///     >>> from testgrad import TestResult
///     >>> TestResult("test_add", "passed", duration_ms=1.5)
///     TestResult('test_add', TestStatus.PASSED, duration_ms=1.5)
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TestResultJson", into = "TestResultJson")]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct TestResult {
    name: Arc<str>,
    duration_ms: f64,
    extra: Option<Arc<Extra>>,
    status: TestStatus,
    severity: TestSeverity,
}

/// What most passing tests do not have, kept apart so that they stay small.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Extra {
    message: Arc<str>,
    details: Arc<str>,
    reason: Option<Arc<str>>,
    file: Option<Arc<str>>,
    line: Option<u32>,
}

impl TestResult {
    /// A result of MAJOR severity without message, in no time.
    pub fn new(name: &str, status: TestStatus) -> Self {
        Self { name: shared(name), duration_ms: 0.0, extra: None, status, severity: TestSeverity::Major }
    }

    /// The same under another name.
    #[must_use]
    pub fn renamed(&self, name: &str) -> Self {
        Self { name: shared(name), ..self.clone() }
    }

    /// The same with this status.
    pub fn with_status(mut self, status: TestStatus) -> Self {
        self.status = status;
        self
    }

    /// The same with this severity.
    pub fn with_severity(mut self, severity: TestSeverity) -> Self {
        self.severity = severity;
        self
    }

    /// The same with this duration in milliseconds, which must be finite and not negative.
    pub fn with_duration_ms(mut self, duration_ms: f64) -> Result<Self, Error> {
        self.duration_ms = check_range("duration_ms", "finite and >= 0", 0.0.., duration_ms)?;
        Ok(self)
    }

    /// The same with this short message.
    pub fn with_message(self, message: &str) -> Self {
        self.with_extra(message.is_empty(), |extra| extra.message = Arc::from(message))
    }

    /// The same with this traceback or output.
    pub fn with_details(self, details: &str) -> Self {
        self.with_extra(details.is_empty(), |extra| extra.details = Arc::from(details))
    }

    /// The same with this reason, why it is an ERROR or SKIPPED.
    pub fn with_reason(self, reason: Option<&str>) -> Self {
        self.with_extra(reason.is_none(), |extra| extra.reason = reason.map(shared))
    }

    /// The same with the file and line where the test is.
    pub fn with_location(self, file: Option<&str>, line: Option<u32>) -> Self {
        self.with_extra(file.is_none() && line.is_none(), |extra| {
            extra.file = file.map(shared);
            extra.line = line;
        })
    }

    fn with_extra(mut self, nothing: bool, set: impl FnOnce(&mut Extra)) -> Self {
        if !nothing || self.extra.is_some() {
            set(Arc::make_mut(self.extra.get_or_insert_default()));
        }
        self
    }

    /// The test's name, usually its node id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name, shared.
    pub fn name_shared(&self) -> &Arc<str> {
        &self.name
    }

    /// What it did.
    pub fn status(&self) -> TestStatus {
        self.status
    }

    /// How much it matters.
    pub fn severity(&self) -> TestSeverity {
        self.severity
    }

    /// How long it took, in milliseconds.
    pub fn duration_ms(&self) -> f64 {
        self.duration_ms
    }

    /// The short message, `""` when there is none.
    pub fn message(&self) -> &str {
        self.extra.as_ref().map_or("", |e| &e.message)
    }

    /// The message, shared.
    pub fn message_shared(&self) -> Arc<str> {
        self.extra.as_ref().map_or_else(|| shared(""), |e| Arc::clone(&e.message))
    }

    /// Traceback and output, `""` when there is none.
    pub fn details(&self) -> &str {
        self.extra.as_ref().map_or("", |e| &e.details)
    }

    /// Why it is an ERROR or SKIPPED.
    pub fn reason(&self) -> Option<&str> {
        self.extra.as_ref()?.reason.as_deref()
    }

    /// The file the test is in.
    pub fn file(&self) -> Option<&str> {
        self.extra.as_ref()?.file.as_deref()
    }

    /// The line the test starts at, from 1.
    pub fn line(&self) -> Option<u32> {
        self.extra.as_ref()?.line
    }

    /// True for FAILED and ERROR.
    pub fn is_failing(&self) -> bool {
        matches!(self.status, TestStatus::Failed | TestStatus::Error)
    }
}

impl fmt::Debug for TestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TestResult({:?}, {})", self.name, self.status.as_str())
    }
}

impl Hash for TestResult {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.status.hash(state);
        self.severity.hash(state);
        self.duration_ms.to_bits().hash(state);
        self.extra.hash(state);
    }
}

impl Eq for TestResult {}

/// A number or a word, as other programs write an enum.
#[derive(Deserialize)]
#[serde(untagged)]
enum WordOrWeight {
    Word(String),
    Weight(i64),
}

#[derive(Serialize, Deserialize)]
struct TestResultJson {
    name: Arc<str>,
    status: TestStatus,
    #[serde(default)]
    severity: TestSeverity,
    #[serde(default)]
    duration_ms: f64,
    #[serde(default, skip_serializing_if = "is_empty")]
    message: Arc<str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    details: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[allow(clippy::ptr_arg, reason = "serde passes the field as it is")]
fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl From<TestResult> for TestResultJson {
    fn from(test: TestResult) -> Self {
        let extra = test.extra.as_deref().cloned().unwrap_or_default();
        Self {
            name: test.name,
            status: test.status,
            severity: test.severity,
            duration_ms: test.duration_ms,
            message: extra.message,
            details: extra.details,
            reason: extra.reason,
            file: extra.file,
            line: extra.line,
        }
    }
}

impl TryFrom<TestResultJson> for TestResult {
    type Error = Error;

    fn try_from(json: TestResultJson) -> Result<Self, Error> {
        Ok(Self::new(&json.name, json.status)
            .with_severity(json.severity)
            .with_duration_ms(json.duration_ms)?
            .with_message(&json.message)
            .with_details(&json.details)
            .with_reason(json.reason.as_deref())
            .with_location(json.file.as_deref(), json.line))
    }
}

impl Serialize for TestStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TestStatus {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for TestSeverity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TestSeverity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WordOrWeight::deserialize(deserializer)? {
            WordOrWeight::Word(word) => Self::parse(&word),
            WordOrWeight::Weight(weight) => Self::from_weight(weight),
        }
        .map_err(serde::de::Error::custom)
    }
}

/// Sums numbers in eight lanes, so that it is the same sum whether they come one by one or as an array.
#[derive(Clone, Copy, Default)]
pub struct LaneSum {
    lanes: [f64; 8],
    next: usize,
}

impl LaneSum {
    /// Adds one number to the next lane.
    #[inline]
    pub fn add(&mut self, value: f64) {
        if let Some(lane) = self.lanes.get_mut(self.next) {
            *lane += value;
        }
        self.next = (self.next + 1) & 7;
    }

    /// The sum of a whole slice, in the same order as adding one by one.
    #[inline]
    pub fn of(values: &[f64]) -> f64 {
        Self::of_durations(values).0
    }

    /// The sum of a whole slice, and whether it is finite and no value has a minus sign.
    #[inline]
    pub fn of_durations(values: &[f64]) -> (f64, bool) {
        let mut sum = Self::default();
        let mut signs = [0_u64; 8];
        let (chunks, rest) = values.as_chunks::<8>();
        for chunk in chunks {
            for ((lane, sign), value) in sum.lanes.iter_mut().zip(&mut signs).zip(chunk) {
                *lane += value;
                *sign |= value.to_bits();
            }
        }
        let mut any_sign = signs.into_iter().fold(0, |any, sign| any | sign);
        for value in rest {
            sum.add(*value);
            any_sign |= value.to_bits();
        }
        let total = sum.total();
        (total, total.is_finite() && any_sign >> 63 == 0)
    }

    /// What was added so far.
    #[inline]
    pub fn total(&self) -> f64 {
        let [a, b, c, d, e, f, g, h] = self.lanes;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}

/// The numbers every reward is made of: counts, weights and time of one suite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed.
    pub failed: u32,
    /// Tests that ended in an error.
    pub errors: u32,
    /// Tests that were skipped.
    pub skipped: u32,
    /// Sum of the severity weights of passed tests.
    pub passed_weight: u64,
    /// Sum of the severity weights of tests that were not skipped.
    pub active_weight: u64,
    /// Sum of the durations, in milliseconds.
    pub duration_ms: f64,
}

impl Tally {
    fn of(tests: &[TestResult]) -> Self {
        let mut tally = Self::default();
        let mut duration = LaneSum::default();
        for test in tests {
            let weight = u64::from(test.severity.weight());
            match test.status {
                TestStatus::Passed => {
                    tally.passed += 1;
                    tally.passed_weight += weight;
                }
                TestStatus::Failed => tally.failed += 1,
                TestStatus::Error => tally.errors += 1,
                TestStatus::Skipped => tally.skipped += 1,
            }
            if test.status != TestStatus::Skipped {
                tally.active_weight += weight;
            }
            duration.add(test.duration_ms);
        }
        tally.duration_ms = duration.total();
        tally
    }

    /// All tests, skipped ones too.
    #[inline]
    pub fn total(&self) -> u32 {
        self.active() + self.skipped
    }

    /// Tests that were not skipped.
    #[inline]
    pub fn active(&self) -> u32 {
        self.passed + self.failed + self.errors
    }

    /// passed / (total - skipped), 0.0 when nothing is active.
    #[inline]
    pub fn pass_rate(&self) -> f64 {
        ratio(u64::from(self.passed), u64::from(self.active()))
    }

    /// Weight of passed tests / weight of active tests, 0.0 when nothing is active.
    #[inline]
    pub fn severity_score(&self) -> f64 {
        ratio(self.passed_weight, self.active_weight)
    }

    /// At least one active test, and all active ones passed.
    #[inline]
    pub fn all_passed(&self) -> bool {
        self.passed > 0 && self.failed == 0 && self.errors == 0
    }
}

#[inline]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Who vouches for a suite.
pub const TRUST_WORDS: [&str; 3] = ["isolated", "shared", "reported"];

/// The outcomes of one run: a frozen, sequence-like value.
///
/// Args:
///     tests: The tests, in order.
///     suite_name: The suite's name.
///     coverage: Share of the candidate's lines that ran, 0..1; None when not measured.
///     duration_ms: Wall time of the run in milliseconds; None when not measured.
///     problems: What went wrong outside any test; a suite with problems is never `all_passed`.
///     warnings: What the reader should know and that changes nothing.
///     hidden: Names of tests that are never shown to the agent.
///     trust: Who vouches for it: "isolated", "shared" or "reported"; None when made by hand.
///
/// Raises:
///     ValueError: Coverage outside 0..1, a negative duration, an unknown trust.
///
/// Example:
///     >>> from testgrad import SuiteResult, TestResult
///     >>> suite = SuiteResult([TestResult("a", "passed"), TestResult("b", "failed")])
///     >>> suite.pass_rate
///     0.5
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SuiteResultJson", into = "SuiteResultJson")]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct SuiteResult {
    tests: Arc<[TestResult]>,
    tally: Tally,
    about: Arc<About>,
}

/// Everything about a suite that is not a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The suite's name.
    #[serde(default = "default_name")]
    pub suite_name: Arc<str>,
    /// Share of the candidate's lines that ran, 0..1; `None` when not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Wall time of the run in milliseconds; `None` when not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// What went wrong outside any test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What the reader should know and that changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Names of tests that are never shown to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Who vouches for it: one of [`TRUST_WORDS`], `None` when made by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Arc<str>>,
    /// What the kernel enforced around the candidate; `None` where nothing was contained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Arc<Containment>>,
    /// What looked suspicious in the candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

impl About {
    /// Only a name.
    pub fn named(suite_name: &str) -> Self {
        Self { suite_name: shared(suite_name), ..Self::default() }
    }

    fn checked(mut self) -> Result<Self, Error> {
        if let Some(coverage) = self.coverage {
            self.coverage = Some(check_range("coverage", "between 0 and 1", 0.0..=1.0, coverage)?);
        }
        if let Some(duration) = self.duration_ms {
            self.duration_ms = Some(check_range("duration_ms", "finite and >= 0", 0.0.., duration)?);
        }
        match self.trust.as_deref() {
            Some(word) if !TRUST_WORDS.contains(&word) => Err(Error::UnknownWord {
                argument: "trust",
                allowed: "isolated, shared, reported",
                got: word.to_owned(),
            }),
            _ => Ok(self),
        }
    }
}

impl SuiteResult {
    /// A suite of these tests, in this order.
    pub fn new(tests: Vec<TestResult>, about: About) -> Result<Self, Error> {
        let tally = Tally::of(&tests);
        Ok(Self { tests: tests.into(), tally, about: Arc::new(about.checked()?) })
    }

    /// The tests, in the order they were given.
    pub fn tests(&self) -> &[TestResult] {
        &self.tests
    }

    /// Everything that is not a test.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Counts, weights and time.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// At least one active test, all active ones passed, and no problems.
    pub fn all_passed(&self) -> bool {
        self.tally.all_passed() && self.about.problems.is_empty()
    }

    /// The tests that failed or ended in an error, in order.
    pub fn failing(&self) -> impl Iterator<Item = &TestResult> {
        self.tests.iter().filter(|t| t.is_failing())
    }

    /// By how much the pass rate of the tests that are shown exceeds that of the hidden ones.
    pub fn hidden_gap(&self) -> Option<f64> {
        let hidden: std::collections::HashSet<&str> = self.about.hidden.iter().map(String::as_str).collect();
        let rate = |is_hidden: bool| {
            let tests: Vec<TestResult> =
                self.tests.iter().filter(|test| hidden.contains(test.name()) == is_hidden).cloned().collect();
            Tally::of(&tests).pass_rate()
        };
        (!hidden.is_empty()).then(|| rate(false) - rate(true))
    }

    /// True when this test must not be shown to the agent.
    pub fn is_hidden(&self, name: &str) -> bool {
        self.about.hidden.iter().any(|h| h == name)
    }
}

impl fmt::Debug for SuiteResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { passed, failed, errors, skipped, .. } = self.tally;
        write!(
            f,
            "<SuiteResult {:?}: {passed} passed, {failed} failed, {errors} errors, {skipped} skipped>",
            self.about.suite_name
        )
    }
}

impl Hash for SuiteResult {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tests.hash(state);
        self.about.suite_name.hash(state);
        self.about.coverage.map(f64::to_bits).hash(state);
        self.about.duration_ms.map(f64::to_bits).hash(state);
        self.about.problems.hash(state);
    }
}

impl Eq for SuiteResult {}

#[derive(Serialize, Deserialize)]
struct SuiteResultJson {
    #[serde(flatten)]
    about: About,
    tests: Vec<TestResult>,
}

fn default_name() -> Arc<str> {
    shared("default")
}

impl From<SuiteResult> for SuiteResultJson {
    fn from(suite: SuiteResult) -> Self {
        Self { about: (*suite.about).clone(), tests: suite.tests.to_vec() }
    }
}

impl TryFrom<SuiteResultJson> for SuiteResult {
    type Error = Error;

    fn try_from(json: SuiteResultJson) -> Result<Self, Error> {
        Self::new(json.tests, json.about)
    }
}

/// Reads any of the core's values from its JSON, with the place of what is wrong.
pub fn from_json<'a, T: Deserialize<'a>>(what: &'static str, text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|source| {
        let (line, column) = (source.line(), source.column());
        let said = source.to_string();
        let suffix = format!(" at line {line} column {column}");
        let place = if line == 0 { String::new() } else { format!(", line {line}, column {column}") };
        Error::Json { what, place, problem: said.strip_suffix(&suffix).unwrap_or(&said).to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(statuses: &[TestStatus]) -> SuiteResult {
        let tests = statuses.iter().enumerate().map(|(i, s)| TestResult::new(&format!("t{i}"), *s)).collect();
        SuiteResult::new(tests, About::named("default")).unwrap()
    }

    #[test]
    fn nine_of_ten_is_nine_tenths() {
        let mut statuses = [TestStatus::Passed; 10];
        statuses[3] = TestStatus::Failed;
        assert_eq!(suite(&statuses).tally().pass_rate(), 0.9);
    }

    #[test]
    fn all_skipped_has_no_pass_rate_and_has_not_passed() {
        let suite = suite(&[TestStatus::Skipped; 3]);
        assert_eq!(suite.tally().pass_rate(), 0.0);
        assert!(!suite.all_passed());
    }

    #[test]
    fn a_problem_outside_the_tests_denies_all_passed() {
        let tests = vec![TestResult::new("t", TestStatus::Passed)];
        let about = About { problems: vec!["a hook failed".into()], ..About::named("s") };
        assert!(!SuiteResult::new(tests, about).unwrap().all_passed());
    }

    #[test]
    fn severity_weighs_three_two_one() {
        let tests = vec![
            TestResult::new("a", TestStatus::Passed).with_severity(TestSeverity::Critical),
            TestResult::new("b", TestStatus::Failed).with_severity(TestSeverity::Major),
            TestResult::new("c", TestStatus::Passed).with_severity(TestSeverity::Minor),
        ];
        let suite = SuiteResult::new(tests, About::named("s")).unwrap();
        assert_eq!(suite.tally().severity_score(), 4.0 / 6.0);
    }

    #[test]
    fn json_goes_both_ways() {
        let test = TestResult::new("a", TestStatus::Error)
            .with_duration_ms(0.1)
            .unwrap()
            .with_message("m")
            .with_reason(Some("timeout"))
            .with_location(Some("test_a.py"), Some(3));
        let suite = SuiteResult::new(vec![test], About { coverage: Some(0.5), ..About::named("s") }).unwrap();
        let text = serde_json::to_string(&suite).unwrap();
        assert_eq!(from_json::<SuiteResult>("SuiteResult", &text).unwrap(), suite);
    }

    #[test]
    fn a_broken_json_names_its_place() {
        let error = from_json::<SuiteResult>("SuiteResult", "{\"tests\": [\n 7]}").unwrap_err();
        assert!(error.to_string().starts_with("SuiteResult json, line 2"), "{error}");
    }

    #[test]
    fn lanes_do_not_depend_on_how_numbers_arrive() {
        let values: Vec<f64> = (0..1003).map(|i| 1.0 / (1.0 + f64::from(i))).collect();
        let mut one_by_one = LaneSum::default();
        values.iter().for_each(|v| one_by_one.add(*v));
        assert_eq!(one_by_one.total().to_bits(), LaneSum::of(&values).to_bits());
    }

    #[test]
    fn equal_names_are_stored_once() {
        assert!(Arc::ptr_eq(&shared("tests/test_a.py::test_x"), &shared("tests/test_a.py::test_x")));
    }

    #[test]
    fn a_negative_duration_is_refused_by_name() {
        let error = TestResult::new("a", TestStatus::Passed).with_duration_ms(-1.0).unwrap_err();
        assert_eq!(error.to_string(), "duration_ms must be finite and >= 0, got -1");
    }
}
