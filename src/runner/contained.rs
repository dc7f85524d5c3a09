//! What all runners of candidates share: an interpreter, limits, and a warm worker that keeps to them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};

use super::interpreter::Interpreter;
use super::tree::Entry;
use super::{Error, IsCancelled};
use crate::containment::{Containment, NAMES};
use crate::sandbox::{Blueprint, Lease, Limits};

/// What every Linux has and every interpreter needs.
const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime"];

/// The files of this package that a worker may need.
const PACKAGE: [&str; 9] = [
    "_zygote.py",
    "_watch.py",
    "_integrity.py",
    "_values.py",
    "_wire.py",
    "_mirror.py",
    "_surroundings.py",
    "_program.py",
    "_examine.py",
];

const LEVELS: [&str; 3] = ["weak", "partial", "full"];

/// How candidates are held, whatever is done with them.
#[derive(Clone, Debug)]
pub struct Contained {
    /// The interpreter.
    pub python: PathBuf,
    /// What a candidate may use.
    pub limits: Limits,
    /// Modules that are imported before a candidate begins.
    pub preload: Vec<String>,
    /// The environment but for `HOME` and `TMPDIR`; see [`inherited_environment`].
    pub env: Vec<(String, String)>,
    /// Seeds `random`.
    pub seed: Option<u64>,
    /// Paths that may be read beside the system and the interpreter.
    pub readable: Vec<PathBuf>,
    /// The least level of containment, or mechanisms that must be enforced.
    pub require: Vec<String>,
    /// Mechanisms not to use.
    pub avoid: Vec<String>,
    /// A program that becomes a worker; its last argument will be the plan.
    pub launcher: Vec<std::ffi::OsString>,
    /// The directory of this package, with the Python files of a worker.
    pub package: PathBuf,
    /// What was worked out before.
    pub known: Known,
}

/// The blueprint of a runner's workers, once it is known, and where their directories are made.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<Mutex<Option<Placed>>>);

type Placed = (PathBuf, Arc<Blueprint>);

/// What a run keeps of this process's environment: little, so that runs are alike and secrets stay away.
///
/// Like everything that reads the environment, it is not to be called while another thread changes it.
pub fn inherited_environment() -> Vec<(String, String)> {
    let text = |name: &str| std::env::var(name).ok();
    let path = text("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let mut env: Vec<(String, String)> = [
        ("PATH", path.as_str()),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    // Packages that the user has installed for himself are found through his home.
    let own = text("PYTHONUSERBASE").map(PathBuf::from);
    if let Some(base) = own.or_else(|| std::env::home_dir().map(|home| home.join(".local"))) {
        env.push(("PYTHONUSERBASE".to_owned(), base.to_string_lossy().into_owned()));
    }
    env
}

impl Contained {
    /// Says what is wrong with `require` or `avoid`, in words.
    pub fn check(&self) -> Result<(), String> {
        let known = |names: &[&str], name: &String| names.contains(&name.as_str());
        let all: Vec<&str> = LEVELS.iter().chain(&NAMES).copied().collect();
        for (argument, words, given) in
            [("require", all.as_slice(), &self.require), ("avoid", &NAMES, &self.avoid)]
        {
            if let Some(name) = given.iter().find(|name| !known(words, name)) {
                return Err(format!("{argument}: no {name:?}; there is {}", words.join(", ")));
            }
        }
        Ok(())
    }

    /// Where a file of this package lies.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.package.join(name)
    }

    /// A worker that does jobs of one kind.
    ///
    /// `job` is the file of this package that does them, `settings` what it is told at the start.
    pub(super) fn lease(
        &self,
        kind: &str,
        file: &str,
        settings: &Json,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<Lease, Error> {
        let blueprint = self.known_blueprint(kind, file, settings)?;
        let lease = Lease::take(&blueprint, is_cancelled).map_err(Error::from)?;
        self.check_containment(&lease.containment())?;
        let greeting: Json = serde_json::from_str(lease.greeting()).unwrap_or_default();
        match greeting.get("missing").and_then(Json::as_str) {
            Some("") | None => {}
            Some(module) => {
                return Err(Error::Missing { python: self.python.clone(), module: module.to_owned() });
            }
        }
        match greeting.get("message").and_then(Json::as_str) {
            Some("") | None => Ok(lease),
            Some(message) => {
                let (python, output) = (self.python.clone(), message.to_owned());
                Err(Error::NotReady { python, when: "when it loaded its modules".to_owned(), output })
            }
        }
    }

    /// A runner has one kind of workers, but they move with the directory for temporary files.
    fn known_blueprint(&self, kind: &str, file: &str, settings: &Json) -> Result<Arc<Blueprint>, Error> {
        let place = std::env::temp_dir();
        let known = || self.known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, blueprint)) = known().as_ref().filter(|(own, _)| *own == place) {
            return Ok(blueprint.clone());
        }
        let blueprint = Arc::new(self.blueprint(kind, file, settings, place.clone())?);
        *known() = Some((place, blueprint.clone()));
        Ok(blueprint)
    }

    fn blueprint(&self, kind: &str, file: &str, settings: &Json, place: PathBuf) -> Result<Blueprint, Error> {
        let interpreter = Interpreter::ask(&self.python, &self.env)?;
        let own = |name: &str| self.package.join(name);
        let mut told = json!({
            "jobs": {kind: own(file)},
            "watch": own("_watch.py"),
            "values": own("_values.py"),
            "preload": self.preload,
            "seed": self.seed,
        });
        if let (Some(told), Some(settings)) = (told.as_object_mut(), settings.as_object()) {
            told.extend(settings.clone());
        }
        let argv = vec![
            interpreter.path.to_string_lossy().into_owned(),
            "-B".to_owned(),
            own("_zygote.py").to_string_lossy().into_owned(),
            told.to_string(),
        ];
        let system = SYSTEM.iter().map(PathBuf::from);
        let package = PACKAGE.into_iter().chain([file]).map(own);
        // What the caller puts on the path of modules is to be read.
        let given = self.env.iter().filter(|(name, _)| name == "PYTHONPATH");
        let given =
            given.flat_map(|(_, paths)| std::env::split_paths(paths)).filter(|path| path.is_absolute());
        let readable =
            system.chain(interpreter.homes).chain(package).chain(given).chain(self.readable.iter().cloned());
        Ok(Blueprint {
            launcher: self.launcher.clone(),
            argv,
            env: self.env.clone(),
            readable: readable.collect(),
            walls: self.limits.walls(),
            avoid: self.avoid.clone(),
            place,
        })
    }

    /// Refuses to go on where less holds than was asked for.
    fn check_containment(&self, containment: &Arc<Containment>) -> Result<(), Error> {
        let rank = |level: &str| LEVELS.iter().position(|name| *name == level);
        let missing = self.require.iter().find(|name| match rank(name) {
            Some(least) => rank(containment.level()).unwrap_or_default() < least,
            None => !containment.is_enforced(name),
        });
        match missing {
            None => Ok(()),
            Some(name) => {
                let reason = match containment.get(name) {
                    Some(layer) => format!("{}: {}", layer.name, layer.reason),
                    None => format!("the level of containment is {:?}", containment.level()),
                };
                Err(Error::Uncontained { required: name.clone(), reason })
            }
        }
    }
}

/// A request as `_zygote.py` reads it: two sizes, a line of JSON, and the bytes it speaks of.
#[derive(Debug)]
pub(super) struct Request {
    head: Vec<u8>,
    blobs: Vec<u8>,
}

impl Request {
    /// A request with the files of a run and further bytes.
    pub(super) fn new<'a>(
        mut fields: Json,
        files: impl IntoIterator<Item = &'a Entry>,
        more: &[&[u8]],
    ) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let (mut blobs, mut list) = (Vec::new(), Vec::new());
        for file in files {
            let path = file.path.as_os_str().as_bytes();
            list.push(json!([path.len(), file.body.len(), file.mode]));
            blobs.extend_from_slice(path);
            blobs.extend_from_slice(&file.body);
        }
        for part in more {
            blobs.extend_from_slice(part);
        }
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("files".to_owned(), Json::Array(list));
        }
        let body = fields.to_string().into_bytes();
        let size = |bytes: &[u8]| (bytes.len() as u64).to_ne_bytes();
        let head = [size(&body).as_slice(), size(&blobs).as_slice(), &body].concat();
        Self { head, blobs }
    }

    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.head, &self.blobs]
    }
}

/// Where the package's launcher begins.
pub fn launcher(python: &Path, extension: &Path) -> Vec<std::ffi::OsString> {
    const CODE: &str = "import sys; from importlib.machinery import ExtensionFileLoader as Loader; \
        from importlib.util import module_from_spec, spec_from_file_location as spec; \
        loader = Loader('_testgrad', sys.argv[1]); \
        found = spec('_testgrad', sys.argv[1], loader=loader); \
        module = module_from_spec(found); loader.exec_module(module); \
        sys.exit(module._launch(sys.argv[2]))";
    let words = ["-I", "-S", "-B", "-c", CODE].map(std::ffi::OsString::from);
    [python.into()].into_iter().chain(words).chain([extension.into()]).collect()
}
