//! What really holds a program: each mechanism, and whether the kernel enforces it.

use serde::{Deserialize, Serialize};

/// How far a mechanism holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerStatus {
    /// The kernel enforces it.
    Enforced,
    /// It holds, but not against everything; the reason says against what it does not.
    Partial,
    /// It does not hold here.
    Unavailable,
}

/// One mechanism of containment and what became of it.
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, from_py_object, module = "testgrad.sandbox"))]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layer {
    /// Its name, one of [`NAMES`].
    pub name: String,
    /// How far it holds.
    pub status: LayerStatus,
    /// What it does here, or why it does not.
    pub reason: String,
}

/// The mechanisms, from the outside in.
pub const NAMES: [&str; 14] = [
    "user",
    "pid",
    "mount",
    "network",
    "ipc",
    "uts",
    "landlock",
    "seccomp",
    "no_new_privs",
    "capabilities",
    "rlimits",
    "memory",
    "processes",
    "scratch",
];

/// What really held a run: the mechanisms, in the order of [`NAMES`].
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, from_py_object, module = "testgrad.sandbox"))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Containment {
    layers: Vec<Layer>,
}

impl LayerStatus {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Partial => "partial",
            Self::Unavailable => "unavailable",
        }
    }

    /// The one of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Enforced, Self::Partial, Self::Unavailable].into_iter().find(|status| status.as_str() == name)
    }
}

impl Containment {
    /// These mechanisms.
    pub fn of(layers: Vec<Layer>) -> Self {
        let mut containment = Self::default();
        for Layer { name, status, reason } in layers {
            containment.set(&name, status, reason);
        }
        containment
    }

    /// The mechanisms.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// One mechanism.
    pub fn get(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// Whether the kernel enforces a mechanism.
    pub fn is_enforced(&self, name: &str) -> bool {
        self.get(name).is_some_and(|layer| layer.status == LayerStatus::Enforced)
    }

    /// `"full"` with namespaces and system calls filtered; `"partial"` where files and system calls are closed
    /// without namespaces; `"weak"` where only limits hold.
    pub fn level(&self) -> &'static str {
        let all = |names: &[&str]| names.iter().all(|name| self.is_enforced(name));
        if all(&["pid", "mount", "network", "ipc", "seccomp", "no_new_privs", "capabilities"]) {
            "full"
        } else if all(&["landlock", "seccomp", "no_new_privs"]) {
            "partial"
        } else {
            "weak"
        }
    }

    /// Notes what became of a mechanism; the last word counts.
    pub(crate) fn set(&mut self, name: &str, status: LayerStatus, reason: impl Into<String>) {
        let layer = Layer { name: name.to_owned(), status, reason: reason.into() };
        match self.layers.iter_mut().find(|old| old.name == name) {
            Some(old) => *old = layer,
            None => self.layers.push(layer),
        }
        let rank = |layer: &Layer| NAMES.iter().position(|name| *name == layer.name);
        self.layers.sort_by_key(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_says_what_is_missing() {
        let mut containment = Containment::default();
        assert_eq!(containment.level(), "weak");
        for name in ["landlock", "seccomp", "no_new_privs"] {
            containment.set(name, LayerStatus::Enforced, "");
        }
        assert_eq!(containment.level(), "partial");
        for name in ["pid", "mount", "network", "ipc", "capabilities"] {
            containment.set(name, LayerStatus::Enforced, "");
        }
        assert_eq!(containment.level(), "full");
        containment.set("pid", LayerStatus::Unavailable, "no");
        assert_eq!(containment.level(), "partial");
    }
}
