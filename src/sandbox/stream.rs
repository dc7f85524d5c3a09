//! What a running program says: streams that keep their beginning and end, streams of lines, up to so many bytes.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;

use super::{Event, Watcher};

/// Reads what there is, at most a few pipes full; `false` once the pipe has ended.
fn read_some(pipe: &OwnedFd, mut take: impl FnMut(&[u8])) -> bool {
    let mut buffer = [0_u8; 64 << 10];
    for _ in 0..32 {
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => return false,
            Ok(count) => take(buffer.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}

/// The beginning and the end of a stream.
pub(super) struct Kept {
    pub(super) pipe: Option<OwnedFd>,
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Kept {
    pub(super) fn new(bytes: usize) -> Self {
        Self { pipe: None, half: bytes / 2, head: Vec::new(), tail: VecDeque::new(), left_out: 0 }
    }

    pub(super) fn read(&mut self) {
        if let Some(pipe) = self.pipe.take()
            && read_some(&pipe, |bytes| self.keep(bytes))
        {
            self.pipe = Some(pipe);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let fits = rest.len().min(self.half);
        let overflow = (self.tail.len() + fits).saturating_sub(self.half);
        self.tail.drain(..overflow);
        self.tail.extend(rest.get(rest.len() - fits..).unwrap_or_default());
        self.left_out += (overflow + rest.len() - fits) as u64;
    }

    /// Whether its middle is left out.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// All that is kept, which is handed over.
    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.head);
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n... {} bytes left out ...\n", self.left_out).as_bytes());
        }
        bytes.extend(self.tail.drain(..));
        bytes
    }

    pub(super) fn take_text(&mut self) -> String {
        String::from_utf8_lossy(&self.take_bytes()).into_owned()
    }
}

/// A stream of lines, up to so many bytes.
pub(super) struct Lines {
    pub(super) pipe: Option<OwnedFd>,
    unfinished: Vec<u8>,
    /// The unfinished line is longer than any may be.
    is_long: bool,
    /// Bytes that may still come; `None` once more have come.
    room: Option<usize>,
    line_bytes: usize,
}

impl Lines {
    pub(super) fn new(bytes: usize, line_bytes: usize) -> Self {
        Self { pipe: None, unfinished: Vec::new(), is_long: false, room: Some(bytes), line_bytes }
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.room.is_none()
    }

    /// Tells of all lines that have come by this time of the run, also when the watcher has had enough.
    pub(super) fn read(&mut self, watch: &mut Watcher<'_>, at: Duration) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        if let Some(pipe) = self.pipe.take()
            && read_some(&pipe, |bytes| {
                self.room = self.room.and_then(|room| room.checked_sub(bytes.len()));
                if self.room.is_none() {
                    self.unfinished = Vec::new();
                    return;
                }
                for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                    self.is_long |= self.unfinished.len() + piece.len() > self.line_bytes;
                    if !self.is_long {
                        self.unfinished.extend_from_slice(piece);
                    }
                    if piece.ends_with(b"\n") {
                        let line = std::mem::take(&mut self.unfinished);
                        let event = match std::mem::take(&mut self.is_long) {
                            true => Event::LongLine,
                            false => Event::Line(line.trim_ascii_end(), at),
                        };
                        if watch(event).is_break() {
                            flow = ControlFlow::Break(());
                        }
                    }
                }
            })
        {
            self.pipe = Some(pipe);
        }
        flow
    }
}
