//! The repair of streams: adapters for [`std::io::Read`] and [`std::io::Write`], with bounded memory.

use crate::{RepairConfig, Repairer, Summary};
use std::io::{self, Read, Write};

/// Reads a response from `R` and gives out the repaired one.
///
/// ```
/// use oaimend_repair::stream::RepairReader;
/// use std::io::Read as _;
///
/// let page = br#"<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListSets><set><setSpec>a</setSpec>
/// <setName>R & D</setName></set></ListSets></OAI-PMH>"#;
/// let mut reader = RepairReader::new(page.as_slice(), &Default::default());
/// let mut repaired = String::new();
/// reader.read_to_string(&mut repaired)?;
/// let summary = reader.summary().expect("the input has ended");
/// assert_eq!(summary.outcome.name(), "repaired");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct RepairReader<R> {
    input: R,
    /// `None` after the end of the input.
    repairer: Option<Repairer>,
    summary: Option<Summary>,
    chunk: Box<[u8]>,
    /// Repaired bytes that were not given out yet, from `taken` on.
    output: Vec<u8>,
    taken: usize,
}

/// Bytes that are read from the input at once.
const CHUNK_BYTES: usize = 64 << 10;

impl<R: Read> RepairReader<R> {
    /// A reader of one response.
    pub fn new(input: R, config: &RepairConfig) -> Self {
        Self {
            input,
            repairer: Some(Repairer::new(config)),
            summary: None,
            chunk: vec![0; CHUNK_BYTES].into(),
            output: Vec::new(),
            taken: 0,
        }
    }

    /// The summary, once all of the input was read.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// Reads the next chunk of the input into `output`.
    fn fill(&mut self) -> io::Result<()> {
        let Some(repairer) = &mut self.repairer else { return Ok(()) };
        let count = self.input.read(&mut self.chunk)?;
        self.output.clear();
        self.taken = 0;
        if count > 0 {
            repairer.push(self.chunk.get(..count).unwrap_or_default(), &mut self.output);
        } else if let Some(repairer) = self.repairer.take() {
            self.summary = Some(repairer.finish(&mut self.output));
        }
        Ok(())
    }
}

impl<R: Read> Read for RepairReader<R> {
    /// Reads repaired bytes.
    ///
    /// # Errors
    ///
    /// Those of the input. Reading can continue after [`io::ErrorKind::Interrupted`].
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.output.len() && self.repairer.is_some() {
            self.fill()?;
        }
        let count = self.output.get(self.taken..).unwrap_or_default().read(buffer)?;
        self.taken += count;
        Ok(count)
    }
}

/// Takes a response and writes the repaired one into `W`.
///
/// ```
/// use oaimend_repair::stream::RepairWriter;
/// use std::io::Write as _;
///
/// let mut writer = RepairWriter::new(Vec::new(), &Default::default());
/// writer.write_all(b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'>")?;
/// writer.write_all(b"<error code='badVerb'>no verb & no hope</error></OAI-PMH>")?;
/// let (page, summary) = writer.finish()?;
/// assert!(String::from_utf8_lossy(&page).contains("no verb &amp; no hope"));
/// assert_eq!(summary.outcome.name(), "repaired");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct RepairWriter<W> {
    output: W,
    repairer: Repairer,
    /// The repaired bytes of one call.
    repaired: Vec<u8>,
}

impl<W: Write> RepairWriter<W> {
    /// A writer of one response.
    pub fn new(output: W, config: &RepairConfig) -> Self {
        Self { output, repairer: Repairer::new(config), repaired: Vec::new() }
    }

    /// Ends the response. Returns the writer below and the summary.
    ///
    /// # Errors
    ///
    /// Those of the writer below.
    pub fn finish(self) -> io::Result<(W, Summary)> {
        let Self { mut output, repairer, mut repaired } = self;
        repaired.clear();
        let summary = repairer.finish(&mut repaired);
        output.write_all(&repaired)?;
        output.flush()?;
        Ok((output, summary))
    }
}

impl<W: Write> Write for RepairWriter<W> {
    /// Takes all bytes. After an error the output is incomplete, and the writer is of no further use.
    ///
    /// # Errors
    ///
    /// Those of the writer below.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.repaired.clear();
        self.repairer.push(bytes, &mut self.repaired);
        self.output.write_all(&self.repaired)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic")]
mod tests {
    use super::*;
    use crate::repair;

    /// Gives out one byte at a time, and is interrupted before each.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = buffer.len().min(1);
            self.0.read(&mut buffer[..count])
        }
    }

    fn page() -> Vec<u8> {
        std::fs::read("../../corpus/broken/bare-ampersand/attribute/input.xml").expect("a page of the corpus")
    }

    #[test]
    fn reader_and_writer_give_the_same_bytes_as_the_whole_response() {
        let (page, whole) = (page(), repair(&page()));
        assert!(!whole.journal.is_empty() && whole.is_complete());
        let mut reader = RepairReader::new(Slow(&page, false), &RepairConfig::default());
        let mut read = Vec::new();
        assert_eq!(reader.summary(), None);
        reader.read_to_end(&mut read).expect("interruptions are repeated");
        let counted = |summary: &Summary| (summary.outcome, summary.records, summary.repairs);
        assert_eq!(read, whole.bytes);
        assert_eq!(reader.summary().map(counted), Some(counted(&whole.summary)));
        let mut writer = RepairWriter::new(Vec::new(), &RepairConfig::default());
        for piece in page.chunks(7) {
            writer.write_all(piece).expect("memory takes all bytes");
        }
        let (written, summary) = writer.finish().expect("memory takes all bytes");
        assert_eq!(written, whole.bytes);
        assert_eq!(counted(&summary), counted(&whole.summary));
    }

    #[test]
    fn error_of_the_input_is_returned() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
        let page = page();
        let mut reader = RepairReader::new(page.as_slice().chain(Broken), &RepairConfig::default());
        let error = reader.read_to_end(&mut Vec::new()).expect_err("the input is broken");
        assert_eq!((error.kind(), reader.summary()), (io::ErrorKind::ConnectionReset, None));
    }
}
