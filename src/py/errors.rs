//! The only place that maps errors of the core to Python exceptions.

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyType};

use crate::{outcome, runner, store, task};

impl From<outcome::Error> for PyErr {
    fn from(error: outcome::Error) -> Self {
        PyValueError::new_err(error.to_string())
    }
}

impl From<store::Error> for PyErr {
    fn from(error: store::Error) -> Self {
        let (path, line) = match &error {
            store::Error::Io { path, source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let no_such_file = source.raw_os_error().unwrap_or_default();
                let words = "No such file or directory";
                return PyFileNotFoundError::new_err((no_such_file, words, path.clone().into_os_string()));
            }
            store::Error::Broken { path, line, .. } => (path, Some(*line)),
            store::Error::Io { path, .. }
            | store::Error::InUse { path }
            | store::Error::NotEmpty { path }
            | store::Error::NoHeader { path }
            | store::Error::Differs { path, .. } => (path, None),
        };
        Python::attach(|py| {
            let make = || -> PyResult<PyErr> {
                let kwargs = [("path", path.as_os_str().into_pyobject(py)?.into_any())].into_py_dict(py)?;
                kwargs.set_item("line", line)?;
                let exception = class(py, "StoreError")?.call((error.to_string(),), Some(&kwargs))?;
                Ok(PyErr::from_value(exception))
            };
            make().unwrap_or_else(|failed| failed)
        })
    }
}

impl From<runner::Error> for PyErr {
    fn from(error: runner::Error) -> Self {
        Python::attach(|py| {
            let exception = class(py, "NoVerdict").and_then(|class| class.call1((error.to_string(),)));
            exception.map_or_else(|failed| failed, Self::from_value)
        })
    }
}

impl From<task::Error> for PyErr {
    fn from(error: task::Error) -> Self {
        if let task::Problem::Io(source) = &error.problem
            && let Some(code) = source.raw_os_error()
        {
            // Python makes FileNotFoundError and its like of it.
            let words = source.to_string();
            let words = words.split(" (os error").next().unwrap_or_default().to_owned();
            return PyOSError::new_err((code, words, error.path.into_os_string()));
        }
        Python::attach(|py| {
            let make = || -> PyResult<PyErr> {
                let kwargs =
                    [("path", error.path.as_os_str().into_pyobject(py)?.into_any())].into_py_dict(py)?;
                kwargs.set_item("line", error.line)?;
                kwargs.set_item("format", error.format.map(task::Format::as_str))?;
                let exception = class(py, "TaskError")?.call((error.to_string(),), Some(&kwargs))?;
                Ok(PyErr::from_value(exception))
            };
            make().unwrap_or_else(|failed| failed)
        })
    }
}

impl From<runner::value::Error> for PyErr {
    fn from(error: runner::value::Error) -> Self {
        PyValueError::new_err(error.to_string())
    }
}

/// A class of `testgrad.errors`.
pub(super) fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("testgrad.errors")?.getattr(name)?.cast_into()?)
}
