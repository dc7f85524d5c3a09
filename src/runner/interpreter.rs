//! The interpreter that a runner works with: where it keeps what it needs, asked once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use super::Error;

/// An interpreter and the directories it reads from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Interpreter {
    /// Its path, as it was found.
    pub(super) path: PathBuf,
    /// Its installation, its environment, and the packages of both.
    pub(super) homes: Vec<PathBuf>,
    /// Major and minor version.
    pub(super) version: (u32, u32),
}

/// Says, as JSON, where the interpreter is and what it reads.
///
/// Directories that an editable install has put on the path are somebody's work, not part of the interpreter.
const QUESTION: &str = "
import json, os, site, sys
homes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
homes |= {os.path.dirname(os.path.realpath(sys.executable))}
if site.ENABLE_USER_SITE: homes |= {site.getuserbase()}
homes |= {path for path in sys.path if path.endswith(('site-packages', 'dist-packages')) or path.endswith('.zip')}
print(json.dumps({'path': sys.executable, 'homes': sorted(p for p in homes if os.path.exists(p)), 'version': sys.version_info[:2]}))
";

impl Interpreter {
    /// Asks the interpreter; the answer is kept for as long as this process lives.
    pub(super) fn ask(python: &Path, env: &[(String, String)]) -> Result<Self, Error> {
        static KNOWN: Mutex<Option<HashMap<PathBuf, Interpreter>>> = Mutex::new(None);
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().as_ref().and_then(|known| known.get(python)) {
            return Ok(found.clone());
        }
        let found = Self::ask_anew(python, env)?;
        known().get_or_insert_default().insert(python.to_owned(), found.clone());
        Ok(found)
    }

    fn ask_anew(python: &Path, env: &[(String, String)]) -> Result<Self, Error> {
        let failed = |output: String| Error::NoPython { python: python.to_owned(), output };
        let answer = Command::new(python)
            .args(["-B", "-c", QUESTION])
            .env_clear()
            .envs(env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .output()
            .map_err(|error| failed(error.to_string()))?;
        let found: Self = serde_json::from_slice(&answer.stdout).map_err(|_| {
            failed(format!("it did not say where it is: {}", String::from_utf8_lossy(&answer.stderr).trim()))
        })?;
        if found.version < (3, 8) {
            let (major, minor) = found.version;
            return Err(failed(format!("it is Python {major}.{minor}; 3.8 or later is needed")));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_python_is_named() {
        let ask = |path: &str| Interpreter::ask(Path::new(path), &[]).unwrap_err().to_string();
        assert!(ask("/no/such/python").starts_with("/no/such/python is no interpreter"));
        assert!(ask("/bin/true").contains("did not say where it is"));
    }
}
