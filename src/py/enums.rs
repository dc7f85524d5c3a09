//! Python's own enums, mapped member by member, cached once.

use pyo3::exceptions::PyTypeError;
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use pyo3::{type_hint_identifier, type_hint_union};

use crate::outcome::{TestSeverity, TestStatus};

static STATUSES: PyOnceLock<[Py<PyAny>; 4]> = PyOnceLock::new();
static SEVERITIES: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();

fn member(py: Python<'_>, class: &str, name: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("testgrad.enums")?.getattr(class)?.getattr(name.to_uppercase())?.unbind())
}

fn statuses(py: Python<'_>) -> PyResult<&[Py<PyAny>; 4]> {
    STATUSES.get_or_try_init(py, || {
        let [a, b, c, d] = TestStatus::ALL.map(|s| member(py, "TestStatus", s.as_str()));
        Ok([a?, b?, c?, d?])
    })
}

fn severities(py: Python<'_>) -> PyResult<&[Py<PyAny>; 3]> {
    SEVERITIES.get_or_try_init(py, || {
        let [a, b, c] = TestSeverity::ALL.map(|s| member(py, "TestSeverity", s.as_str()));
        Ok([a?, b?, c?])
    })
}

/// The Rust member whose Python member is this very object.
fn same<T: Copy>(cached: &[Py<PyAny>], members: &[T], object: &Borrowed<'_, '_, PyAny>) -> Option<T> {
    let at = cached.iter().position(|m| m.as_ptr() == object.as_ptr())?;
    members.get(at).copied()
}

impl<'a, 'py> FromPyObject<'a, 'py> for TestStatus {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        type_hint_identifier!("testgrad.enums", "TestStatus"),
        type_hint_identifier!("builtins", "str")
    );

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(member) = same(statuses(object.py())?, &Self::ALL, &object) {
            return Ok(member);
        }
        match object.cast::<PyString>() {
            Ok(word) => Ok(Self::parse(&word.to_cow()?)?),
            Err(_) => Err(wrong_type("status", "TestStatus or its value", &object)),
        }
    }
}

impl<'py> IntoPyObject<'py> for TestStatus {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = type_hint_identifier!("testgrad.enums", "TestStatus");

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let [passed, failed, error, skipped] = statuses(py)?;
        let member = match self {
            Self::Passed => passed,
            Self::Failed => failed,
            Self::Error => error,
            Self::Skipped => skipped,
        };
        Ok(member.bind(py).clone())
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for TestSeverity {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        type_hint_identifier!("testgrad.enums", "TestSeverity"),
        type_hint_identifier!("builtins", "str"),
        type_hint_identifier!("builtins", "int")
    );

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(member) = same(severities(object.py())?, &Self::ALL, &object) {
            return Ok(member);
        }
        if let Ok(word) = object.cast::<PyString>() {
            return Ok(Self::parse(&word.to_cow()?)?);
        }
        match object.extract::<i64>() {
            Ok(weight) => Ok(Self::from_weight(weight)?),
            Err(_) => Err(wrong_type("severity", "TestSeverity, its name or its value", &object)),
        }
    }
}

impl<'py> IntoPyObject<'py> for TestSeverity {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = type_hint_identifier!("testgrad.enums", "TestSeverity");

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let [critical, major, minor] = severities(py)?;
        let member = match self {
            Self::Critical => critical,
            Self::Major => major,
            Self::Minor => minor,
        };
        Ok(member.bind(py).clone())
    }
}

/// A `TypeError` that names the argument, what it takes and what it got.
pub(super) fn wrong_type(argument: &str, takes: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let got = got.get_type().name().map_or_else(|_| "another type".to_owned(), |n| n.to_string());
    PyTypeError::new_err(format!("{argument} must be {takes}, got {got}"))
}
