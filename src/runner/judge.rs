//! Any runner as one thing: what it does once, what it does several times, and what it remembers.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use super::command::Command;
use super::function::Function;
use super::pytest::Pytest;
use super::stage::{Module, Tests, stage};
use super::stdio::{Checker, Stdio};
use super::{Candidate, Error, IsCancelled};
use crate::mark::{Mark, OnTamper};
use crate::outcome::{About, SuiteResult, TestResult, TestStatus};

/// How a candidate is judged once.
#[derive(Clone, Debug)]
pub enum Judge {
    /// By pytest.
    Pytest {
        /// How pytest is run.
        pytest: Box<Pytest>,
        /// Where the tests come from.
        tests: Tests,
        /// Where tests come from that nobody is shown.
        hidden: Option<Tests>,
        /// The module that they import.
        module: Module,
    },
    /// By what it prints.
    Stdio(Stdio),
    /// By what a function of it returns.
    Function(Function),
    /// By how a command ends.
    Command(Command),
}

impl Judge {
    fn judge(
        &self,
        candidate: &Candidate,
        checker: Option<&Checker<'_>>,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        match self {
            Self::Pytest { pytest, tests, hidden, module } => {
                let shown = pytest.judge(tests, module, candidate, is_cancelled)?;
                let Some(hidden) = hidden else { return Ok(shown) };
                let hidden = pytest.for_hidden().judge(hidden, module, candidate, is_cancelled)?;
                with_hidden(&shown, &hidden)
            }
            Self::Stdio(stdio) => stdio.judge(candidate, checker, is_cancelled),
            Self::Function(function) => function.judge(candidate, is_cancelled),
            Self::Command(command) => command.judge(candidate, is_cancelled),
        }
    }
}

/// A judge, how often it looks, and what it remembers.
#[derive(Debug)]
pub struct Runner {
    judge: Judge,
    on_tamper: OnTamper,
    repeat: NonZeroUsize,
    cache: Option<Cache>,
}

impl Runner {
    /// A runner that judges `repeat` times and remembers the last `cached` suites.
    pub fn new(judge: Judge, on_tamper: OnTamper, repeat: NonZeroUsize, cached: usize) -> Self {
        Self { judge, on_tamper, repeat, cache: NonZeroUsize::new(cached).map(Cache::new) }
    }

    /// Judges one candidate.
    pub fn run(
        &self,
        candidate: &Candidate,
        checker: Option<&Checker<'_>>,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let cached = match &self.cache {
            Some(cache) => Some((cache, self.key(cache, candidate, is_cancelled)?)),
            None => None,
        };
        if let Some(suite) = cached.and_then(|(cache, key)| cache.get(key)) {
            return Ok(suite);
        }
        let first = self.judge.judge(candidate, checker, is_cancelled)?;
        let suite = if self.repeat.get() == 1 {
            first
        } else {
            let mut suites = vec![first];
            for _ in 1..self.repeat.get() {
                suites.push(self.judge.judge(candidate, checker, is_cancelled)?);
            }
            of_repeated(&suites)?
        };
        let suite = weighed(suite, self.on_tamper)?;
        if let Some((cache, key)) = cached {
            cache.put(key, suite.clone());
        }
        Ok(suite)
    }

    /// What a suite depends on beside this runner's settings: the files of tests and candidate.
    fn key(
        &self,
        cache: &Cache,
        candidate: &Candidate,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<Key, Error> {
        let none = Tests::Files(Vec::new());
        let (tests, module) = match &self.judge {
            Judge::Command(command) => {
                let parcel = command.pack(candidate)?.parcel;
                return Ok(cache.key(parcel.entries()));
            }
            Judge::Pytest { tests, module, .. } => (tests, module),
            Judge::Stdio(stdio) => (&none, &stdio.module),
            Judge::Function(function) => (&none, &function.module),
        };
        let staged = stage(tests, module, candidate, u64::MAX, is_cancelled)?;
        if let Judge::Pytest { hidden: Some(hidden), .. } = &self.judge {
            let more = stage(hidden, module, candidate, u64::MAX, is_cancelled)?;
            let both = (staged.parcel.entries(), more.parcel.entries());
            return Ok(cache.key((both, &staged.outside, &staged.left_out, &staged.unread)));
        }
        Ok(cache.key((staged.parcel.entries(), &staged.outside, &staged.left_out, &staged.unread)))
    }
}

type Key = (u64, u64);

/// The suites of the candidates judged last, by the content of all files.
#[derive(Debug)]
struct Cache {
    most: usize,
    hashers: (RandomState, RandomState),
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    suites: HashMap<Key, SuiteResult>,
    /// The oldest is the first.
    order: VecDeque<Key>,
}

impl Cache {
    fn new(most: NonZeroUsize) -> Self {
        let hashers = (RandomState::new(), RandomState::new());
        Self { most: most.get(), hashers, kept: Mutex::default() }
    }

    /// 128 bits that nobody outside can aim at.
    fn key(&self, content: impl std::hash::Hash + Copy) -> Key {
        (self.hashers.0.hash_one(content), self.hashers.1.hash_one(content))
    }

    fn get(&self, key: Key) -> Option<SuiteResult> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).suites.get(&key).cloned()
    }

    fn put(&self, key: Key, suite: SuiteResult) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.suites.insert(key, suite).is_none() {
            kept.order.push_back(key);
        }
        while kept.order.len() > self.most {
            if let Some(oldest) = kept.order.pop_front() {
                kept.suites.remove(&oldest);
            }
        }
    }
}

/// The suite as the caller wants it where the candidate was seen to tamper.
fn weighed(suite: SuiteResult, on_tamper: OnTamper) -> Result<SuiteResult, Error> {
    let Some(mark) = suite.about().marks.iter().find(|mark| mark.is_seen()) else { return Ok(suite) };
    match on_tamper {
        OnTamper::Report => Ok(suite),
        OnTamper::NoVerdict => Err(Error::Tampered { evidence: mark.evidence.clone() }),
        OnTamper::Zero => {
            let message = format!("the candidate is not trusted: {}", mark.evidence);
            let tests = suite.tests().iter().map(|test| match test.is_failing() {
                true => test.clone(),
                false => test
                    .clone()
                    .with_status(TestStatus::Failed)
                    .with_reason(Some("tampering"))
                    .with_message(&message),
            });
            Ok(SuiteResult::new(tests.collect(), About::clone(suite.about()))?)
        }
    }
}

/// One suite of tests that are shown and tests that are not, whose names begin with `hidden/`.
fn with_hidden(shown: &SuiteResult, hidden: &SuiteResult) -> Result<SuiteResult, Error> {
    let mut about = About::clone(shown.about());
    let mut tests = shown.tests().to_vec();
    for test in hidden.tests() {
        let test = test.renamed(&format!("hidden/{}", test.name()));
        about.hidden.push(test.name().to_owned());
        tests.push(test);
    }
    let others = hidden.about();
    // What is said of hidden tests may show what is in them.
    if !others.problems.is_empty() {
        about.problems.push("the run of the hidden tests had problems".to_owned());
    }
    about.marks.extend(
        others.marks.iter().map(|mark| Mark {
            test: mark.test.as_ref().map(|test| format!("hidden/{test}")),
            ..mark.clone()
        }),
    );
    if others.trust.as_deref() == Some("shared") {
        about.trust.clone_from(&others.trust);
        about.warnings.push("hidden tests and candidate share a process".to_owned());
    }
    about.duration_ms = about.duration_ms.zip(others.duration_ms).map(|(one, other)| one + other);
    Ok(SuiteResult::new(tests, about)?)
}

/// Several runs of the same as one: of each test the worst outcome and the shortest duration; a test that changed
/// its mind is flaky, and a warning says how often it passed.
fn of_repeated(suites: &[SuiteResult]) -> Result<SuiteResult, Error> {
    let Some(first) = suites.first() else { return Err(Error::Interrupted) };
    let mut about: About = first.about().clone();
    let rank = |status: TestStatus| match status {
        TestStatus::Passed => 0,
        TestStatus::Skipped => 1,
        TestStatus::Failed => 2,
        TestStatus::Error => 3,
    };
    let mut tests = Vec::new();
    // By name, and the place among tests of that name.
    let mut places: HashMap<(Arc<str>, usize), Vec<&TestResult>> = HashMap::new();
    let mut order = Vec::new();
    for suite in suites {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for test in suite.tests() {
            let count = counts.entry(test.name()).or_default();
            let place = (test.name_shared().clone(), *count);
            *count += 1;
            let found = places.entry(place.clone()).or_default();
            if found.is_empty() {
                order.push(place);
            }
            found.push(test);
        }
        for (own, others) in
            [(&mut about.problems, &suite.about().problems), (&mut about.warnings, &suite.about().warnings)]
        {
            let new: Vec<_> = others.iter().filter(|other| !own.contains(other)).cloned().collect();
            own.extend(new);
        }
        let new = suite.about().marks.iter().filter(|mark| !about.marks.contains(mark)).cloned();
        let new: Vec<_> = new.collect();
        about.marks.extend(new);
    }
    for place in order {
        let Some(found) = places.get(&place) else { continue };
        let Some(worst) = found.iter().max_by_key(|test| rank(test.status())) else { continue };
        let passed = found.iter().filter(|test| test.status() == TestStatus::Passed).count();
        let is_flaky = found.iter().any(|test| test.status() != worst.status()) || found.len() < suites.len();
        let shortest = found.iter().map(|test| test.duration_ms()).fold(f64::INFINITY, f64::min);
        let mut test = (*worst).clone().with_duration_ms(shortest)?;
        if is_flaky {
            about.warnings.push(format!("{} is flaky: passed {passed} of {} times", place.0, suites.len()));
            let message = format!("flaky, passed {passed} of {} times: {}", suites.len(), worst.message());
            test = test.with_message(&message).with_reason(Some("flaky"));
        }
        tests.push(test);
    }
    Ok(SuiteResult::new(tests, about)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(statuses: &[(&str, TestStatus, f64)]) -> SuiteResult {
        let tests = statuses
            .iter()
            .map(|(name, status, ms)| TestResult::new(name, *status).with_duration_ms(*ms).unwrap());
        SuiteResult::new(tests.collect(), About::named("s")).unwrap()
    }

    #[test]
    fn a_test_that_changes_its_mind_is_flaky() {
        use TestStatus::{Failed, Passed};
        let once = suite(&[("a", Passed, 5.0), ("b", Passed, 1.0)]);
        let again = suite(&[("a", Passed, 3.0), ("b", Failed, 2.0)]);
        let all = of_repeated(&[once, again]).unwrap();
        let told: Vec<_> = all.tests().iter().map(|t| (t.status(), t.duration_ms(), t.reason())).collect();
        assert_eq!(told, [(Passed, 3.0, None), (Failed, 1.0, Some("flaky"))]);
        assert_eq!(all.about().warnings, ["b is flaky: passed 1 of 2 times"]);
    }

    #[test]
    fn the_cache_keeps_so_many_and_no_more() {
        let cache = Cache::new(NonZeroUsize::new(2).unwrap());
        let keys: Vec<Key> = ["a", "b", "c"].iter().map(|text| cache.key(*text)).collect();
        for key in &keys {
            cache.put(*key, suite(&[]));
        }
        assert_eq!(keys.iter().map(|key| cache.get(*key).is_some()).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(cache.key("a"), keys[0]);
    }
}
