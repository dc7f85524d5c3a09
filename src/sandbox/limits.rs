//! What a candidate may use.

use std::time::Duration;

use super::launch::Walls;

/// What a candidate may use; each has one default, which honest programs do not reach.
///
/// Args:
///     timeout_s: Time of a whole run in seconds, > 0: elapsed time, less what the machine made it wait
///         for a processor.
///     test_timeout_s: The same for one test or case; None means the run's.
///     cpu_s: Processor time of a run, all its processes and threads together; None means `timeout_s` on
///         every processor.
///     memory_bytes: Memory of all its processes together, and of the files it writes.
///     processes: Processes and threads at a time.
///     file_bytes: Size of one file.
///     scratch_bytes: Size of all its files together.
///     open_files: Descriptors of one process.
///     output_bytes: Bytes it may print, on each of standard output and standard error. A pytest run may
///         print more; of that the beginning and the end are kept.
///     stack_bytes: The main thread's stack.
///
/// Raises:
///     ValueError: A limit is out of range.
///
/// Example:
///     >>> from testgrad import Limits
///     >>> Limits(timeout_s=2).memory_bytes
///     1073741824
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, get_all, from_py_object, module = "testgrad"))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Time of a whole run in seconds.
    pub timeout_s: f64,
    /// Time of one test or case in seconds.
    pub test_timeout_s: Option<f64>,
    /// Processor time of a run in seconds.
    pub cpu_s: Option<f64>,
    /// Memory of all processes together.
    pub memory_bytes: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Size of all files together.
    pub scratch_bytes: u64,
    /// Descriptors of one process.
    pub open_files: u64,
    /// Bytes on each of standard output and standard error.
    pub output_bytes: u64,
    /// The main thread's stack.
    pub stack_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout_s: 10.0,
            test_timeout_s: None,
            cpu_s: None,
            memory_bytes: 1 << 30,
            processes: 64,
            file_bytes: 64 << 20,
            scratch_bytes: 256 << 20,
            open_files: 1024,
            output_bytes: 16 << 20,
            stack_bytes: 8 << 20,
        }
    }
}

impl Limits {
    /// The limits, when each is in its range.
    pub fn checked(self) -> Result<Self, String> {
        let seconds = [
            ("timeout_s", Some(self.timeout_s)),
            ("test_timeout_s", self.test_timeout_s),
            ("cpu_s", self.cpu_s),
        ];
        for (name, value) in seconds {
            if value.is_some_and(|value| !(value > 0.0 && value <= 1e9)) {
                return Err(format!("{name} must be > 0 and at most 1e9, got {}", value.unwrap_or_default()));
            }
        }
        // Below these no interpreter starts.
        let least = [
            ("memory_bytes", self.memory_bytes, 16 << 20),
            ("processes", self.processes, 1),
            ("file_bytes", self.file_bytes, 4096),
            ("scratch_bytes", self.scratch_bytes, 1 << 20),
            ("open_files", self.open_files, 32),
            ("output_bytes", self.output_bytes, 1),
            ("stack_bytes", self.stack_bytes, 1 << 20),
        ];
        for (name, value, least) in least {
            if value < least || value > 1 << 50 {
                return Err(format!("{name} must be {least} to {}, got {value}", 1_u64 << 50));
            }
        }
        Ok(self)
    }

    /// Time of a whole run.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }

    /// Time of one test or case, when it has one of its own.
    pub fn test_timeout(&self) -> Option<Duration> {
        self.test_timeout_s.map(Duration::from_secs_f64)
    }

    /// Processor time of a run.
    pub fn cpu(&self) -> Duration {
        match self.cpu_s {
            Some(seconds) => Duration::from_secs_f64(seconds),
            None => {
                let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                self.timeout() * u32::try_from(processors).unwrap_or(u32::MAX)
            }
        }
    }

    /// Those of them that the kernel holds for as long as a worker lives.
    pub fn walls(&self) -> Walls {
        Walls {
            memory_bytes: self.memory_bytes,
            processes: self.processes,
            file_bytes: self.file_bytes,
            scratch_bytes: self.scratch_bytes,
            open_files: self.open_files,
            stack_bytes: self.stack_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_out_of_range_are_named() {
        let refused = |limits: Limits| limits.checked().unwrap_err();
        let usual = Limits::default();
        assert!(refused(Limits { timeout_s: 0.0, ..usual }).starts_with("timeout_s must be > 0"));
        assert!(refused(Limits { cpu_s: Some(f64::NAN), ..usual }).starts_with("cpu_s must be > 0"));
        assert!(refused(Limits { memory_bytes: 1, ..usual }).starts_with("memory_bytes must be 16777216 to"));
        assert_eq!(usual.checked(), Ok(usual));
    }
}
