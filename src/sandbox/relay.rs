//! Passes the messages of a job on to another process, each only once it is whole and has been looked at.
//!
//! A message is four bytes with its size, little end first, and so many bytes.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

const SIZE_BYTES: usize = 4;
/// How long what is left is passed on after the job has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Says whether a message may pass.
pub type Check = fn(&[u8]) -> bool;

/// One direction between two processes.
#[derive(Debug)]
pub struct Relay {
    /// Where the job writes.
    from: Option<OwnedFd>,
    /// Where the other process reads.
    to: Option<OwnedFd>,
    check: Check,
    most_bytes: usize,
    buffer: Box<[u8]>,
    /// Of a message that is not whole yet.
    incoming: Vec<u8>,
    outgoing: VecDeque<u8>,
    /// Bytes read so far.
    passed: u64,
    /// A message was too long or may not pass: nothing passes any more.
    is_broken: bool,
}

impl Relay {
    /// From one pipe to another, messages of at most so many bytes.
    pub fn new(from: OwnedFd, to: OwnedFd, most_bytes: usize, check: Check) -> rustix::io::Result<Self> {
        for end in [&from, &to] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(Self {
            from: Some(from),
            to: Some(to),
            check,
            most_bytes,
            buffer: vec![0; 64 << 10].into(),
            incoming: Vec::new(),
            outgoing: VecDeque::new(),
            passed: 0,
            is_broken: false,
        })
    }

    /// Whether the job wrote what may not pass.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether nobody reads any more.
    pub(super) fn is_over(&self) -> bool {
        self.to.is_none()
    }

    /// What to wait for.
    pub(super) fn interests(&self) -> impl Iterator<Item = PollFd<'_>> {
        let (can_read, must_write) = (self.outgoing.is_empty(), !self.outgoing.is_empty());
        let from = self.from.iter().filter(move |_| can_read).map(|from| PollFd::new(from, PollFlags::IN));
        // That nobody reads any more is told without being asked for.
        let wanted = if must_write { PollFlags::OUT } else { PollFlags::empty() };
        from.chain(self.to.iter().map(move |to| PollFd::new(to, wanted)))
    }

    /// Passes on what there is and can go. Where nothing came, it may be that nobody reads any more.
    pub(super) fn pump(&mut self) {
        self.write();
        let before = self.passed;
        while self.outgoing.is_empty() {
            let may_be_more = self.read();
            self.write();
            if !may_be_more {
                break;
            }
        }
        let is_idle = self.passed == before && self.outgoing.is_empty();
        if is_idle && self.to.as_ref().is_some_and(is_hung_up) {
            self.to = None;
        }
    }

    /// Passes on what is left of a job that has ended, and closes both ends.
    pub(super) fn finish(&mut self) {
        loop {
            self.pump();
            let Some(to) = self.to.as_ref().filter(|_| !self.outgoing.is_empty()) else { break };
            let time = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
            match poll(&mut [PollFd::new(to, PollFlags::OUT)], Some(&time)) {
                Ok(1..) | Err(Errno::INTR) => {}
                _ => break,
            }
        }
        self.from = None;
        self.to = None;
    }

    /// Reads once; whether there may be more.
    fn read(&mut self) -> bool {
        let Some(from) = self.from.as_ref().filter(|_| !self.is_broken) else { return false };
        match rustix::io::read(from, &mut *self.buffer) {
            Ok(0) => self.from = None,
            Ok(count) => {
                self.passed += count as u64;
                self.incoming.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
                self.take_messages();
                return count == self.buffer.len();
            }
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => {}
            Err(_) => self.from = None,
        }
        false
    }

    fn take_messages(&mut self) {
        let mut at = 0;
        while let Some(size) = self.incoming.get(at..).and_then(|rest| rest.first_chunk::<SIZE_BYTES>()) {
            let size = u32::from_le_bytes(*size) as usize;
            let end = at + SIZE_BYTES + size;
            if size > self.most_bytes {
                self.is_broken = true;
                break;
            }
            let Some(message) = self.incoming.get(at..end) else { break };
            if !(self.check)(message.get(SIZE_BYTES..).unwrap_or_default()) {
                self.is_broken = true;
                break;
            }
            self.outgoing.extend(message);
            at = end;
        }
        self.incoming.drain(..at);
        if self.is_broken {
            self.from = None;
            self.incoming = Vec::new();
        }
    }

    fn write(&mut self) {
        while let Some(to) = self.to.as_ref().filter(|_| !self.outgoing.is_empty()) {
            match rustix::io::write(to, self.outgoing.as_slices().0) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.to = None;
                    self.outgoing = VecDeque::new();
                }
            }
        }
    }
}

/// Whether the other end of a pipe is closed.
fn is_hung_up(pipe: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    struct Ends {
        writer: std::fs::File,
        relay: Relay,
        reader: std::fs::File,
    }

    fn relay() -> Ends {
        let (from, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (reader, to) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let relay = Relay::new(from, to, 1 << 20, |message| !message.contains(&b'!')).unwrap();
        Ends { writer: writer.into(), relay, reader: reader.into() }
    }

    fn message(body: &[u8]) -> Vec<u8> {
        [&u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
    }

    #[test]
    fn whole_messages_pass() {
        let Ends { mut writer, mut relay, mut reader } = relay();
        let both = [message(b"one"), message(b"two")].concat();
        writer.write_all(both.get(..9).unwrap()).unwrap();
        relay.pump();
        assert_eq!(relay.incoming.len(), 2);
        writer.write_all(both.get(9..).unwrap()).unwrap();
        relay.pump();
        relay.finish();
        let mut passed = Vec::new();
        reader.read_to_end(&mut passed).unwrap();
        assert_eq!(passed, both);
    }

    #[test]
    fn nothing_passes_behind_what_may_not() {
        for bad in [message(b"no!"), u32::MAX.to_le_bytes().to_vec()] {
            let Ends { mut writer, mut relay, mut reader } = relay();
            writer.write_all(&[message(b"yes"), bad, message(b"late")].concat()).unwrap();
            relay.pump();
            assert!(relay.is_broken());
            relay.finish();
            let mut passed = Vec::new();
            reader.read_to_end(&mut passed).unwrap();
            assert_eq!(passed, message(b"yes"));
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_noticed() {
        let Ends { mut writer, mut relay, reader } = relay();
        relay.pump();
        assert!(!relay.is_over());
        drop(reader);
        relay.pump();
        assert!(relay.is_over());
        writer.write_all(&message(b"late")).unwrap();
        relay.pump();
    }

    #[test]
    fn what_a_pipe_does_not_hold_waits() {
        let Ends { mut writer, mut relay, mut reader } = relay();
        let large = message(&vec![b'x'; 1 << 19]);
        let sent = large.clone();
        let sender = std::thread::spawn(move || writer.write_all(&sent).unwrap());
        let taker = std::thread::spawn(move || {
            let mut passed = Vec::new();
            reader.read_to_end(&mut passed).unwrap();
            passed
        });
        while relay.from.is_some() || !relay.outgoing.is_empty() {
            relay.pump();
        }
        relay.finish();
        sender.join().unwrap();
        assert_eq!(taker.join().unwrap(), large);
    }
}
