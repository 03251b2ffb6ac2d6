//! Blocks in memory from one page of a list to the next.
//!
//! A page ends inside a block, and the next page begins there. Without this, a harvester that reads a whole list has
//! each of these blocks decompressed twice.

use super::block::Block;
use super::keys::BlockRow;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of blocks. So many lists can be read at the same time.
const BLOCKS_MAX: usize = 32;
/// Maximum number of bytes of the body of a block that is kept. Only a block of one large record is larger than 64 KiB.
const BODY_BYTES_MAX: usize = 64 << 10;

/// A block that was read, with its body; the body is empty if only headers were requested.
pub(super) struct ReadBlock {
    pub(super) block: Block,
    pub(super) body: Bytes,
}

/// A collection, and the place of a block. Valid bytes of a segment never change, so the block does not either.
type Key = (u32, BlockRow);

/// The blocks in which pages ended last, the oldest first.
#[derive(Default)]
pub(super) struct KeptBlocks(Mutex<VecDeque<(Key, Arc<ReadBlock>)>>);

impl KeptBlocks {
    pub(super) fn find(&self, key: Key) -> Option<Arc<ReadBlock>> {
        self.blocks().iter().find(|(known, _)| *known == key).map(|(_, block)| Arc::clone(block))
    }

    /// Keeps a block, in place of the oldest one if there are too many.
    pub(super) fn keep(&self, key: Key, block: &Arc<ReadBlock>) {
        let mut blocks = self.blocks();
        if block.body.len() > BODY_BYTES_MAX || blocks.iter().any(|(known, _)| *known == key) {
            return;
        }
        if blocks.len() == BLOCKS_MAX {
            blocks.pop_front();
        }
        blocks.push_back((key, Arc::clone(block)));
    }

    fn blocks(&self) -> MutexGuard<'_, VecDeque<(Key, Arc<ReadBlock>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for KeptBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} blocks", self.blocks().len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::BlockBuilder;
    use super::super::directory::NewSlot;
    use super::*;
    use oaimend_oai::UnixSecs;
    use oaimend_store::mirror::RecordStatus;

    /// A block with one record of this length.
    fn block(bytes: usize) -> Arc<ReadBlock> {
        let mut builder = BlockBuilder::default();
        builder.push(NewSlot {
            sequence: 1,
            stamp_secs: UnixSecs(0),
            datestamp_secs: UnixSecs(0),
            status: RecordStatus::Live,
            identifier: "oai:x:1",
            set_specs: &[],
            bytes: &vec![b'x'; bytes],
        });
        let mut compressor = zstd::bulk::Compressor::new(1).expect("a legal level");
        let mut encoded = Vec::new();
        builder.encode(7, &mut compressor, &mut encoded).expect("small");
        let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
        let block = Block::decode_directory(&encoded, 7, &mut decompressor).expect("intact");
        let body = block.decode_body(&encoded, &mut decompressor).expect("intact");
        Arc::new(ReadBlock { block, body })
    }

    fn key(offset: u32) -> Key {
        (7, BlockRow { segment: 1, offset, directory_end: 100, bytes: 200, last: 1 })
    }

    #[test]
    fn a_limited_number_of_small_blocks_is_kept() {
        let kept = KeptBlocks::default();
        let small = block(BODY_BYTES_MAX);
        for offset in 0..=BLOCKS_MAX as u32 {
            kept.keep(key(offset), &small);
            kept.keep(key(offset), &small);
        }
        assert!(kept.find(key(0)).is_none(), "the oldest one made room");
        let found = (1..=BLOCKS_MAX as u32).filter(|offset| kept.find(key(*offset)).is_some());
        assert_eq!(found.count(), BLOCKS_MAX);
        assert!(kept.find((8, key(1).1)).is_none(), "another collection");
        kept.keep(key(100), &block(BODY_BYTES_MAX + 1));
        assert!(kept.find(key(100)).is_none(), "it is too large");
    }
}
