//! Where lines of the log wait for each other, so that many of them leave in one write.
//!
//! A line that comes alone leaves at once. One that comes sooner than [`APART`] after a write waits until
//! that is over, with those that come meanwhile; a warning or an error waits for nothing and
//! takes along what is before it. What is lost when the program is killed is what
//! came in that time.

use crate::clock;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How far apart writes of lines are that nobody waits for.
const APART: Duration = Duration::from_millis(100);
/// Most that waits, in bytes.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// Lines on their way to an output. Cheap to clone; all clones are one.
pub(super) struct GatheredLines<W>(Arc<Shared<W>>);

struct Shared<W> {
    lines: Mutex<Lines<W>>,
    /// Told when lines wait.
    wait: Condvar,
}

struct Lines<W> {
    output: W,
    waiting: Vec<u8>,
    /// When something was written, by [`clock::uptime`].
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

    /// Writes what waits.
    pub(super) fn flush(&self) {
        self.lines().write(clock::uptime());
    }

    /// Writes what has waited long enough, for ever.
    pub(super) fn write_what_waits(&self) {
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
    /// Takes a line that comes at `now`.
    fn push(&mut self, line: &[u8], is_urgent: bool, now: Duration) {
        self.waiting.extend_from_slice(line);
        let may_wait = self.written.is_some_and(|written| now < written + APART);
        if is_urgent || !may_wait || self.waiting.len() >= WAITING_BYTES_MAX {
            self.write(now);
        }
    }

    /// When what waits is to be written; `None`: nothing waits.
    fn due(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then(|| self.written.unwrap_or_default() + APART)
    }

    fn write(&mut self, now: Duration) {
        // Who cannot be told cannot be told so either.
        let _ = self.output.write_all(&self.waiting);
        self.waiting.clear();
        self.written = Some(now);
    }
}

/// Writes one line.
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

    /// Remembers each write.
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
    fn a_line_leaves_at_once_and_those_that_follow_it_together() {
        let mut lines = Lines { output: Writes::default(), waiting: Vec::new(), written: None };
        lines.push(b"1", false, millis(7));
        lines.push(b"2", false, millis(8));
        assert_eq!(lines.due(), Some(millis(7) + APART));
        lines.push(b"3", false, millis(9));
        assert_eq!(lines.output.0, ["1"]);
        lines.push(b"4", true, millis(10));
        assert_eq!(
            (lines.output.0.as_slice(), lines.due()),
            (["1", "234"].map(String::from).as_slice(), None)
        );
        lines.push(b"5", false, millis(11));
        lines.push(b"6", false, millis(10) + APART);
        assert_eq!(lines.output.0, ["1", "234", "56"], "a warning waits for nothing");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut lines = Lines { output: Writes::default(), waiting: Vec::new(), written: Some(millis(1)) };
        let line = [b'x'; 1 << 10];
        (0..100).for_each(|_| lines.push(&line, false, millis(2)));
        let lengths: Vec<usize> = lines.output.0.iter().map(String::len).collect();
        assert_eq!(
            (lengths, lines.waiting.len()),
            (vec![WAITING_BYTES_MAX], (100 << 10) - WAITING_BYTES_MAX)
        );
    }

    #[test]
    fn what_waits_is_written_by_who_looks_after_it() {
        let (told, lines) = std::sync::mpsc::channel();
        let log = GatheredLines::new(Channel(told));
        let waiting = log.clone();
        std::thread::spawn(move || waiting.write_what_waits());
        for line in ["a", "b", "c"] {
            let mut writer = OneLine { to: log.clone(), is_urgent: false };
            writer.write_all(line.as_bytes()).expect("it is taken");
        }
        let mut all = String::new();
        while all.len() < 3 {
            all += &lines.recv_timeout(100 * APART).expect("what waits is written");
        }
        assert_eq!(all, "abc");
    }

    /// Sends each write.
    struct Channel(std::sync::mpsc::Sender<String>);

    impl Write for Channel {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.send(String::from_utf8_lossy(bytes).into_owned()).expect("somebody reads");
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
