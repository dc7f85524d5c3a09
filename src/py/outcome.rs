//! Python methods of [`TestResult`] and [`SuiteResult`].

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyValueError};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyDict, PySlice, PyTuple};
use pyo3::{IntoPyObjectExt, PyClass};

use super::convert::{Iter, NewArgs, Text, Tuple, from_json, to_json, with_text};
use super::enums::wrong_type;
use super::repr::{Call, quoted};
use crate::containment::Containment;
use crate::mark::Mark;
use crate::outcome::{About, SuiteResult, TestResult, TestSeverity, TestStatus, check_whole};

#[pymethods]
impl TestResult {
    #[new]
    #[pyo3(signature = (name, status, severity=TestSeverity::Major, message=Text::EMPTY, duration_ms=0.0, *,
                        details=Text::EMPTY, reason=None, file=None, line=None))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        name: &Bound<'_, PyAny>,
        status: TestStatus,
        severity: TestSeverity,
        message: Text,
        duration_ms: f64,
        details: Text,
        reason: Option<Text>,
        file: Option<Text>,
        line: Option<i64>,
    ) -> PyResult<Self> {
        let line = line.map(|line| check_whole("line", ">= 1", 1, line)).transpose()?;
        Ok(with_text("name", name, |name| Self::new(name, status))?
            .with_severity(severity)
            .with_duration_ms(duration_ms)?
            .with_message(&message.0)
            .with_details(&details.0)
            .with_reason(reason.as_ref().map(|r| &*r.0))
            .with_location(file.as_ref().map(|f| &*f.0), line))
    }

    /// The test's name, usually its node id.
    #[getter(name)]
    fn py_name(&self) -> &str {
        self.name()
    }

    /// What it did.
    #[getter(status)]
    fn py_status(&self) -> TestStatus {
        self.status()
    }

    /// How much it matters.
    #[getter(severity)]
    fn py_severity(&self) -> TestSeverity {
        self.severity()
    }

    /// The short message of a failure, "" when there is none.
    #[getter(message)]
    fn py_message(&self) -> &str {
        self.message()
    }

    /// How long it took, in milliseconds.
    #[getter(duration_ms)]
    fn py_duration_ms(&self) -> f64 {
        self.duration_ms()
    }

    /// Traceback and output, "" when there is none.
    #[getter(details)]
    fn py_details(&self) -> &str {
        self.details()
    }

    /// Why it is an ERROR or SKIPPED.
    #[getter(reason)]
    fn py_reason(&self) -> Option<&str> {
        self.reason()
    }

    /// The file the test is in.
    #[getter(file)]
    fn py_file(&self) -> Option<&str> {
        self.file()
    }

    /// The line the test starts at, from 1.
    #[getter(line)]
    fn py_line(&self) -> Option<u32> {
        self.line()
    }

    /// True for FAILED and ERROR.
    #[getter(is_failing)]
    fn py_is_failing(&self) -> bool {
        self.is_failing()
    }

    /// The value as JSON; `from_json` reads it back.
    #[pyo3(name = "to_json")]
    fn py_to_json(&self) -> PyResult<String> {
        to_json(self)
    }

    /// The value that `to_json` wrote.
    ///
    /// Raises:
    ///     ValueError: Text that is not such JSON, with line and column.
    #[staticmethod]
    #[pyo3(name = "from_json", signature = (text: "str | bytes"))]
    fn py_from_json(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        from_json("TestResult", text)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let mut call = Call::new(py, "TestResult")
            .text("", self.name())
            .raw("", &format!("TestStatus.{}", self.status().as_str().to_uppercase()));
        if self.severity() != TestSeverity::Major {
            call = call.raw("", &format!("TestSeverity.{}", self.severity().as_str().to_uppercase()));
        }
        call = call
            .text_unless("message", self.message(), "")
            .number_unless("duration_ms", self.duration_ms(), 0.0)
            .text_unless("details", self.details(), "");
        if let Some(reason) = self.reason() {
            call = call.text("reason", reason);
        }
        if let Some(file) = self.file() {
            call = call.text("file", file);
        }
        if let Some(line) = self.line() {
            call = call.raw("line", &line.to_string());
        }
        call.done()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("name", self.name())?;
        kwargs.set_item("status", self.status())?;
        kwargs.set_item("severity", self.severity())?;
        kwargs.set_item("message", self.message())?;
        kwargs.set_item("duration_ms", self.duration_ms())?;
        kwargs.set_item("details", self.details())?;
        kwargs.set_item("reason", self.reason())?;
        kwargs.set_item("file", self.file())?;
        kwargs.set_item("line", self.line())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str, &'static str) {
        ("name", "status", "severity", "message", "duration_ms")
    }

    /// Tells pytest that this is not a test class.
    #[classattr]
    fn __test__() -> bool {
        false
    }
}

#[pymethods]
impl SuiteResult {
    #[new]
    #[pyo3(signature = (tests: "Iterable[TestResult]", suite_name=Text::named("default"), *, coverage=None,
                        duration_ms=None, problems=Vec::new(), warnings=Vec::new(), hidden=Vec::new(), trust=None,
                        containment=None, marks=Vec::new()))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        tests: &Bound<'_, PyAny>,
        suite_name: Text,
        coverage: Option<f64>,
        duration_ms: Option<f64>,
        problems: Vec<Text>,
        warnings: Vec<Text>,
        hidden: Vec<Text>,
        trust: Option<Text>,
        containment: Option<Containment>,
        marks: Vec<Mark>,
    ) -> PyResult<Self> {
        let owned = |texts: Vec<Text>| texts.into_iter().map(|t| t.0).collect();
        let named = About::named(&suite_name.0);
        let about = About {
            coverage,
            duration_ms,
            problems: owned(problems),
            warnings: owned(warnings),
            hidden: owned(hidden),
            trust: trust.map(|t| t.0.into()),
            containment: containment.map(Arc::new),
            marks,
            ..named
        };
        Ok(Self::new(tests_of(tests)?, about)?)
    }

    /// The tests, in order.
    #[getter(tests)]
    fn py_tests(&self) -> Tuple<TestResult> {
        Tuple(self.tests().to_vec())
    }

    /// The tests that failed or ended in an error, in order.
    #[getter(failing)]
    fn py_failing(&self) -> Tuple<TestResult> {
        Tuple(self.failing().cloned().collect())
    }

    /// The suite's name.
    #[getter(suite_name)]
    fn py_suite_name(&self) -> &str {
        &self.about().suite_name
    }

    /// Share of the candidate's lines that ran, 0..1; None when not measured.
    #[getter(coverage)]
    fn py_coverage(&self) -> Option<f64> {
        self.about().coverage
    }

    /// Wall time of the run in milliseconds; None when not measured.
    #[getter(duration_ms)]
    fn py_duration_ms(&self) -> Option<f64> {
        self.about().duration_ms
    }

    /// What went wrong outside any test.
    #[getter(problems)]
    fn py_problems(&self) -> Tuple<&str> {
        Tuple(self.about().problems.iter().map(String::as_str).collect())
    }

    /// What the reader should know and that changes nothing.
    #[getter(warnings)]
    fn py_warnings(&self) -> Tuple<&str> {
        Tuple(self.about().warnings.iter().map(String::as_str).collect())
    }

    /// By how much the pass rate of the tests that are shown exceeds that of the hidden ones, -1..1; None without
    /// hidden tests. A wide gap is the mark of code that knows the tests instead of the task.
    #[getter(hidden_gap)]
    fn py_hidden_gap(&self) -> Option<f64> {
        self.hidden_gap()
    }

    /// Names of tests that are never shown to the agent.
    #[getter(hidden)]
    fn py_hidden(&self) -> Tuple<&str> {
        Tuple(self.about().hidden.iter().map(String::as_str).collect())
    }

    /// Who vouches for it: "isolated", "shared" or "reported"; None when made by hand.
    #[getter(trust)]
    fn py_trust(&self) -> Option<&str> {
        self.about().trust.as_deref()
    }

    /// What the kernel enforced around the candidate; None where nothing was contained.
    #[getter(containment)]
    fn py_containment(&self) -> Option<Containment> {
        self.about().containment.as_deref().cloned()
    }

    /// What looked suspicious in the candidate; it changes no outcome. See `testgrad.audit.audit_run` for more.
    #[getter(marks)]
    fn py_marks(&self) -> Tuple<Mark> {
        Tuple(self.about().marks.clone())
    }

    /// How many tests there are.
    #[getter(total)]
    fn py_total(&self) -> u32 {
        self.tally().total()
    }

    /// How many tests passed.
    #[getter(passed)]
    fn py_passed(&self) -> u32 {
        self.tally().passed
    }

    /// How many tests failed.
    #[getter(failed)]
    fn py_failed(&self) -> u32 {
        self.tally().failed
    }

    /// How many tests ended in an error.
    #[getter(errors)]
    fn py_errors(&self) -> u32 {
        self.tally().errors
    }

    /// How many tests were skipped.
    #[getter(skipped)]
    fn py_skipped(&self) -> u32 {
        self.tally().skipped
    }

    /// passed / (total - skipped), 0.0 when nothing is active.
    #[getter(pass_rate)]
    fn py_pass_rate(&self) -> f64 {
        self.tally().pass_rate()
    }

    /// At least one active test, all active ones passed, and no problems.
    #[getter(all_passed)]
    fn py_all_passed(&self) -> bool {
        self.all_passed()
    }

    /// The value as JSON; `from_json` reads it back.
    #[pyo3(name = "to_json")]
    fn py_to_json(&self) -> PyResult<String> {
        to_json(self)
    }

    /// The value that `to_json` wrote.
    ///
    /// Raises:
    ///     ValueError: Text that is not such JSON, with line and column.
    #[staticmethod]
    #[pyo3(name = "from_json", signature = (text: "str | bytes"))]
    fn py_from_json(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        from_json("SuiteResult", text)
    }

    fn __len__(&self) -> usize {
        self.tests().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        item(py, "test", self.tests(), index)
    }

    /// The place of the first test equal to `value`.
    ///
    /// Raises:
    ///     ValueError: There is none.
    #[pyo3(signature = (value: "object"))]
    fn index(&self, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        place_of(self.tests(), value).next().ok_or_else(|| PyValueError::new_err("no such test"))
    }

    /// How many tests are equal to `value`.
    #[pyo3(signature = (value: "object"))]
    fn count(&self, value: &Bound<'_, PyAny>) -> usize {
        place_of(self.tests(), value).count()
    }

    fn __reversed__(&self) -> Iter<TestResult> {
        Iter(self.tests().iter().rev().cloned().collect())
    }

    fn __iter__(&self) -> Iter<TestResult> {
        Iter(self.tests().to_vec())
    }

    fn __contains__(&self, test: &Bound<'_, PyAny>) -> bool {
        place_of(self.tests(), test).next().is_some()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let tally = self.tally();
        let counts = [
            (tally.passed, "passed"),
            (tally.failed, "failed"),
            (tally.errors, "errors"),
            (tally.skipped, "skipped"),
            (self.about().problems.len() as u32, "problems"),
        ];
        let said: Vec<_> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        let said = if said.is_empty() { "no tests".to_owned() } else { said.join(", ") };
        format!("<SuiteResult {}: {said}>", quoted(py, &self.about().suite_name))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let about = self.about();
        let kwargs = PyDict::new(py);
        kwargs.set_item("tests", self.py_tests())?;
        kwargs.set_item("suite_name", &*about.suite_name)?;
        kwargs.set_item("coverage", about.coverage)?;
        kwargs.set_item("duration_ms", about.duration_ms)?;
        kwargs.set_item("problems", self.py_problems())?;
        kwargs.set_item("warnings", self.py_warnings())?;
        kwargs.set_item("hidden", self.py_hidden())?;
        kwargs.set_item("trust", about.trust.as_deref())?;
        kwargs.set_item("containment", self.py_containment())?;
        kwargs.set_item("marks", self.py_marks())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("tests", "suite_name")
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        py.import("testgrad._html")?.call_method1("suite_html", (self.clone(),))?.extract()
    }
}

/// The tests of any iterable; a wrong element is named by its place.
fn tests_of(tests: &Bound<'_, PyAny>) -> PyResult<Vec<TestResult>> {
    let mut out = Vec::with_capacity(tests.len().unwrap_or(0));
    let iterator = tests.try_iter().map_err(|_| wrong_type("tests", "an iterable of TestResult", tests))?;
    for (place, test) in iterator.enumerate() {
        let test = test?;
        match test.cast::<TestResult>() {
            Ok(test) => out.push(test.get().clone()),
            Err(_) => return Err(wrong_type(&format!("tests[{place}]"), "TestResult", &test)),
        }
    }
    Ok(out)
}

/// The places of the elements equal to a Python object.
pub(super) fn place_of<'a, T: PyClass<Frozen = True> + Sync + PartialEq>(
    values: &'a [T],
    object: &'a Bound<'_, PyAny>,
) -> impl Iterator<Item = usize> + 'a {
    let wanted = object.cast::<T>().ok().map(|object| object.get());
    let places = values.iter().enumerate().filter(move |(_, value)| wanted == Some(*value));
    places.map(|(place, _)| place)
}

/// The element at a Python index.
pub(super) fn place_in<T>(values: &[T], index: i64) -> Option<&T> {
    let place = if index < 0 { index.saturating_add_unsigned(values.len() as u64) } else { index };
    values.get(usize::try_from(place).ok()?)
}

/// The element at a Python index, or the tuple of a slice.
pub(super) fn item<'py, T: Clone + IntoPyObject<'py>>(
    py: Python<'py>,
    what: &str,
    values: &[T],
    index: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if index.is_instance_of::<PySlice>() {
        return PyTuple::new(py, values.to_vec())?.as_any().get_item(index);
    }
    let out_of_range = || PyIndexError::new_err(format!("{what} index out of range"));
    let index: i64 = index.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(py) { out_of_range() } else { error }
    })?;
    match place_in(values, index) {
        Some(value) => value.clone().into_bound_py_any(py),
        None => Err(out_of_range()),
    }
}
