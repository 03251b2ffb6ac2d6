//! Reads of files that may or must not wait for the disk.
//!
//! A file that was read or written lately is in the page cache of the kernel. Reading it there is faster than handing the
//! read to another thread. Linux can refuse a read that would have to wait; on other systems each read waits.

use std::fs::File;
use std::io;
use std::path::Path;

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The thread may wait.
    Allowed,
    /// A read that would have to wait fails with [`io::ErrorKind::WouldBlock`], and so does every read if the system
    /// cannot tell.
    Refused,
}

impl Wait {
    /// Opens a file for reading.
    pub(super) fn open(self, path: &Path) -> io::Result<File> {
        match self {
            Self::Allowed => File::open(path),
            Self::Refused => open_known(path),
        }
    }

    /// Fills `bytes` from this offset of the file, in bytes.
    pub(super) fn read_exact_at(self, file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::Allowed => std::os::unix::fs::FileExt::read_exact_at(file, bytes, at),
            Self::Refused => read_held(file, bytes, at),
        }
    }
}

#[cfg(target_os = "linux")]
fn open_known(path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED);
    opened.map(File::from).map_err(|error| match error {
        rustix::io::Errno::NOENT => error.into(),
        _ => would_wait(),
    })
}

#[cfg(target_os = "linux")]
fn read_held(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    use rustix::io::{ReadWriteFlags, preadv2};
    while !bytes.is_empty() {
        let read = preadv2(file, &mut [io::IoSliceMut::new(bytes)], at, ReadWriteFlags::NOWAIT);
        match read.map_err(|_| would_wait())? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = bytes.get_mut(count..).unwrap_or_default();
                at += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn open_known(_path: &Path) -> io::Result<File> {
    Err(would_wait())
}

#[cfg(not(target_os = "linux"))]
fn read_held(_file: &File, _bytes: &mut [u8], _at: u64) -> io::Result<()> {
    Err(would_wait())
}

fn would_wait() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}
