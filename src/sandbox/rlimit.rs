//! Limits that the kernel counts for each process; see getrlimit(2).

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::launch::Walls;

/// Address space that an interpreter and its libraries take without using it.
const HEADROOM_BYTES: u64 = 2 << 30;

/// Sets all of them, hard, so that they cannot be raised again.
pub(super) fn set(walls: &Walls) -> io::Result<()> {
    let limits = [
        (Resource::As, walls.memory_bytes.saturating_add(HEADROOM_BYTES)),
        (Resource::Core, 0),
        (Resource::Fsize, walls.file_bytes),
        (Resource::Nofile, walls.open_files),
        (Resource::Nproc, walls.processes.saturating_add(1)),
        (Resource::Stack, walls.stack_bytes),
    ];
    for (resource, wanted) in limits {
        // One that is lower already stays.
        let value = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    }
    Ok(())
}
