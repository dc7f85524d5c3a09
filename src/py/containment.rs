//! [`Containment`] and [`Layer`]: what really held a candidate.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{NewArgs, Tuple};
use super::repr::quoted;
use crate::containment::{Containment, Layer, LayerStatus};

#[pymethods]
impl Layer {
    #[new]
    #[pyo3(signature = (name, status, reason=""))]
    fn py_new(name: &str, status: &str, reason: &str) -> PyResult<Self> {
        let status = LayerStatus::parse(status).ok_or_else(|| {
            PyValueError::new_err(format!(
                "status must be \"enforced\", \"partial\" or \"unavailable\", got {status:?}"
            ))
        })?;
        Ok(Self { name: name.to_owned(), status, reason: reason.to_owned() })
    }

    /// Its name.
    #[getter(name)]
    fn py_name(&self) -> &str {
        &self.name
    }

    /// "enforced", "partial" (the reason says against what it does not hold) or "unavailable".
    #[getter(status)]
    fn py_status(&self) -> &'static str {
        self.status.as_str()
    }

    /// What it does here, or why it does not.
    #[getter(reason)]
    fn py_reason(&self) -> &str {
        &self.reason
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let [name, status, reason] =
            [&self.name, self.status.as_str(), &self.reason].map(|text| quoted(py, text));
        format!("Layer({name}, {status}, {reason})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("name", &self.name)?;
        kwargs.set_item("status", self.status.as_str())?;
        kwargs.set_item("reason", &self.reason)?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }
}

#[pymethods]
impl Containment {
    #[new]
    fn py_new(layers: Vec<Layer>) -> Self {
        Self::of(layers)
    }

    /// "full" with namespaces and system calls filtered; "partial" where files and system calls are closed
    /// without namespaces; "weak" where only limits hold.
    #[getter(level)]
    fn py_level(&self) -> &'static str {
        self.level()
    }

    /// The mechanisms, from the outside in.
    #[getter(layers)]
    fn py_layers(&self) -> Tuple<Layer> {
        Tuple(self.layers().to_vec())
    }

    fn __repr__(&self) -> String {
        let count = |status| self.layers().iter().filter(|layer| layer.status == status).count();
        format!(
            "<Containment {}: {} enforced, {} partial, {} unavailable>",
            self.level(),
            count(LayerStatus::Enforced),
            count(LayerStatus::Partial),
            count(LayerStatus::Unavailable)
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("layers", self.py_layers())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }
}
