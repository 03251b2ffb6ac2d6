//! The file format of one cached page, and the checksums that prove it intact.
//!
//! ```text
//! head, 64 bytes   magic, version, length of body and tail, checksum of the
//!                  tail, time when the page expires, checksum of the head
//! body             the page, in blocks of 64 KiB
//! tail             key, meta, one checksum for each block
//! ```
//!
//! Invariant: the checksum of every byte of a body was verified by this process, or the process has written the byte,
//! before an [`Entry`] exists. An entry verifies bytes again when it returns them, but not when the kernel sends them from
//! the file. CRC-32 protects against faults of disks and against crashes. It is not a signature: a process that can write
//! to the data folder can forge a page.

use super::disk_wait::Wait;
use super::key::PageKey;
use bytes::{Bytes, BytesMut};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// An open page on disk, whose head and tail are verified.
#[derive(Debug)]
pub struct Entry {
    file: Arc<File>,
    /// The metadata that the caller stored with the body.
    pub meta: Vec<u8>,
    /// Length of the body, in bytes.
    pub body_bytes: u64,
    /// When the page becomes useless, in seconds since 1970.
    pub useless_from: u64,
    /// The edition of the page in the index when it was opened, if the index contained it.
    pub edition: Option<i64>,
    /// Whether it was used so lately that it would still be in memory, if each page were as long and kept there.
    pub is_frequent: bool,
    /// Length of the file, in bytes.
    pub(super) file_bytes: u64,
    sums: Vec<u32>,
}

/// A part of a file.
#[derive(Clone, Debug)]
pub struct FileSlice {
    /// The file. As long as it is open, no other page is written into it.
    pub file: Arc<File>,
    /// Its start, in bytes from the start of the file.
    pub at: u64,
    /// Its length, in bytes.
    pub bytes: u64,
}

/// Checksums of a body that is being written, block by block.
#[derive(Clone, Debug, Default)]
pub struct BlockSums {
    whole: Vec<u32>,
    open: crc32fast::Hasher,
    open_bytes: usize,
}

impl BlockSums {
    /// Takes the next bytes of the body.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.open_bytes));
            self.open.update(now);
            self.open_bytes += now.len();
            bytes = later;
            if self.open_bytes == BLOCK_BYTES {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.whole.push(std::mem::take(&mut self.open).finalize());
        self.open_bytes = 0;
    }

    fn finish(mut self) -> Vec<u32> {
        if self.open_bytes > 0 {
            self.close();
        }
        self.whole
    }
}

impl Entry {
    /// Reads head and tail. A page with another key than `key` counts as damaged. `Err` is
    /// [`io::ErrorKind::InvalidData`] for a damaged file.
    pub(super) fn read(file: File, key: &PageKey, wait: Wait) -> io::Result<Self> {
        let head = Head::read(&file, wait)?;
        let mut tail =
            vec![0; usize::try_from(head.tail_bytes).map_err(|_| damaged("its tail is too long"))?];
        wait.read_exact_at(&file, &mut tail, HEAD_BYTES + head.body_bytes)?;
        if crc32fast::hash(&tail) != head.tail_sum {
            return Err(damaged("its tail is not what was written"));
        }
        let mut rest = tail.as_slice();
        if take_part(&mut rest)? != key.framed() {
            return Err(damaged("it is another page"));
        }
        let meta = take_part(&mut rest)?.to_vec();
        let (sums, remainder) = rest.as_chunks::<4>();
        if !remainder.is_empty() || sums.len() as u64 != head.body_bytes.div_ceil(BLOCK_BYTES as u64) {
            return Err(damaged("its checksums are not as many as its blocks"));
        }
        let sums = sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        let Head { body_bytes, tail_bytes, useless_from, .. } = head;
        let (file, file_bytes) = (Arc::new(file), HEAD_BYTES + body_bytes + tail_bytes);
        Ok(Self { file, meta, body_bytes, useless_from, edition: None, is_frequent: false, file_bytes, sums })
    }

    /// A part of the body, for a system call that sends it from the file. `at` is in bytes. At most `bytes_max` bytes,
    /// empty at the end of the body. `None` if a part of it would probably have to be read from the disk.
    pub fn slice(&self, at: u64, bytes_max: u64) -> Option<FileSlice> {
        let bytes = self.body_bytes.saturating_sub(at).min(bytes_max);
        let last = (HEAD_BYTES + at + bytes).saturating_sub(1);
        for at in (HEAD_BYTES + at..last).step_by(PROBE_INTERVAL_BYTES).chain([last]) {
            Wait::Refused.read_exact_at(&self.file, &mut [0], at).ok()?;
        }
        Some(FileSlice { file: Arc::clone(&self.file), at: HEAD_BYTES + at, bytes })
    }

    /// At most `count` blocks of 64 KiB of the body, starting at `at`, which is the offset of a block; empty at the end
    /// of the body. `spent` are earlier blocks, whose memory is used again if nobody else holds them: new memory must be
    /// cleared first.
    ///
    /// # Errors
    ///
    /// The disk fails, a block is damaged, or the read would have to wait ([`io::ErrorKind::WouldBlock`]).
    pub fn blocks(&self, at: u64, count: usize, wait: Wait, spent: Bytes) -> io::Result<Bytes> {
        let length = self.body_bytes.saturating_sub(at).min((count * BLOCK_BYTES) as u64);
        let length = usize::try_from(length).unwrap_or_default();
        let mut bytes = match spent.try_into_mut() {
            Ok(spent) if spent.len() >= length => spent,
            _ => BytesMut::zeroed(length),
        };
        bytes.truncate(length);
        wait.read_exact_at(&self.file, &mut bytes, HEAD_BYTES + at)?;
        let first = usize::try_from(at / BLOCK_BYTES as u64).unwrap_or(usize::MAX);
        let mut sums = self.sums.iter().skip(first);
        if bytes.chunks(BLOCK_BYTES).all(|block| sums.next() == Some(&crc32fast::hash(block))) {
            Ok(bytes.freeze())
        } else {
            Err(damaged("a block is not what was written"))
        }
    }

    /// Verifies the whole body, so that no damage is found in the middle of a response.
    pub(super) fn check(&self) -> io::Result<()> {
        let mut block = Bytes::new();
        for at in (0..self.body_bytes).step_by(BLOCK_BYTES) {
            block = self.blocks(at, 1, Wait::Allowed, block)?;
        }
        Ok(())
    }
}

/// The body of a page that is added to the cache.
#[derive(Clone, Copy, Debug)]
pub enum NewBody<'b> {
    /// It was written to the file with [`Part::write`](super::pages::Part::write), and has this length in bytes.
    InFile(u64),
    /// Its parts, in order. The file is empty, or contains the page of an evicted key.
    InMemory(&'b [&'b [u8]]),
}

impl NewBody<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::InFile(bytes) => *bytes,
            Self::InMemory(parts) => parts.iter().map(|part| part.len() as u64).sum(),
        }
    }
}

/// A page that is added to the cache.
#[derive(Debug)]
pub struct NewPage<'b> {
    /// The metadata that is stored with the body.
    pub meta: &'b [u8],
    /// The body.
    pub body: NewBody<'b>,
    /// The checksums of the whole body.
    pub sums: BlockSums,
    /// The time from which on the page is of no use, in seconds since 1970.
    pub useless_from: u64,
}

/// Writes a page with its head and tail. Returns the length of the page, in bytes.
pub(super) fn seal(file: &File, key: &PageKey, page: NewPage<'_>) -> io::Result<u64> {
    let NewPage { meta, body, sums, useless_from } = page;
    let body_bytes = body.len();
    let key = key.framed();
    let mut tail = Vec::with_capacity(key.len() + meta.len() + 64);
    for part in [key.as_slice(), meta] {
        let length = u32::try_from(part.len()).map_err(|_| damaged("key or meta is too long"))?;
        tail.extend_from_slice(&length.to_le_bytes());
        tail.extend_from_slice(part);
    }
    tail.extend(sums.finish().into_iter().flat_map(u32::to_le_bytes));
    let tail_bytes = tail.len() as u64;
    let head = Head { body_bytes, tail_bytes, tail_sum: crc32fast::hash(&tail), useless_from }.to_bytes();
    match body {
        NewBody::InFile(_) => {
            // The head is written last: without it the file is not a page.
            file.write_all_at(&tail, HEAD_BYTES + body_bytes)?;
            file.write_all_at(&head, 0)?;
        }
        NewBody::InMemory(parts) => {
            let parts = parts.iter().copied();
            write_all(file, std::iter::once(head.as_slice()).chain(parts).chain([tail.as_slice()]))?;
        }
    }
    Ok(HEAD_BYTES + body_bytes + tail_bytes)
}

/// Writes all parts to the start of a file, where its cursor is. One call of the system costs less than one for each
/// part, and the kernel then holds a page in few large pieces of memory.
fn write_all<'p>(mut file: &File, parts: impl Iterator<Item = &'p [u8]>) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
    let mut rest = slices.as_mut_slice();
    // Empty parts count as written.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut rest, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The head of a file.
pub(super) struct Head {
    body_bytes: u64,
    tail_bytes: u64,
    tail_sum: u32,
    pub(super) useless_from: u64,
}

impl Head {
    /// Reads the head, and verifies its checksum and the length of the file.
    pub(super) fn read(file: &File, wait: Wait) -> io::Result<Self> {
        let mut bytes = [0; HEAD_BYTES as usize];
        wait.read_exact_at(file, &mut bytes, 0)?;
        let (head, sum) = bytes.split_at(bytes.len() - 4);
        if crc32fast::hash(head).to_le_bytes() != sum {
            return Err(damaged("its head is not what was written"));
        }
        let mut rest = head;
        if take(&mut rest)? != *MAGIC || u32::from_le_bytes(take(&mut rest)?) != VERSION {
            return Err(damaged("it is of another version"));
        }
        let head = Self {
            body_bytes: u64::from_le_bytes(take(&mut rest)?),
            tail_bytes: u64::from_le_bytes(take(&mut rest)?),
            tail_sum: u32::from_le_bytes(take(&mut rest)?),
            useless_from: u64::from_le_bytes(take(&mut rest)?),
        };
        let length = HEAD_BYTES.checked_add(head.body_bytes).and_then(|sum| sum.checked_add(head.tail_bytes));
        if length != Some(file.metadata()?.len()) {
            return Err(damaged("it is not as long as it says"));
        }
        Ok(head)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES as usize);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.body_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.tail_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.tail_sum.to_le_bytes());
        bytes.extend_from_slice(&self.useless_from.to_le_bytes());
        bytes.resize(HEAD_BYTES as usize - 4, 0);
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }
}

fn take<const COUNT: usize>(rest: &mut &[u8]) -> io::Result<[u8; COUNT]> {
    let (taken, after) = rest.split_first_chunk().ok_or_else(|| damaged("it ends early"))?;
    *rest = after;
    Ok(*taken)
}

fn take_part<'a>(rest: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (part, after) = rest.split_at_checked(length).ok_or_else(|| damaged("it ends early"))?;
    *rest = after;
    Ok(part)
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Length of a block of the body, in bytes. A block is verified before it is returned.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Distance of the bytes, in bytes, by which is found whether a part is in the page cache of the kernel.
const PROBE_INTERVAL_BYTES: usize = 128 << 10;
/// Offset of the body.
pub(super) const HEAD_BYTES: u64 = 64;
const MAGIC: &[u8; 8] = b"oaimendp";
/// Incremented with every change of the format or of the meaning of the metadata. Files of another version are not
/// pages.
const VERSION: u32 = 2;
