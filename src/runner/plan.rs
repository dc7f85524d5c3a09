//! How the tests of a runner are judged, settled before any candidate is seen: by the text of the tests, and by
//! running the reference where there is one. A candidate has no part in it, so none can ask for a weaker judge.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use super::Error;
use super::tree::Entry;
use crate::outcome::{About, SuiteResult, TestResult, TestSeverity, TestStatus};

/// How far tests and candidate are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// A process of the candidate for each test.
    Test,
    /// One process of the candidate for all tests, which share objects of it.
    Session,
    /// One process for tests and candidate.
    None,
}

/// A test that a run must have a result of.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Its name.
    pub name: String,
    /// What its failure weighs; `None` when only its name is known.
    pub severity: Option<TestSeverity>,
    /// Its file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// Whether it may be skipped.
    pub may_skip: bool,
}

impl Expected {
    /// The tests of a suite that is trusted.
    pub fn of(suite: &SuiteResult) -> Vec<Self> {
        let of_test = |test: &TestResult| Self {
            name: test.name().to_owned(),
            severity: Some(test.severity()),
            file: test.file().map(str::to_owned),
            line: test.line(),
            may_skip: test.status() == TestStatus::Skipped,
        };
        suite.tests().iter().map(of_test).collect()
    }

    /// A test of which only the name is known.
    pub fn named(name: String) -> Self {
        let file = name.split("::").next().map(str::to_owned);
        Self { name, severity: None, file, line: None, may_skip: false }
    }
}

/// What is settled.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) isolation: Isolation,
    pub(super) warnings: Vec<String>,
    /// The tests that there must be, where that is known.
    pub(super) expected: Option<Vec<Expected>>,
}

impl Plan {
    /// The suite with just the tests that there must be: one without a result is an error, one that is skipped
    /// without leave has failed, and of what nobody expects nothing is kept but a warning.
    pub(super) fn lock(&self, suite: SuiteResult) -> Result<SuiteResult, Error> {
        let mut about = About::clone(suite.about());
        about.warnings.extend(self.warnings.iter().cloned());
        let Some(expected) = &self.expected else {
            return Ok(SuiteResult::new(suite.tests().to_vec(), about)?);
        };
        let mut found: HashMap<&str, Vec<&TestResult>> = HashMap::new();
        for test in suite.tests() {
            found.entry(test.name()).or_default().push(test);
        }
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut tests = Vec::new();
        for expected in expected {
            let place = places.entry(&expected.name).or_default();
            let result = found.get(expected.name.as_str()).and_then(|found| found.get(*place));
            *place += 1;
            tests.push(match result {
                Some(test) => expected.judged(test),
                None => expected.missing(&found),
            });
        }
        let unknown = suite
            .tests()
            .iter()
            .filter(|test| !places.contains_key(test.name()) && test.name().contains("::"))
            .count();
        if unknown > 0 {
            about.warnings.push(format!("{unknown} tests that the reference does not have are left out"));
        }
        Ok(SuiteResult::new(tests, about)?)
    }
}

impl Expected {
    fn judged(&self, test: &TestResult) -> TestResult {
        let test = match self.severity {
            Some(severity) => test.clone().with_severity(severity),
            None => test.clone(),
        };
        if test.status() != TestStatus::Skipped || self.may_skip {
            return test;
        }
        TestResult::new(&self.name, TestStatus::Failed)
            .with_severity(test.severity())
            .with_reason(test.reason())
            .with_message(&format!("skipped, which it is not with the reference: {}", test.message()))
            .with_details(test.details())
            .with_location(test.file(), test.line())
    }

    /// A test without a result: its file's error, or a file above it, says why where there is one.
    fn missing(&self, found: &HashMap<&str, Vec<&TestResult>>) -> TestResult {
        let mut above = self.name.as_str();
        let mut cause = found.get("candidate").and_then(|tests| tests.first());
        while let Some((shorter, _)) = above.rsplit_once("::") {
            above = shorter;
            cause = cause.or_else(|| found.get(above)?.first());
        }
        let (reason, message, details) = match cause {
            Some(test) => (test.reason(), test.message(), test.details()),
            None => (Some("not_run"), "the run has no result of this test", ""),
        };
        TestResult::new(&self.name, TestStatus::Error)
            .with_severity(self.severity.unwrap_or_default())
            .with_reason(reason)
            .with_message(message)
            .with_details(details)
            .with_location(self.file.as_deref(), self.line)
    }
}

/// The plans of one runner: the one of the tests that it had last.
#[derive(Clone, Debug, Default)]
pub struct Plans(Arc<Mutex<Option<Settled>>>);

/// A plan, and the hash of the tests that it is for.
type Settled = (u64, Arc<Plan>);

impl Plans {
    /// The plan for tests with this content, made when they are new; others wait meanwhile.
    pub(super) fn of(
        &self,
        tests: &[Entry],
        make: impl FnOnce() -> Result<Plan, Error>,
    ) -> Result<Arc<Plan>, Error> {
        let mut hasher = DefaultHasher::new();
        tests.hash(&mut hasher);
        let hash = hasher.finish();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = known.as_ref().filter(|(own, _)| *own == hash) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(make()?);
        *known = Some((hash, plan.clone()));
        Ok(plan)
    }
}

/// The first test whose outcome is not the same in both.
pub(super) fn difference(one: &SuiteResult, other: &SuiteResult) -> Option<String> {
    let outcomes = |suite: &SuiteResult| {
        let outcome = |test: &TestResult| (test.name().to_owned(), test.status());
        suite.tests().iter().map(outcome).collect::<Vec<_>>()
    };
    let (one, other) = (outcomes(one), outcomes(other));
    let unequal = one.iter().zip(&other).find(|(one, other)| one != other).map(|(one, _)| one.0.clone());
    unequal.or_else(|| {
        let longer = if one.len() > other.len() { &one } else { &other };
        longer.get(one.len().min(other.len())).map(|(name, _)| name.clone())
    })
}

/// Whether a test file may make files for the candidate, which then must see the same directory.
pub(super) fn has_temporary_files(file: &Entry) -> bool {
    let text = String::from_utf8_lossy(&file.body);
    ["tmp_path", "tmpdir", "tempfile"].iter().any(|word| text.contains(word))
}

/// Whether the text of a test file has a word that [`Isolation::Test`] may not go with, so that its meaning is to
/// be looked at.
pub(super) fn is_suspect(file: &Entry) -> bool {
    const WORDS: [&str; 27] = [
        "scope",
        "setUpClass",
        "setUpModule",
        "setup_class",
        "setup_module",
        "eval(",
        "exec(",
        "runpy",
        "subprocess",
        "os.system",
        "popen",
        "inspect",
        "async ",
        "asyncio",
        "importlib",
        "pickle",
        "marshal",
        "shelve",
        "dill",
        "joblib",
        "doctest",
        "patch",
        "setattr",
        "__file__",
        "read_text",
        "open(",
        "compile(",
    ];
    if file.path.extension().is_none_or(|extension| extension != "py") {
        return false;
    }
    let text = String::from_utf8_lossy(&file.body);
    WORDS.iter().any(|word| text.contains(word)) || text.lines().any(has_own_base)
}

/// Whether a class is based on something else than what classes of tests are.
fn has_own_base(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("class ") else { return false };
    let Some((_, bases)) = rest.split_once('(') else { return false };
    let bases = bases.split_once(')').map_or(bases, |(bases, _)| bases);
    !bases.split(',').all(|base| matches!(base.trim(), "" | "unittest.TestCase" | "TestCase" | "object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(tests: &[(&str, TestStatus)]) -> SuiteResult {
        let tests = tests.iter().map(|(name, status)| TestResult::new(name, *status));
        SuiteResult::new(tests.collect(), About::named("s")).unwrap()
    }

    fn locked(expected: &SuiteResult, suite: SuiteResult) -> (Vec<(String, TestStatus)>, Vec<String>) {
        let expected = Some(Expected::of(expected));
        let plan = Plan { isolation: Isolation::Test, warnings: Vec::new(), expected };
        let suite = plan.lock(suite).unwrap();
        let tests = suite.tests().iter().map(|test| (test.name().to_owned(), test.status())).collect();
        (tests, suite.about().warnings.clone())
    }

    #[test]
    fn the_list_of_tests_is_the_reference_s() {
        use TestStatus::{Error, Failed, Passed, Skipped};
        let reference = suite(&[("a::1", Passed), ("a::2", Skipped), ("a::3", Passed), ("b::1", Passed)]);
        let given = suite(&[("b", Error), ("a::1", Skipped), ("a::2", Skipped), ("a::9", Passed)]);
        let (tests, warnings) = locked(&reference, given);
        let names = ["a::1", "a::2", "a::3", "b::1"].map(str::to_owned);
        assert_eq!(tests, names.into_iter().zip([Failed, Skipped, Error, Error]).collect::<Vec<_>>());
        assert_eq!(warnings, ["1 tests that the reference does not have are left out"]);
    }

    #[test]
    fn a_name_that_comes_twice_is_two_tests() {
        use TestStatus::{Error, Passed};
        let reference = suite(&[("a::1", Passed), ("a::1", Passed)]);
        let (tests, _) = locked(&reference, suite(&[("a::1", Passed)]));
        assert_eq!(tests.iter().map(|test| test.1).collect::<Vec<_>>(), [Passed, Error]);
    }

    #[test]
    fn words_and_bases_are_suspect() {
        let file = |text: &str| Entry { path: "test_a.py".into(), mode: None, body: text.into() };
        assert!(!is_suspect(&file("class A(unittest.TestCase):\n  def test(self): assert f() == 1\n")));
        assert!(is_suspect(&file("class A(solution.Base): pass")));
        assert!(is_suspect(&file("  @fixture(scope='module')")));
    }
}
