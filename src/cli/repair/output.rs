//! The output of a repair: standard output, or a file that appears when it is complete.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;

/// Writes shorter than this are buffered, in bytes.
const GATHER_BYTES: usize = 32 << 10;

/// The output of one response.
pub(super) struct Output {
    /// The name for messages.
    name: PathBuf,
    buffered: BufferedOutput,
    /// The temporary file; `None` if the bytes go to their place at once.
    part: Option<PartFile>,
}

impl Output {
    /// Opens the output; `None` is stdout. A device or a pipe is written directly. A file is written beside its place.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let name = path.unwrap_or(Path::new("<stdout>"));
        let opened = match path {
            None => stdout().map(|file| (file, None)),
            Some(path) if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) => {
                File::options().write(true).open(path).map(|file| (file, None))
            }
            Some(path) => PartFile::create(path).map(|(file, part)| (file, Some(part))),
        };
        let (file, part) = opened.map_err(|error| Failure::io("write", name, &error))?;
        Ok(Self { name: name.to_owned(), buffered: BufferedOutput::new(file), part })
    }

    /// The name for messages.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    pub(super) fn has_failed(&self) -> bool {
        self.buffered.failed.is_some()
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.buffered.write(bytes);
    }

    /// Writes the rest and puts the file in its place. No file appears if nothing was written.
    pub(super) fn finish(self) -> io::Result<()> {
        let is_empty = self.buffered.finish()?;
        match self.part {
            Some(part) if !is_empty => part.rename(),
            _ => Ok(()),
        }
    }
}

/// Standard output without the line buffer of the standard library.
fn stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// A file under a temporary name, which is removed unless it gets its own name.
struct PartFile {
    path: PathBuf,
    target: PathBuf,
}

impl PartFile {
    fn create(target: &Path) -> io::Result<(File, Self)> {
        // A link stays a link: its file is replaced.
        let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.{}.part", std::process::id()));
        Ok((File::create(&path)?, Self { path, target }))
    }

    fn rename(self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.target)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // It is not there any more if it was renamed.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// An output that buffers short writes and passes long ones through.
///
/// It keeps the first error and writes nothing after it.
struct BufferedOutput {
    file: File,
    pending: Vec<u8>,
    is_empty: bool,
    failed: Option<io::Error>,
}

impl BufferedOutput {
    fn new(file: File) -> Self {
        Self { file, pending: Vec::with_capacity(2 * GATHER_BYTES), is_empty: true, failed: None }
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.len() < GATHER_BYTES {
            self.pending.extend_from_slice(bytes);
            if self.pending.len() >= GATHER_BYTES {
                self.flush();
            }
        } else {
            self.flush();
            self.write_through(bytes);
        }
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.write_through(&pending);
        self.pending = pending;
        self.pending.clear();
    }

    fn write_through(&mut self, bytes: &[u8]) {
        self.is_empty &= bytes.is_empty();
        if self.failed.is_none() {
            self.failed = self.file.write_all(bytes).err();
        }
    }

    /// Writes the rest; returns whether nothing was written at all.
    fn finish(mut self) -> io::Result<bool> {
        self.flush();
        self.failed.map_or(Ok(self.is_empty), Err)
    }
}
