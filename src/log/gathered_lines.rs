//! Batches log lines, so that many of them need only one write.
//!
//! The first line is written at once. Lines within [`BATCH_INTERVAL`] after a write are buffered
//! until its end. A warning or an error is written at once, together with the buffered lines. A
//! killed program loses only the lines of the last interval.

use oaimend_base::clock;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// The shortest time between two writes of lines that are not urgent.
const BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// The size of the buffer, in bytes.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// An output with buffered lines. Cheap to clone; all clones share the buffer.
pub(super) struct GatheredLines<W>(Arc<Shared<W>>);

struct Shared<W> {
    lines: Mutex<Lines<W>>,
    /// Notified when lines are buffered.
    wait: Condvar,
}

struct Lines<W> {
    output: W,
    waiting: Vec<u8>,
    /// The time of the last write, by [`clock::uptime`].
    written: Option<Duration>,
}

impl<W> Clone for GatheredLines<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write> GatheredLines<W> {
    pub(super) fn new(output: W) -> Self {
        let lines = Lines { output, waiting: Vec::new(), written: None };
        Self(Arc::new(Shared { lines: Mutex::new(lines), wait: Condvar::new() }))
    }

    /// Writes the buffered lines.
    pub(super) fn flush(&self) {
        self.lines().write(clock::uptime());
    }

    /// Writes buffered lines when they are due; never returns.
    pub(super) fn run_writer(&self) -> ! {
        let mut lines = self.lines();
        loop {
            let now = clock::uptime();
            lines = match lines.due() {
                None => self.0.wait.wait(lines).unwrap_or_else(PoisonError::into_inner),
                Some(due) if due > now => {
                    let wait = self.0.wait.wait_timeout(lines, due - now);
                    wait.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    lines.write(now);
                    lines
                }
            };
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines<W>> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Lines<W> {
    /// Buffers or writes a line that is logged at `now`.
    fn push(&mut self, line: &[u8], is_urgent: bool, now: Duration) {
        self.waiting.extend_from_slice(line);
        let may_wait = self.written.is_some_and(|written| now < written + BATCH_INTERVAL);
        if is_urgent || !may_wait || self.waiting.len() >= BUFFER_BYTES_MAX {
            self.write(now);
        }
    }

    /// When the buffer is to be written; `None` if it is empty.
    fn due(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then(|| self.written.unwrap_or_default() + BATCH_INTERVAL)
    }

    fn write(&mut self, now: Duration) {
        // A failed write of the log cannot be logged.
        let _ = self.output.write_all(&self.waiting);
        self.waiting.clear();
        self.written = Some(now);
    }
}

/// A writer for one line.
pub(super) struct OneLine<W> {
    to: GatheredLines<W>,
    is_urgent: bool,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut lines = self.to.lines();
        let waited = !lines.waiting.is_empty();
        lines.push(line, self.is_urgent, clock::uptime());
        if !waited && !lines.waiting.is_empty() {
            self.to.0.wait.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<W: Write> MakeWriter<'_> for GatheredLines<W> {
    type Writer = OneLine<W>;

    fn make_writer(&self) -> OneLine<W> {
        OneLine { to: self.clone(), is_urgent: true }
    }

    fn make_writer_for(&self, about: &Metadata<'_>) -> OneLine<W> {
        OneLine { to: self.clone(), is_urgent: *about.level() <= Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records each write.
    #[derive(Default)]
    struct Writes(Vec<String>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn first_line_is_written_at_once_and_later_ones_together() {
        let mut lines = Lines { output: Writes::default(), waiting: Vec::new(), written: None };
        lines.push(b"1", false, millis(7));
        lines.push(b"2", false, millis(8));
        assert_eq!(lines.due(), Some(millis(7) + BATCH_INTERVAL));
        lines.push(b"3", false, millis(9));
        assert_eq!(lines.output.0, ["1"]);
        lines.push(b"4", true, millis(10));
        assert_eq!(
            (lines.output.0.as_slice(), lines.due()),
            (["1", "234"].map(String::from).as_slice(), None)
        );
        lines.push(b"5", false, millis(11));
        lines.push(b"6", false, millis(10) + BATCH_INTERVAL);
        assert_eq!(lines.output.0, ["1", "234", "56"], "a warning is not buffered");
    }

    #[test]
    fn buffer_is_limited() {
        let mut lines = Lines { output: Writes::default(), waiting: Vec::new(), written: Some(millis(1)) };
        let line = [b'x'; 1 << 10];
        (0..100).for_each(|_| lines.push(&line, false, millis(2)));
        let lengths: Vec<usize> = lines.output.0.iter().map(String::len).collect();
        assert_eq!((lengths, lines.waiting.len()), (vec![BUFFER_BYTES_MAX], (100 << 10) - BUFFER_BYTES_MAX));
    }

    #[test]
    fn background_writer_writes_buffered_lines() {
        let (sender, lines) = std::sync::mpsc::channel();
        let log = GatheredLines::new(Channel(sender));
        let waiting = log.clone();
        std::thread::spawn(move || waiting.run_writer());
        for line in ["a", "b", "c"] {
            let mut writer = OneLine { to: log.clone(), is_urgent: false };
            writer.write_all(line.as_bytes()).expect("it is taken");
        }
        let mut all = String::new();
        while all.len() < 3 {
            all += &lines.recv_timeout(100 * BATCH_INTERVAL).expect("buffered lines are written");
        }
        assert_eq!(all, "abc");
    }

    /// Sends each write.
    struct Channel(std::sync::mpsc::Sender<String>);

    impl Write for Channel {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.send(String::from_utf8_lossy(bytes).into_owned()).expect("the receiver exists");
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
