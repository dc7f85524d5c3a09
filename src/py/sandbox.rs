//! The launcher's entry, where a fresh interpreter becomes a contained program; warm workers; [`Limits`].

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::NewArgs;
use crate::sandbox::Limits;

/// Becomes the program that a plan describes; returns an exit code only when it could not.
#[pyfunction]
pub fn _launch(plan: &str) -> i32 {
    #[cfg(target_os = "linux")]
    return crate::sandbox::launch(plan);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = plan;
        1
    }
}

/// Ends a program that was launched and is still to be reaped, and all it started.
#[pyfunction]
pub fn _end(py: Python<'_>, pid: i32) {
    #[cfg(target_os = "linux")]
    py.detach(|| crate::sandbox::end(pid));
    #[cfg(not(target_os = "linux"))]
    let _ = (py, pid);
}

/// Ends all warm workers of this process; the next run starts new ones.
#[pyfunction]
pub fn close(py: Python<'_>) {
    py.detach(crate::sandbox::close);
}

/// How many warm workers wait for a job.
#[pyfunction]
pub fn _idle_workers() -> usize {
    crate::sandbox::idle()
}

#[pymethods]
impl Limits {
    #[new]
    #[pyo3(signature = (*, timeout_s=Limits::default().timeout_s, test_timeout_s=None, cpu_s=None,
                        memory_bytes=Limits::default().memory_bytes, processes=Limits::default().processes,
                        file_bytes=Limits::default().file_bytes, scratch_bytes=Limits::default().scratch_bytes,
                        open_files=Limits::default().open_files, output_bytes=Limits::default().output_bytes,
                        stack_bytes=Limits::default().stack_bytes))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        timeout_s: f64,
        test_timeout_s: Option<f64>,
        cpu_s: Option<f64>,
        memory_bytes: u64,
        processes: u64,
        file_bytes: u64,
        scratch_bytes: u64,
        open_files: u64,
        output_bytes: u64,
        stack_bytes: u64,
    ) -> PyResult<Self> {
        let limits = Self {
            timeout_s,
            test_timeout_s,
            cpu_s,
            memory_bytes,
            processes,
            file_bytes,
            scratch_bytes,
            open_files,
            output_bytes,
            stack_bytes,
        };
        limits.checked().map_err(PyValueError::new_err)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let usual = Self::default().to_kwargs(py)?;
        let mut parts = Vec::new();
        for (name, value) in self.to_kwargs(py)? {
            if !value.eq(usual.get_item(&name)?)? {
                parts.push(format!("{name}={}", value.repr()?));
            }
        }
        Ok(format!("Limits({})", parts.join(", ")))
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        Ok(NewArgs(py.get_type::<Self>(), self.to_kwargs(py)?))
    }
}

impl Limits {
    fn to_kwargs<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("timeout_s", self.timeout_s)?;
        kwargs.set_item("test_timeout_s", self.test_timeout_s)?;
        kwargs.set_item("cpu_s", self.cpu_s)?;
        kwargs.set_item("memory_bytes", self.memory_bytes)?;
        kwargs.set_item("processes", self.processes)?;
        kwargs.set_item("file_bytes", self.file_bytes)?;
        kwargs.set_item("scratch_bytes", self.scratch_bytes)?;
        kwargs.set_item("open_files", self.open_files)?;
        kwargs.set_item("output_bytes", self.output_bytes)?;
        kwargs.set_item("stack_bytes", self.stack_bytes)?;
        Ok(kwargs)
    }
}

/// Whether a message from the process of a candidate may pass to a judge; for tests.
#[pyfunction]
pub fn _is_sound(message: &[u8]) -> bool {
    crate::runner::wire::is_sound(message)
}
