//! Runs a project's own tests where they are, without a candidate: nothing contains them but their time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::pytest::{Ended, Run};
use super::{Error, Generation, IsCancelled};
use crate::outcome::SuiteResult;
use crate::sandbox::{self, Bounds, Command, Scratch};

/// How a project's tests are run.
#[derive(Clone, Debug)]
pub struct Project {
    /// The interpreter.
    pub python: PathBuf,
    /// The program it runs: `_worker.py` of the package.
    pub worker: PathBuf,
    /// Arguments for pytest.
    pub args: Vec<String>,
    /// The whole environment but for `HOME` and `TMPDIR`.
    pub env: Vec<(OsString, OsString)>,
    /// Wall time of a run.
    pub timeout: Duration,
}

impl Project {
    /// Runs the tests in `directory`.
    pub fn run(&self, directory: &Path, is_cancelled: &mut IsCancelled<'_>) -> Result<SuiteResult, Error> {
        let generation = Generation::now();
        let mut is_cancelled = || generation.is_cancelled() || is_cancelled();
        let scratch = Scratch::new(&std::env::temp_dir())?;
        let mut env = self.env.clone();
        for (variable, name) in [("HOME", "home"), ("TMPDIR", "tmp")] {
            let path = scratch.path().join(name);
            std::fs::create_dir(&path).map_err(|error| (path.clone(), error))?;
            env.push((variable.into(), path.into()));
        }
        let path = scratch.path().join("settings.json");
        let mut args = vec!["-p".to_owned(), "no:cacheprovider".to_owned()];
        args.extend(self.args.iter().cloned());
        let run = Run::new(&self.python, self.timeout, None);
        run.finish(&mut is_cancelled, &mut |told, watch| {
            let settings = json!({"args": args, "done": told.done, "skipped": told.skipped});
            std::fs::write(&path, settings.to_string()).map_err(|error| (path.clone(), error))?;
            let command = Command {
                program: self.python.clone(),
                args: vec![self.worker.clone().into(), path.clone().into()],
                directory: directory.to_owned(),
                env: env.clone(),
                bounds: Bounds { report_bytes: told.report_bytes, ..Bounds::with_timeout(told.time) },
            };
            let output = sandbox::run(&command, watch)?;
            Ok(Ended {
                end: output.end,
                stdout: output.stdout,
                stderr: output.stderr,
                counted: output.duration,
                cpu: Duration::ZERO,
            })
        })
    }
}
