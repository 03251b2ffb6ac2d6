//! Runs the engine on one input, cut into chunks, and records all results.

use oaimend_oai::ErrorCode;
use oaimend_repair::journal::{Change, Entry};
use oaimend_repair::{
    EnvelopeFacts, IdentifyFacts, NotOai, Outcome, Quarantined, RecordFacts, Repair, RepairConfig, Repairer,
    Sink, Summary, SwallowedItems, TagCache, TokenFacts, UnresolvedField,
};

use super::events::{Envelope, Events, List, Places};
use super::random::Random;

/// How the input is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunking {
    /// One chunk.
    Whole,
    /// Two chunks, cut at this byte.
    Split(usize),
    /// One byte per chunk.
    Bytes,
    /// Chunks of this size.
    Blocks(usize),
    /// Random chunks, mostly small, some empty.
    Random { seed: u64 },
}

impl Chunking {
    fn cuts(self, length: usize) -> Vec<usize> {
        match self {
            Self::Whole => vec![length],
            Self::Split(at) => vec![at.min(length), length],
            Self::Bytes => (1..=length).collect(),
            Self::Blocks(size) => (1..=length.div_ceil(size)).map(|n| (n * size).min(length)).collect(),
            Self::Random { seed } => {
                let mut random = Random::new(seed);
                let largest = [3, 17, 120, 2_000][random.below(4)];
                let mut cuts = Vec::new();
                let mut at = 0;
                while at < length {
                    at = (at + random.below(largest + 1)).min(length);
                    cuts.push(at);
                }
                cuts
            }
        }
    }
}

/// The state of an item when it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub identifier: Vec<u8>,
    pub datestamp: Vec<u8>,
    pub deleted: bool,
    pub offset: u64,
    pub repairs: usize,
    pub bytes: Vec<u8>,
    pub places: Places,
}

/// All results of one run.
#[derive(Clone, Debug)]
pub struct Run {
    pub output: Vec<u8>,
    pub journal: Vec<Entry>,
    pub items: Vec<Item>,
    pub tokens: Vec<Vec<u8>>,
    pub events: Events,
    pub summary: Summary,
    /// Items in closed sections: the position of the section, and the identifiers.
    pub swallowed: Vec<(u64, Vec<Vec<u8>>)>,
    /// Unresolved fields: the element, its position, and the problem.
    pub unresolved: Vec<(String, u64, String)>,
    /// The number of input bytes read before the first output byte.
    pub first_output_at: Option<usize>,
    /// Violations of the order that the sink may expect.
    pub faults: Vec<String>,
}

impl Run {
    /// The exit code of the filter.
    pub fn exit_code(&self) -> i32 {
        match self.summary.outcome {
            Outcome::NotOai(NotOai::NothingKept) | Outcome::Truncated => 1,
            Outcome::NotOai(_) => 2,
            _ if self.summary.quarantined + self.summary.lost + self.summary.unresolved > 0 => 1,
            _ => 0,
        }
    }
}

/// Runs the engine.
pub fn run(input: &[u8], config: &RepairConfig, chunking: Chunking) -> Run {
    run_with_cache(input, config, chunking, TagCache::default()).0
}

/// Runs an engine with the tag cache of earlier runs.
pub fn run_with_cache(
    input: &[u8],
    config: &RepairConfig,
    chunking: Chunking,
    memory: TagCache,
) -> (Run, TagCache) {
    let mut recording = Recording::default();
    let mut engine = Repairer::with_cache(config, memory);
    let mut first_output_at = None;
    let mut verdict = None;
    let mut at = 0;
    for cut in chunking.cuts(input.len()) {
        engine.push(&input[at..cut], &mut recording);
        at = cut;
        if first_output_at.is_none() && !recording.output.is_empty() {
            first_output_at = Some(at);
        }
        let now = engine.verdict();
        if verdict.is_some() && now != verdict {
            recording.faults.push(format!("verdict {verdict:?} became {now:?} at {at}"));
        }
        verdict = now;
    }
    let (summary, memory) = engine.finish_with_cache(&mut recording);
    if verdict.is_some_and(|verdict| verdict != summary.outcome) {
        recording.faults.push(format!("verdict {verdict:?}, but in the end {:?}", summary.outcome));
    }
    let Recording { output, journal, items, tokens, events, faults, unresolved, swallowed, .. } = recording;
    let run = Run {
        output,
        journal,
        items,
        tokens,
        events,
        unresolved,
        swallowed,
        summary,
        first_output_at,
        faults,
    };
    (run, memory)
}

/// A printable excerpt of a text, for a message.
pub fn excerpt(bytes: &[u8], around: usize) -> String {
    let start = around.saturating_sub(60).min(bytes.len());
    let end = (around + 100).min(bytes.len());
    bytes[start..end].escape_ascii().to_string()
}

/// Records all results and checks their order.
#[derive(Default)]
struct Recording {
    output: Vec<u8>,
    journal: Vec<Entry>,
    items: Vec<Item>,
    tokens: Vec<Vec<u8>>,
    events: Events,
    faults: Vec<String>,
    unresolved: Vec<(String, u64, String)>,
    swallowed: Vec<(u64, Vec<Vec<u8>>)>,
    /// The end of the last entry that was reported in the order of the text.
    settled: u64,
}

impl Recording {
    fn enter(&mut self, entry: Entry) {
        // Items quarantined before the head is sent are reported before the repairs of the head.
        let early = matches!(entry.change, Change::Quarantined(_)) && self.output.is_empty();
        if !early && entry.offset < self.settled {
            self.faults.push(format!("{:?} at {} is reported after a later one", entry.change, entry.offset));
        }
        if !early {
            self.settled = entry.offset + entry.original.len() as u64;
        }
        self.journal.push(entry);
    }

    /// The output length up to which an item at this position may be reported.
    fn place_of(&self, offset: u64) -> i128 {
        // An addition at the start of the item closes the element before it.
        let added = |entry: &&Entry| entry.offset == offset && entry.original.is_empty();
        let earlier = self.journal.iter().filter(|entry| entry.offset < offset || added(entry));
        let drift: i128 =
            earlier.map(|entry| entry.replacement.len() as i128 - entry.original.len() as i128).sum();
        i128::from(offset) + drift
    }
}

impl Sink for Recording {
    fn write(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        if repair.original == repair.replacement {
            self.faults.push(format!("{} at {} changes nothing", repair.id.name(), repair.offset));
        }
        self.enter(repair.into());
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        self.items.push(Item {
            identifier: facts.identifier.to_vec(),
            datestamp: facts.datestamp.to_vec(),
            deleted: facts.deleted,
            offset: facts.offset,
            repairs: facts.repairs,
            bytes: bytes.to_vec(),
            places: Places {
                header: facts.spans.header,
                identifier: facts.spans.identifier,
                datestamp: facts.spans.datestamp,
                set_specs: facts.spans.set_specs.to_vec(),
            },
        });
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        if self.output.len() as i128 > self.place_of(quarantined.offset) {
            self.faults.push(format!("the item at {} is reported after its bytes", quarantined.offset));
        }
        self.enter(quarantined.into());
    }

    fn items_swallowed(&mut self, section: &SwallowedItems<'_>) {
        let identifiers = section.items.iter().map(|item| item.identifier.unwrap_or_default().to_vec());
        self.swallowed.push((section.offset, identifiers.collect()));
    }

    fn unresolved(&mut self, field: &UnresolvedField) {
        self.unresolved.push((field.element.to_owned(), field.offset, field.issue.name().to_owned()));
    }

    fn resumption_token(&mut self, token: &TokenFacts<'_>) {
        self.tokens.push(token.token.to_vec());
        self.events.expirations.push(text(token.expiration_date));
    }

    fn envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
        if self.events.envelope.is_some() || !self.output.is_empty() {
            self.faults.push("the envelope is reported late or twice".to_owned());
        }
        self.events.envelope = Some(Envelope {
            response_date: text(envelope.response_date),
            root_tag: text(envelope.root_tag),
            list: envelope.list.map(|list| List {
                verb_tag: text(list.verb_tag),
                verb_tag_at: list.verb_tag_at,
                namespaces: list.namespaces.iter().map(|(prefix, uri)| (text(prefix), text(uri))).collect(),
            }),
        });
    }

    fn error(&mut self, code: ErrorCode) {
        self.events.errors.push(code.name().to_owned());
    }

    fn identified(&mut self, identify: &IdentifyFacts<'_>) {
        let IdentifyFacts { earliest_datestamp, deleted_record, granularity, .. } = identify;
        self.events.identify =
            Some([earliest_datestamp, deleted_record, granularity].map(|field| text(field)));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
