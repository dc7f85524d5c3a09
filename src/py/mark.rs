//! Python methods of [`Mark`].

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{NewArgs, Text};
use super::repr::Call;
use crate::mark::{KINDS, Mark, OnTamper};

#[pymethods]
impl Mark {
    #[new]
    #[pyo3(signature = (kind, evidence, *, test=None))]
    fn py_new(kind: &str, evidence: Text, test: Option<Text>) -> PyResult<Self> {
        Self::new(kind, &evidence.0, test.as_ref().map(|test| &*test.0)).ok_or_else(|| {
            PyValueError::new_err(format!("kind must be one of {}, got {kind:?}", KINDS.join(", ")))
        })
    }

    /// "tampering", "blocked", "internals", "table" or "gap".
    #[getter(kind)]
    fn py_kind(&self) -> &str {
        &self.kind
    }

    /// What shows it, with file and line where there is one.
    #[getter(evidence)]
    fn py_evidence(&self) -> &str {
        &self.evidence
    }

    /// The test in which it was seen.
    #[getter(test)]
    fn py_test(&self) -> Option<&str> {
        self.test.as_deref()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let mut call = Call::new(py, "Mark").text("", &self.kind).text("", &self.evidence);
        if let Some(test) = &self.test {
            call = call.text("test", test);
        }
        call.done()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("kind", &self.kind)?;
        kwargs.set_item("evidence", &self.evidence)?;
        kwargs.set_item("test", self.test.as_deref())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }
}

/// What to do with a suite that has marks, by its name.
pub(super) fn on_tamper(name: &str) -> PyResult<OnTamper> {
    OnTamper::parse(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "on_tamper must be \"report\", \"zero\" or \"no_verdict\", got {name:?}"
        ))
    })
}
