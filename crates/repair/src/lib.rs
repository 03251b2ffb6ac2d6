//! Repairs OAI-PMH responses: broken bytes in, a valid response and a journal of every change out.
//!
//! [`repair()`] repairs a whole response in memory. A [`Repairer`] takes chunks of any size and reports to a
//! [`Sink`], with bounded memory; [`stream`] adapts it to [`std::io`]. No input is an error: the
//! [`Summary`] says whether the input was a response, and whether it is complete.
//!
//! ```
//! use oaimend_repair::{Outcome, repair};
//!
//! let page = b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><error code='badVerb'>a & b</error></OAI-PMH>";
//! let repaired = repair(page);
//! assert_eq!(repaired.summary.outcome, Outcome::Repaired);
//! assert_eq!(repaired.journal.iter().filter(|entry| entry.original == b"&").count(), 1);
//! ```
//!
//! The crate is pure: it has no I/O except in [`stream`], no clock and no async code.
//!
//! # Invariants
//!
//! A valid response leaves unchanged, and repairing the output changes nothing. The result does not depend on the
//! chunks of the input. [`journal::replay`] applied to the input gives the output, and [`journal::undo`] the input
//! again. A removed record is reported with its bytes, and a truncated list never looks complete.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod boundary;
pub mod catalog;
mod config;
mod lex;
mod limits;
mod output;
mod passes;
mod repair_item;
mod repair_nodes;
mod sink;
mod span;
mod stages;
pub mod stream;
mod summary;
mod text;
mod v1;
mod validate;
mod whole;

use stages::engine::Engine;
use validate::start_tag::StartTagCache;

pub use catalog::{Certainty, NotOai, QuarantineReason, RepairCounts, RepairId, RepairSet};
pub use config::{Ending, IdentifyValues, Origin, ProvenanceScope, RepairConfig, RepositoryFacts};
pub use limits::Limits;
pub use output::journal;
pub use sink::{
    EnvelopeFacts, FieldIssue, IdentifyFacts, ItemSpans, ListEnvelope, Quarantined, RecordFacts, Repair,
    Sink, SwallowedItem, SwallowedItems, TokenFacts, UnresolvedField,
};
pub use span::Span;
pub use stages::head::decode::Decode;
pub use summary::{Outcome, Summary};
pub use whole::{Repaired, repair, repair_with};

// Types of the protocol in the signatures above.
pub use oaimend_oai::datestamp::Granularity;
pub use oaimend_oai::{ErrorCode, RequestEcho};

/// Cached start tags of earlier responses. They make the next repair faster and never change its result.
///
/// ```
/// use oaimend_repair::{RepairConfig, Repairer, TagCache};
///
/// let config = RepairConfig::default();
/// let mut cache = TagCache::default();
/// for page in [b"<OAI-PMH/>", b"<OAI-PMH/>"] {
///     let mut output = Vec::new();
///     let mut repairer = Repairer::with_cache(&config, cache);
///     repairer.push(page, &mut output);
///     cache = repairer.finish_with_cache(&mut output).1;
/// }
/// ```
#[derive(Debug, Default)]
pub struct TagCache {
    tags: StartTagCache,
    /// The limits that applied to the cached tags.
    limits: Limits,
}

/// Largest cache that is kept for the next response, in bytes. It is enough for the tags of some formats.
/// The tags of a page without repeated tags do not fit.
const TAG_CACHE_BYTES_MAX: usize = 64 << 10;

/// Repairs one response.
///
/// ```
/// use oaimend_repair::{RepairConfig, Repairer};
///
/// let page = b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><error code='badVerb'>a & b</error></OAI-PMH>";
/// let mut output = Vec::new();
/// let mut repairer = Repairer::new(&RepairConfig::default());
/// for chunk in page.chunks(10) {
///     repairer.push(chunk, &mut output);
/// }
/// assert_eq!(repairer.finish(&mut output).outcome.name(), "repaired");
/// ```
#[derive(Debug)]
pub struct Repairer {
    decode: Decode,
    engine: Engine,
}

impl Repairer {
    /// Creates a repairer for one response.
    pub fn new(config: &RepairConfig) -> Self {
        Self::with_cache(config, TagCache::default())
    }

    /// Creates a repairer for one response that uses the start tags of earlier ones.
    pub fn with_cache(config: &RepairConfig, cache: TagCache) -> Self {
        let TagCache { tags, limits } = cache;
        let tags = if limits == config.limits { tags } else { StartTagCache::default() };
        Self { decode: Decode::new(config.charset.as_deref()), engine: Engine::new(config, tags) }
    }

    /// Takes the next chunk of the body. Never fails.
    pub fn push(&mut self, input: &[u8], sink: &mut impl Sink) {
        self.decode.push(input, &mut |text| self.engine.push(text, sink));
    }

    /// The outcome, if no further input can change it. Then the caller can stop reading.
    pub fn verdict(&self) -> Option<Outcome> {
        self.engine.verdict()
    }

    /// Whether a part of an oversized item was written, so that the output does not end between two items.
    pub fn is_inside_item(&self) -> bool {
        matches!(self.engine.response.stage(), stages::response::Stage::Oversized(_))
    }

    /// Whether the end tag of the document element was written. Nothing may follow it.
    pub fn is_document_closed(&self) -> bool {
        matches!(self.engine.response.stage(), stages::response::Stage::Epilog)
    }

    /// Ends the input and returns the summary.
    pub fn finish(self, sink: &mut impl Sink) -> Summary {
        self.finish_with_cache(sink).0
    }

    /// Ends the input and returns the summary and the cached start tags.
    pub fn finish_with_cache(mut self, sink: &mut impl Sink) -> (Summary, TagCache) {
        self.decode.finish(&mut |text| self.engine.push(text, sink));
        let limits = self.engine.response.config().limits.clone();
        let (summary, tags) = self.engine.finish(self.decode.label(), sink);
        let is_kept = tags.is_worth_keeping(TAG_CACHE_BYTES_MAX);
        (summary, if is_kept { TagCache { tags, limits } } else { TagCache::default() })
    }
}

// Compiles and runs the example of the how-to guide with the other doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/library-example.md")]
struct LibraryExample;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod growth;

/// Random numbers below a bound, reproducible by the seed (xorshift).
#[cfg(test)]
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, RepairConfig, Repairer, Sink, TAG_CACHE_BYTES_MAX};

    struct DiscardSink;

    impl Sink for DiscardSink {
        fn write(&mut self, _: &[u8]) {}
    }

    /// Repeated reading of a broken record caches no more than one reading.
    #[test]
    fn repeated_reading_of_a_broken_record_needs_no_more_memory() {
        let bytes_for = |defect: &str| {
            let page = page(20_000, 10).replace("<x xmlns=\"u0000019999\"/>", defect);
            let mut engine = Repairer::new(&RepairConfig::default());
            engine.push(page.as_bytes(), &mut DiscardSink);
            let bytes = engine.engine.response.tags().contexts.bytes();
            assert_eq!(engine.finish(&mut DiscardSink).records, 2);
            bytes
        };
        let clean = bytes_for("<b>x</b>");
        for defect in ["&<b>x</b>", "&<b>x</B>", "&<dc:b>x</dc:b>"] {
            let broken = bytes_for(defect);
            assert!(broken <= clean, "{defect}: {broken} bytes, {clean} for a clean record");
        }
    }

    /// A list of two records: a large one with many namespace declarations, and a small one.
    fn page(declarations: usize, bytes: usize) -> String {
        let header = "<header><identifier>oai:a</identifier><datestamp>2024-01-01</datestamp></header>";
        let declared: String =
            (0..declarations).map(|number| format!("<x xmlns=\"u{number:0>bytes$}\"/>")).collect();
        let of = |payload: &str| format!("<record>{header}<metadata><a>{payload}</a></metadata></record>");
        format!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2024-01-01T00:00:00Z\
             </responseDate><request>http://a.example.org</request><ListRecords>{}{}</ListRecords></OAI-PMH>",
            of(&declared),
            of("")
        )
    }

    #[test]
    fn the_tag_cache_is_small_for_any_page() {
        for (declarations, bytes, is_kept) in
            [(2, 10, true), (30, 10, true), (63, 10, false), (300, 10, true), (300, 20_000, false)]
        {
            let mut engine = Repairer::new(&RepairConfig::default());
            engine.push(page(declarations, bytes).as_bytes(), &mut DiscardSink);
            let (summary, cache) = engine.finish_with_cache(&mut DiscardSink);
            assert_eq!(summary.records, 2);
            let len = cache.tags.contexts.len();
            assert_eq!(len > 0, is_kept, "{declarations} declarations of {bytes} bytes: {len} contexts");
            assert!(cache.tags.contexts.bytes() <= TAG_CACHE_BYTES_MAX);
        }
    }

    #[test]
    fn an_oversized_record_cannot_fill_the_tag_cache() {
        let limits = Limits { record_bytes_max: 4 << 10, ..Limits::default() };
        let mut engine = Repairer::new(&RepairConfig { limits, ..RepairConfig::default() });
        let mut highest = 0;
        for chunk in page(20_000, 10).as_bytes().chunks(1 << 10) {
            engine.push(chunk, &mut DiscardSink);
            highest = highest.max(engine.engine.response.tags().contexts.len());
        }
        let summary = engine.finish(&mut DiscardSink);
        assert_eq!(summary.records, 2);
        assert!(highest < 1_000, "{highest} contexts");
    }
}
