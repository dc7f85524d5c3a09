//! Test files as pytest compiles them, with its assertions rewritten: done once for many candidates.
//!
//! A worker compiles them in a child that has no candidate and executes nothing of them, so what is kept here
//! is as trusted as the tests themselves.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::Error;
use super::contained::Request;
use super::stage::Staged;
use super::stdio::from_base64;
use super::tree::Entry;
use crate::sandbox::{Event, Job, Lease, Waits};

/// Beyond that pytest does it each time.
const TIMEOUT: Duration = Duration::from_secs(60);
const LINE_BYTES: usize = 32 << 20;

/// The compiled tests of one runner; nothing until tests are used for the second time.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    known: Arc<Mutex<Option<Known>>>,
}

#[derive(Clone, Debug)]
struct Known {
    /// Of all the tests' files.
    hash: u64,
    files: Option<Arc<Vec<Entry>>>,
}

#[derive(Deserialize)]
struct Line {
    path: String,
    compiled: String,
}

impl Rewritten {
    /// Files to be laid beside the tests.
    pub(super) fn of(&self, staged: &Staged, lease: &mut Lease) -> Result<Arc<Vec<Entry>>, Error> {
        let tests = staged.parcel.entries().get(..staged.tests).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        tests.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let new = match known.filter(|known| known.hash == hash) {
            Some(Known { files: Some(files), .. }) => return Ok(files),
            Some(_) => Some(Arc::new(Self::make(tests, lease)?)),
            None => None,
        };
        let files = new.clone().unwrap_or_default();
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Known { hash, files: new });
        Ok(files)
    }

    fn make(tests: &[Entry], lease: &mut Lease) -> Result<Vec<Entry>, Error> {
        let names: Vec<&Path> =
            tests.iter().map(|test| test.path.as_path()).filter(|path| is_rewritten(path)).collect();
        let request = Request::new(json!({"kind": "pytest", "rewrite": names}), tests, &[]);
        let job = Job {
            request: request.parts(),
            stdin: &[],
            timeout: TIMEOUT,
            cpu: TIMEOUT,
            output_bytes: 1 << 16,
            ends_on_flood: false,
            report_bytes: 256 << 20,
            line_bytes: LINE_BYTES,
            more: Vec::new(),
            waits: Waits::Apart,
        };
        let mut files = Vec::new();
        let mut watch = |event: Event<'_>| {
            if let Event::Line(line, _) = event
                && let Ok(Line { path, compiled }) = serde_json::from_slice(line)
                && let Some(body) = from_base64(&compiled)
            {
                files.push(Entry { path: path.into(), mode: Some(0o644), body });
            }
            ControlFlow::Continue(())
        };
        lease.run(&job, &mut watch, &mut || false)?;
        Ok(files)
    }
}

/// Whether pytest rewrites the assertions of a file by its name.
fn is_rewritten(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "conftest.py"
        || name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}
