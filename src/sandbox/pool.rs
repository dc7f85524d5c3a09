//! Warm workers, shared by all that want equal ones: started when first needed, ended with this process.
//!
//! A forked copy of this process begins with no workers: they are children of the original, which alone can end
//! them. The kernel ends a worker with the *thread* that started it, so one thread starts them all and stays.

use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::relay::Relay;
use super::worker::{Blueprint, Done, Job, Worker};
use super::{Error, Watcher};
use crate::containment::Containment;

/// All workers of this process.
struct Pools {
    owner: u32,
    starter: Mutex<Option<Sender<Order>>>,
    /// Those that wait for a job; the one that has waited longest is the first.
    idle: Mutex<Vec<(Arc<Blueprint>, Worker)>>,
    /// How often all have been closed.
    closed: AtomicU64,
}

struct Order {
    command: Box<Command>,
    answer: Sender<io::Result<Child>>,
}

/// A worker that is taken out of the pool for some jobs, and goes back when it is dropped.
#[derive(Debug)]
pub struct Lease {
    blueprint: Arc<Blueprint>,
    worker: Option<Worker>,
    closed: u64,
}

impl Lease {
    /// A worker of this kind: one that is idle, else a new one.
    pub fn take(blueprint: &Arc<Blueprint>, is_cancelled: &mut dyn FnMut() -> bool) -> Result<Self, Error> {
        let pools = Pools::of_this_process();
        let closed = pools.closed.load(Ordering::Acquire);
        let next = || {
            let mut idle = lock(&pools.idle);
            idle.iter().rposition(|(own, _)| own == blueprint).map(|index| idle.remove(index).1)
        };
        // One may have been killed while it waited.
        let worker = match std::iter::from_fn(next).find(Worker::is_usable) {
            Some(worker) => worker,
            None => Worker::start(blueprint, &|command| pools.start(command), is_cancelled)?,
        };
        Ok(Self { blueprint: blueprint.clone(), worker: Some(worker), closed })
    }

    /// What holds it.
    pub fn containment(&self) -> Arc<Containment> {
        self.worker.as_ref().map(|worker| worker.containment().clone()).unwrap_or_default()
    }

    /// What it said when it was ready.
    pub fn greeting(&self) -> &str {
        self.worker.as_ref().map_or("", Worker::greeting)
    }

    /// Does one job, on a fresh worker where the last one is worn out.
    pub fn run(
        &mut self,
        job: &Job<'_>,
        watch: &mut Watcher<'_>,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Done, Error> {
        self.run_relayed(job, None, watch, is_cancelled)
    }

    /// The same, with what the job says to another process passed on.
    pub fn run_relayed(
        &mut self,
        job: &Job<'_>,
        relay: Option<Relay>,
        watch: &mut Watcher<'_>,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Done, Error> {
        if !self.worker.as_ref().is_some_and(Worker::is_usable) {
            self.worker = None;
            *self = Self::take(&self.blueprint, is_cancelled)?;
        }
        let Some(worker) = &mut self.worker else { return Err(Error::Cancelled) };
        worker.run(job, relay, watch)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let pools = Pools::of_this_process();
        let Some(worker) = self.worker.take().filter(Worker::is_usable) else { return };
        if pools.closed.load(Ordering::Acquire) != self.closed {
            return;
        }
        let most = 4 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut idle = lock(&pools.idle);
        idle.push((self.blueprint.clone(), worker));
        let oldest = (idle.len() > most).then(|| idle.remove(0));
        drop(idle);
        drop(oldest); // which takes a moment
    }
}

/// Ends all workers that do nothing at the moment; the others end when they are done.
pub fn close() {
    let pools = Pools::of_this_process();
    pools.closed.fetch_add(1, Ordering::AcqRel);
    let all = std::mem::take(&mut *lock(&pools.idle));
    drop(all);
}

/// How many workers wait for a job.
pub fn idle() -> usize {
    lock(&Pools::of_this_process().idle).len()
}

impl Pools {
    /// Those of this process, and not of the one that it was forked from. Takes no lock that another thread of
    /// that one may have held.
    fn of_this_process() -> &'static Self {
        static POOLS: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());
        let owner = std::process::id();
        let current = POOLS.load(Ordering::Acquire);
        // SAFETY: what is stored here came from `Box::leak` and is never freed.
        if let Some(pools) = unsafe { current.as_ref() }
            && pools.owner == owner
        {
            return pools;
        }
        let new: &'static mut Self = Box::leak(Box::new(Self {
            owner,
            starter: Mutex::new(None),
            idle: Mutex::new(Vec::new()),
            closed: AtomicU64::new(0),
        }));
        let new = std::ptr::from_mut(new);
        let stored = POOLS.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire);
        let pools = match stored {
            Ok(_) => new,
            Err(other) => other, // another thread was faster
        };
        // SAFETY: as above, and neither is null.
        unsafe { &*pools }
    }

    /// Starts a process on the thread that stays.
    fn start(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the thread that starts workers has ended");
        let (answer, child) = mpsc::channel();
        let mut starter = lock(&self.starter);
        if starter.is_none() {
            let (sender, orders) = mpsc::channel::<Order>();
            let work = move || {
                for Order { mut command, answer } in orders {
                    let _ = answer.send(command.spawn());
                }
            };
            std::thread::Builder::new().name("testgrad-workers".to_owned()).spawn(work)?;
            *starter = Some(sender);
        }
        let sent = starter.as_ref().map(|starter| starter.send(Order { command: Box::new(command), answer }));
        drop(starter);
        match sent {
            Some(Ok(())) => child.recv().map_err(|_| gone())?,
            _ => Err(gone()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
