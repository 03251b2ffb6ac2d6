//! A ZIP file of a dump, written as a stream.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

/// A fast level: the processor is the bottleneck more often than the network.
const LEVEL: i64 = 1;

/// A ZIP file that is being written. The caller takes the bytes as they come, so memory is limited to what was added
/// since, and about 300 bytes for each entry.
pub(crate) struct Package {
    writer: ZipWriter<StreamWriter<Written>>,
    written: Written,
}

/// The bytes that were not taken yet. The writer and the package share them.
#[derive(Clone, Debug, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Package {
    pub(crate) fn new() -> Self {
        let written = Written::default();
        Self { writer: ZipWriter::new_stream(written.clone()), written }
    }

    /// Adds a file. The caller chooses names that are safe on every system: no text of a record is in them.
    ///
    /// # Errors
    ///
    /// The file exceeds the limits of the format.
    pub(crate) fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        // The time is left out, so that equal records give equal bytes.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(LEVEL));
        self.writer.start_file(name, options)?;
        self.writer.write_all(content)
    }

    /// The bytes since the last call.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.written.take()
    }

    /// The last bytes: the directory.
    ///
    /// # Errors
    ///
    /// The file exceeds the limits of the format.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        self.writer.finish()?;
        Ok(self.written.take())
    }
}

impl std::fmt::Debug for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Package").field("written", &self.written).finish_non_exhaustive()
    }
}
