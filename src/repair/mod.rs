//! Broken OAI-PMH bytes in, a valid response and a journal of every change out.
//!
//! The heart of the program, usable by itself: no I/O, no clock, no async.
//! Input is pushed in pieces of any size and never fails; the result goes to a
//! [`Sink`]. What it promises stands in ARCHITECTURE.md under *Invariants*.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod balanced;
mod between;
mod border;
pub mod catalogue;
mod context;
mod convention;
mod decode;
mod edits;
mod end_tag;
mod ends;
mod engine;
mod entities;
mod error_words;
mod errors;
mod facts;
mod fit;
mod foreign;
mod formats;
mod gate;
mod head;
mod header;
mod identify;
mod incomplete;
mod index;
mod item_kind;
pub mod journal;
mod lexeme;
mod limits;
mod list;
mod lookahead;
mod loose;
mod markup;
mod mend;
mod name;
mod name_characters;
mod one_record;
mod outline;
mod oversized;
mod prefixes;
mod prolog;
mod provenance;
mod removable;
mod removal;
mod reopen;
mod repair_set;
mod response_date;
mod rewrite;
mod root_tag;
mod scan;
mod schema;
mod section;
mod seen;
mod simd;
mod sink;
mod skeleton;
mod stretch;
mod swallowed;
mod tag;
mod tag_names;
mod text;
mod token;
mod token_element;
mod unopened_list;
mod upgrade;
mod usual;
mod verb_element;
mod verdict;
mod version_one;
mod vocabulary;

use std::sync::Arc;

use crate::oai::datestamp::Granularity;
#[cfg(not(feature = "program"))]
use decode::Decode;
use engine::Engine;
use tag::Tags;

#[cfg(feature = "program")]
pub(crate) use decode::Decode;

pub use catalogue::{Certainty, NotOai, QuarantineReason, RepairId};
pub use limits::Limits;
pub use provenance::{Origin, Told};
pub use repair_set::RepairSet;
pub use sink::{
    FieldIssue, Quarantined, RecordFacts, Repair, Sink, SwallowedItem, SwallowedItems, TokenFacts,
    UnresolvedField,
};

/// What the engine is told about one response.
#[derive(Clone, Debug, Default)]
pub struct RepairConfig {
    /// The bounds on what it may hold.
    pub limits: Limits,
    /// Repairs that are not to be made: what would need them is quarantined.
    pub off: RepairSet,
    /// Repairs of certainty [`Certainty::Guess`] that are to be made.
    pub enabled: RepairSet,
    /// What `request` and Identify's `baseURL` are to say. `None` keeps them where legal.
    pub request: Option<Arc<RequestEcho>>,
    /// What is known of the repository from elsewhere.
    pub repository: RepositoryFacts,
    /// What a missing `responseDate` becomes, `YYYY-MM-DDThh:mm:ssZ`: the time
    /// at which the source was asked.
    pub response_date: Option<String>,
    /// The charset that the HTTP header named. It outranks the XML declaration
    /// (RFC 7303), where the bytes do not contradict it.
    pub charset: Option<String>,
    /// The charset of text that is no UTF-8, as somebody names it who knows the repository.
    pub text_charset: Option<String>,
    /// What to do with input that ends early.
    pub ending: Ending,
    /// What records are told to come from; `None` says nothing of it.
    pub provenance: Option<Origin>,
    /// What Identify is to say where it says nothing, or nothing legal.
    pub identify: IdentifyValues,
}

/// What somebody who knows a repository says of it. Values are legal; what is `None` is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentifyValues {
    /// `repositoryName`.
    pub repository_name: Option<String>,
    /// `adminEmail`, without `mailto:`.
    pub admin_email: Option<String>,
    /// `earliestDatestamp`.
    pub earliest_datestamp: Option<String>,
    /// `deletedRecord`.
    pub deleted_record: Option<String>,
    /// `granularity`.
    pub granularity: Option<String>,
}

/// What is known of a repository besides the response at hand. The engine does not guess it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryFacts {
    /// The granularity that its Identify announces. `None`: datestamps keep the one they have.
    pub granularity: Option<Granularity>,
    /// A legal datestamp that no item of this response can be older than: the request's `from`,
    /// or earliestDatestamp. It stands in for a datestamp that is missing or names no day; `None`
    /// leaves such items to quarantine.
    pub lowest_datestamp: Option<String>,
    /// The oldest datestamp that one of its items was seen with, for Identify.
    pub oldest_seen: Option<String>,
}

/// The request as the harvester made it, for the `request` element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestEcho {
    /// The public base URL the harvester asked.
    pub base_url: String,
    /// The arguments, `verb` first; names as in the schema, values decoded.
    /// UnresolvedField out of the answer beside `badVerb` and `badArgument`.
    pub arguments: Vec<(String, String)>,
}

/// What to do with input that ends early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Close the document with a comment that says so. For files.
    #[default]
    Close,
    /// Write nothing more: the caller breaks the transfer off, so that the
    /// list can never look complete. For the proxy.
    Abort,
}

/// How a response came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Byte for byte as it came, but for what the proxy says of itself.
    Clean,
    /// Whole and valid, with repairs or items put aside.
    Repaired,
    /// The input ended early, or an item was too long to be mended: what went
    /// out is not the whole list.
    Truncated,
    /// No OAI-PMH 2.0 response, or nothing of it could be kept: nothing was written.
    NotOai(NotOai),
}

impl Outcome {
    /// The word used in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Repaired => "repaired",
            Self::Truncated => "truncated",
            Self::NotOai(_) => "not-oai",
        }
    }
}

/// The account of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How it came out.
    pub outcome: Outcome,
    /// Protocol version of the response, `"2.0"` or `"1.0"`, `"1.1"`; `None` when it is not OAI-PMH.
    pub version: Option<&'static str>,
    /// Items that left: records, headers, sets or formats.
    pub records: u64,
    /// Items that were put aside.
    pub quarantined: u64,
    /// Items that left incomplete or not at all because they were too long to be held, records of
    /// GetRecord that nobody asked for, and `unread`.
    pub lost: u64,
    /// Pieces of text that were put aside because they hold an item or a resumptionToken that could
    /// not be read. They are counted in `quarantined` and in `lost`.
    pub unread: u64,
    /// Items inside sections that are closed and taken for content: perhaps their section lost its end mark.
    pub swallowed: u64,
    /// What stayed although the schema wants it otherwise: no value was known, and none is invented.
    pub unresolved: u64,
    /// How often each repair was made; index with `RepairId as usize`.
    pub repairs: [u64; RepairId::COUNT],
    /// The charset the text was decoded from; `"UTF-8"` when it was taken as it came.
    pub decoded_as: &'static str,
    /// Most bytes held at once, for the limits to be judged by.
    pub held_bytes_peak: usize,
}

/// Tags that were read, for the next response: it is mended faster, and just as without.
#[derive(Debug, Default)]
pub struct TagCache {
    tags: Tags,
    /// What the tags were held to.
    limits: Limits,
}

/// What a memory may take, in bytes, to be handed on: tags of some formats, and not of a page that
/// has no two alike.
const MEMORY_BYTES_MAX: usize = 64 << 10;

/// Mends one response. One object a response.
#[derive(Debug)]
pub struct Repairer {
    decode: Decode,
    engine: Engine,
}

impl Repairer {
    /// An engine for one response.
    pub fn new(config: &RepairConfig) -> Self {
        Self::with_cache(config, TagCache::default())
    }

    /// An engine for one response that knows what others have read.
    pub fn with_cache(config: &RepairConfig, memory: TagCache) -> Self {
        let TagCache { tags, limits } = memory;
        let tags = if limits == config.limits { tags } else { Tags::default() };
        Self { decode: Decode::new(config.charset.as_deref()), engine: Engine::new(config, tags) }
    }

    /// Takes the next piece of the body. Never fails.
    pub fn push(&mut self, input: &[u8], sink: &mut impl Sink) {
        self.decode.push(input, false, &mut |text| self.engine.push(text, sink));
    }

    /// The verdict, once nothing that may still come can change it: the caller
    /// need not read on.
    pub fn verdict(&self) -> Option<Outcome> {
        self.engine.verdict()
    }

    /// Whether a part of an item was written that is too long to be held: what
    /// is written so far does not end between two items.
    pub fn is_inside_item(&self) -> bool {
        matches!(self.engine.stage, engine::Stage::Oversized(_))
    }

    /// Whether the end tag of the document element was written: nothing may follow it.
    pub fn is_document_closed(&self) -> bool {
        matches!(self.engine.stage, engine::Stage::Epilog)
    }

    /// The end of the input.
    pub fn finish(self, sink: &mut impl Sink) -> Summary {
        self.finish_with_cache(sink).0
    }

    /// The end of the input, and what the next engine may know.
    pub fn finish_with_cache(mut self, sink: &mut impl Sink) -> (Summary, TagCache) {
        self.decode.push(&[], true, &mut |text| self.engine.push(text, sink));
        let limits = self.engine.config.limits.clone();
        let (summary, tags) = self.engine.finish(self.decode.label(), sink);
        let is_kept = tags.are_worth_knowing(MEMORY_BYTES_MAX);
        (summary, if is_kept { TagCache { tags, limits } } else { TagCache::default() })
    }
}

/// Numbers below what is asked for, the same ones for each seed (xorshift).
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
    use super::{Limits, MEMORY_BYTES_MAX, RepairConfig, Repairer, Sink};

    struct Nowhere;

    impl Sink for Nowhere {
        fn write(&mut self, _: &[u8]) {}
    }

    /// However often a broken record is read, no more is remembered of it than of one reading.
    #[test]
    fn a_broken_record_is_read_again_within_the_memory_of_one_reading() {
        let bytes_for = |defect: &str| {
            let page = page(20_000, 10).replace("<x xmlns=\"u0000019999\"/>", defect);
            let mut engine = Repairer::new(&RepairConfig::default());
            engine.push(page.as_bytes(), &mut Nowhere);
            let bytes = engine.engine.tags.contexts.bytes();
            assert_eq!(engine.finish(&mut Nowhere).records, 2);
            bytes
        };
        let clean = bytes_for("<b>x</b>");
        for defect in ["&<b>x</b>", "&<b>x</B>", "&<dc:b>x</dc:b>"] {
            let broken = bytes_for(defect);
            assert!(broken <= clean, "{defect}: {broken} bytes, {clean} where nothing is broken");
        }
    }

    /// A list of one record that declares so many namespaces of so many bytes, and one that is small.
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
    fn a_memory_is_small_whatever_was_read() {
        for (declarations, bytes, is_kept) in
            [(2, 10, true), (30, 10, true), (63, 10, false), (300, 10, true), (300, 20_000, false)]
        {
            let mut engine = Repairer::new(&RepairConfig::default());
            engine.push(page(declarations, bytes).as_bytes(), &mut Nowhere);
            let (summary, memory) = engine.finish_with_cache(&mut Nowhere);
            assert_eq!(summary.records, 2);
            let len = memory.tags.contexts.len();
            assert_eq!(len > 0, is_kept, "{declarations} declarations of {bytes} bytes: {len} contexts");
            assert!(memory.tags.contexts.bytes() <= MEMORY_BYTES_MAX);
        }
    }

    #[test]
    fn a_record_too_long_to_be_held_declares_no_more_than_is_remembered() {
        let limits = Limits { record_bytes_max: 4 << 10, ..Limits::default() };
        let mut engine = Repairer::new(&RepairConfig { limits, ..RepairConfig::default() });
        let mut highest = 0;
        for piece in page(20_000, 10).as_bytes().chunks(1 << 10) {
            engine.push(piece, &mut Nowhere);
            highest = highest.max(engine.engine.tags.contexts.len());
        }
        let summary = engine.finish(&mut Nowhere);
        assert_eq!(summary.records, 2);
        assert!(highest < 1_000, "{highest} contexts");
    }
}
