//! Blocks between their encoding and their writing.

use super::block::{BlockBuilder, BlockFacts};
use super::index::IndexError;
use oaimend_store::mirror::MirrorError;
use zstd::bulk::Compressor;

/// Maximum number of bytes of the buffer that stay allocated between two commits.
const KEPT_BUFFER_BYTES_MAX: usize = 4 << 20;

/// Encoded blocks that are not written yet.
#[derive(Default)]
pub(super) struct NewBlocks {
    pub(super) facts: Vec<BlockFacts>,
    /// The blocks, one after the other.
    pub(super) bytes: Vec<u8>,
}

impl NewBlocks {
    /// Removes all blocks. A usual buffer stays: new memory costs a part of each commit.
    pub(super) fn clear(&mut self) {
        self.facts.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BUFFER_BYTES_MAX);
    }

    pub(super) fn push(
        &mut self,
        builder: &mut BlockBuilder,
        collection: u32,
        compressor: &mut Compressor<'_>,
    ) -> Result<(), IndexError> {
        let facts = builder.encode(collection, compressor, &mut self.bytes);
        self.facts.push(facts.map_err(|error| MirrorError::Stopped(error.to_string()))?);
        Ok(())
    }
}
