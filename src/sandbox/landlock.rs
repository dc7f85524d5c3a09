//! The file system, TCP and signals, closed by Landlock: needs no privilege and no namespace.
//!
//! Source: the kernel's documentation, userspace-api/landlock.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::containment::LayerStatus;

/// The newest interface whose rights are asked for; an older kernel enforces what it knows.
const NEWEST: ABI = ABI::V7;

/// Devices that programs read and write.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Lets this process and what it starts read below some paths and write below others, and nothing else.
pub(super) fn restrict(
    readable: &[&Path],
    writable: &[PathBuf],
) -> Result<(LayerStatus, String), RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let read = AccessFs::from_read(NEWEST);
    let write = AccessFs::from_all(NEWEST);
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let rules = rules
        .add_rules(beneath(readable.iter().copied(), read))?
        .add_rules(beneath(writable.iter().map(PathBuf::as_path), write))?
        .add_rules(beneath(DEVICES.iter().map(Path::new), device))?;
    let status = rules.restrict_self()?.ruleset;
    Ok(match status {
        RulesetStatus::FullyEnforced => {
            (LayerStatus::Enforced, "files, TCP, signals and abstract sockets".to_owned())
        }
        RulesetStatus::PartiallyEnforced => {
            (LayerStatus::Partial, "what this kernel's Landlock knows; files at least".to_owned())
        }
        RulesetStatus::NotEnforced => (LayerStatus::Unavailable, "this kernel has no Landlock".to_owned()),
    })
}

/// One rule for each path that is there.
fn beneath<'a>(
    paths: impl Iterator<Item = &'a Path>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<PathFd>, RulesetError>> {
    let files = AccessFs::from_file(NEWEST);
    paths.filter_map(move |path| {
        let is_directory = path.metadata().ok()?.is_dir();
        let access = if is_directory { access } else { access & files };
        PathFd::new(path).ok().map(|fd| Ok(PathBeneath::new(fd, access)))
    })
}
