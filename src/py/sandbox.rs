//! The launcher's entry: a fresh interpreter becomes a contained program.

use pyo3::prelude::*;

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
