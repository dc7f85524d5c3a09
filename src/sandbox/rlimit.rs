//! Limits that the kernel counts for each process; see getrlimit(2).

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::launch::Walls;

/// Address space that an interpreter and its libraries take without using it.
const HEADROOM_BYTES: u64 = 2 << 30;

/// Sets them hard, so that they cannot be raised again; that on processes only when it counts what it should.
pub(super) fn set(walls: &Walls, counts_processes: bool) -> io::Result<()> {
    let limits = [
        (Resource::As, walls.memory_bytes.saturating_add(HEADROOM_BYTES)),
        (Resource::Core, 0),
        (Resource::Fsize, walls.file_bytes),
        (Resource::Nofile, walls.open_files),
        (Resource::Stack, walls.stack_bytes),
    ];
    let processes = (Resource::Nproc, walls.processes.saturating_add(1));
    for (resource, wanted) in limits.into_iter().chain(counts_processes.then_some(processes)) {
        // One that is lower already stays.
        let value = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    }
    Ok(())
}
