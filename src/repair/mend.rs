//! The slow path: one broken item through its passes, until the strict reader accepts it.
//!
//! Characters, then markup, then envelope; after each pass the item is read
//! strictly, and the first version that is in order is taken. What no pass can
//! mend is beyond repair, and the strict reader says why.

use super::border::Skeleton;
use super::catalogue::{RepairId, RepairSet, Unmendable};
use super::context::Context;
use super::edits::Edits;
use super::header::mend_envelope;
use super::limits::Limits;
use super::markup::mend_markup;
use super::scan::{Facts, Scan, Scanner};
use super::tag::Tags;
use super::text::{Entities, mend_characters};

/// What mending is told besides the item.
#[derive(Debug)]
pub(super) struct Rules<'c> {
    pub(super) limits: &'c Limits,
    pub(super) off: RepairSet,
    pub(super) guesses: RepairSet,
    pub(super) entities: &'c Entities,
}

/// An item that is in order again.
#[derive(Debug)]
pub(super) struct Mended {
    pub(super) bytes: Vec<u8>,
    pub(super) edits: Edits,
    pub(super) facts: Facts,
    /// Whether its markup had to be mended.
    pub(super) markup: bool,
}

impl Mended {
    /// An item that was in order as it came.
    pub(super) fn unchanged(raw: &[u8], facts: Facts) -> Self {
        Self { bytes: raw.to_vec(), edits: Edits::default(), facts, markup: false }
    }
}

/// Mends one item whose bytes are `raw`.
///
/// # Errors
/// Why it is beyond repair.
pub(super) fn mend(
    raw: &[u8],
    skeleton: &Skeleton,
    outer: Context,
    tags: &mut Tags,
    rules: &Rules<'_>,
) -> Result<Mended, Unmendable> {
    let mut item =
        Item { skeleton, outer, tags, rules, text: raw.to_vec(), edits: Edits::default(), markup: false };
    let double = rules.guesses.contains(RepairId::DoubleEncoded);
    let characters = mend_characters(&item.text, rules.entities, double, rules.limits);
    let mut why = match item.pass(characters)? {
        Verdict::InOrder(facts) => return Ok(item.mended(facts)),
        Verdict::Broken(why) => why,
    };
    if matches!(why, Unmendable::TooManyAttributes | Unmendable::TagTooLong | Unmendable::TooDeep) {
        return Err(why);
    }
    // Well-formed, and broken only as a record of OAI-PMH: the markup is right.
    if !item.is_envelope_fault(why) {
        let markup = mend_markup(&item.text, skeleton.element, outer, &mut item.tags.contexts, rules.limits)?;
        item.markup = !markup.is_empty();
        why = match item.pass(markup)? {
            Verdict::InOrder(facts) => return Ok(item.mended(facts)),
            Verdict::Broken(why) => why,
        };
    }
    let envelope = mend_envelope(&item.text, skeleton.element, rules.limits);
    if envelope.is_empty() {
        return Err(why);
    }
    match item.pass(envelope)? {
        Verdict::InOrder(facts) => Ok(item.mended(facts)),
        Verdict::Broken(why) => Err(why),
    }
}

enum Verdict {
    InOrder(Facts),
    Broken(Unmendable),
}

struct Item<'m> {
    skeleton: &'m Skeleton,
    outer: Context,
    tags: &'m mut Tags,
    rules: &'m Rules<'m>,
    text: Vec<u8>,
    edits: Edits,
    markup: bool,
}

impl Item<'_> {
    /// Applies one pass and reads the result strictly.
    fn pass(&mut self, edits: Edits) -> Result<Verdict, Unmendable> {
        if edits.iter().any(|edit| self.rules.off.contains(edit.id)) {
            return Err(Unmendable::RepairOff);
        }
        if !edits.is_empty() {
            let next = edits.apply(&self.text);
            self.edits = std::mem::take(&mut self.edits).then(&self.text, edits);
            self.text = next;
        }
        if self.edits.len() > self.rules.limits.repairs_per_record_max {
            return Err(Unmendable::TooManyRepairs);
        }
        Ok(self.judge())
    }

    fn judge(&mut self) -> Verdict {
        let mut scanner = Scanner::new(self.skeleton.clone(), self.outer);
        scanner.new_window(0);
        match scanner.scan(&self.text, 0, true, self.tags, self.rules.limits) {
            Scan::Clean(len) if super::name::trim(self.text.get(len..).unwrap_or_default()).is_empty() => {
                Verdict::InOrder(scanner.facts)
            }
            Scan::Clean(_) => Verdict::Broken(Unmendable::MismatchedTags),
            Scan::Defect(defect) => Verdict::Broken(defect.why),
            Scan::TooLong | Scan::NeedMore => Verdict::Broken(Unmendable::RecordTooLong),
        }
    }

    /// Whether the defect is one of the envelope, and the item is well-formed
    /// all the same.
    fn is_envelope_fault(&mut self, why: Unmendable) -> bool {
        matches!(
            why,
            Unmendable::MissingIdentifier
                | Unmendable::MissingDatestamp
                | Unmendable::IllegalDatestamp
                | Unmendable::IllegalSetSpec
                | Unmendable::MissingHeader
                | Unmendable::IllegalPayload
                | Unmendable::IllegalEnvelope
        ) && self.is_well_formed()
    }

    /// Whether the markup is in order, the envelope aside.
    fn is_well_formed(&mut self) -> bool {
        let mut scanner = Scanner::for_payload(self.skeleton.clone(), self.outer);
        scanner.new_window(0);
        matches!(
            scanner.scan(&self.text, 0, true, self.tags, self.rules.limits),
            Scan::Clean(len) if super::name::trim(self.text.get(len..).unwrap_or_default()).is_empty()
        )
    }

    fn mended(self, facts: Facts) -> Mended {
        Mended { bytes: self.text, edits: self.edits, facts, markup: self.markup }
    }
}
