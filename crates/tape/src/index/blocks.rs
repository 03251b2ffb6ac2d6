//! The file of an index: blocks of 4,096 bytes, each with its checksum.
//!
//! A damaged index could hide records, so every read checks the blocks that it uses. Positions count the content
//! without the checksums.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;

/// Bytes of a block on disk.
const BLOCK_BYTES: usize = 4_096;
/// Bytes of its content. The checksum follows.
pub(super) const CONTENT_BYTES: usize = BLOCK_BYTES - 4;

/// Why a block cannot be read.
#[derive(Debug)]
pub(super) enum BlockError {
    /// Its checksum is wrong, or it is missing.
    Damaged,
    /// The disk fails.
    Io(io::Error),
}

/// Writes blocks from front to back.
pub(super) struct BlockWriter {
    file: BufWriter<File>,
    content: Vec<u8>,
    number: u64,
}

impl BlockWriter {
    /// Begins after the first block, which is written last.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(64 * BLOCK_BYTES, file);
        file.write_all(&[0; BLOCK_BYTES])?;
        Ok(Self { file, content: Vec::with_capacity(CONTENT_BYTES), number: 1 })
    }

    /// The position of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.number * CONTENT_BYTES as u64 + self.content.len() as u64
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let fitting = bytes.len().min(CONTENT_BYTES - self.content.len());
            let (now, later) = bytes.split_at(fitting);
            self.content.extend_from_slice(now);
            bytes = later;
            if self.content.len() == CONTENT_BYTES {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.content.resize(CONTENT_BYTES, 0);
        self.file.write_all(&self.content)?;
        self.file.write_all(&checksum(self.number, &self.content).to_le_bytes())?;
        self.content.clear();
        self.number += 1;
        Ok(())
    }

    /// Writes the rest, and the first block.
    pub(super) fn finish(mut self, first: &[u8]) -> io::Result<File> {
        if !self.content.is_empty() {
            self.end_block()?;
        }
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut block = first.to_vec();
        block.resize(CONTENT_BYTES, 0);
        block.extend_from_slice(&checksum(0, &block).to_le_bytes());
        file.write_all_at(&block, 0)?;
        file.sync_all()?;
        Ok(file)
    }
}

/// Reads blocks.
#[derive(Debug)]
pub(super) struct Blocks(pub(super) File);

impl Blocks {
    /// Fills the buffer from this position.
    pub(super) fn read(&self, at: u64, mut buffer: &mut [u8]) -> Result<(), BlockError> {
        let (mut number, mut skipped) = (at / CONTENT_BYTES as u64, (at % CONTENT_BYTES as u64) as usize);
        let mut block = [0; BLOCK_BYTES];
        while !buffer.is_empty() {
            self.0.read_exact_at(&mut block, number.saturating_mul(BLOCK_BYTES as u64)).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::UnexpectedEof => BlockError::Damaged,
                    _ => BlockError::Io(error),
                }
            })?;
            let (content, sum) = block.split_at(CONTENT_BYTES);
            if checksum(number, content).to_le_bytes() != *sum {
                return Err(BlockError::Damaged);
            }
            let count = buffer.len().min(CONTENT_BYTES - skipped);
            let (filled, rest) = buffer.split_at_mut(count);
            filled.copy_from_slice(content.get(skipped..skipped + count).unwrap_or_default());
            (buffer, number, skipped) = (rest, number + 1, 0);
        }
        Ok(())
    }
}

/// A block in another place is damage too.
fn checksum(number: u64, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_read_as_written_and_every_changed_byte_is_damage() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("blocks");
        let mut writer = BlockWriter::new(File::create(&path).expect("a file")).expect("a disk");
        let begin = writer.position();
        let content: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        content.chunks(13).for_each(|chunk| writer.write(chunk).expect("a disk"));
        writer.finish(b"first").expect("a disk");
        let blocks = Blocks(File::options().read(true).write(true).open(&path).expect("a file"));
        let mut read = vec![0; content.len()];
        blocks.read(begin, &mut read).expect("whole");
        assert_eq!(read, content);
        let mut few = [0; 5];
        blocks.read(begin + 4_090, &mut few).expect("whole");
        assert_eq!(few.as_slice(), &content[4_090..4_095]);
        blocks.read(0, &mut few).expect("whole");
        assert_eq!(&few, b"first");
        assert!(matches!(blocks.read(begin + 60_000, &mut few), Err(BlockError::Damaged)), "after the end");
        for at in [4_096, 8_191, 4_095] {
            let mut byte = [0];
            blocks.0.read_exact_at(&mut byte, at).expect("a file");
            blocks.0.write_all_at(&[byte[0] ^ 1], at).expect("a file");
            assert!(matches!(blocks.read(0, &mut read), Err(BlockError::Damaged)), "{at}");
            blocks.0.write_all_at(&byte, at).expect("a file");
        }
    }
}
