//! The slow path: repairs one broken item in several passes.
//!
//! The stage `list` calls it for each item that is not valid, and for each valid item that must be
//! rewritten. The passes are characters, markup and envelope. The validator reads the item after each pass.
//! The first valid version is the result. If there is none, the first defect that remains is the reason for
//! quarantine.

use memchr::memchr_iter;

use crate::repair::boundary::swallowed::sections_with_borders;
use crate::repair::catalog::QuarantineReason;
use crate::repair::lex::lexeme::Lexemes;
use crate::repair::lex::namespaces::Context;
use crate::repair::passes::formats::repair_format;
use crate::repair::passes::granularity::{lower_bound, repair_granularity};
use crate::repair::passes::header::{keep_only_header, repair_envelope};
use crate::repair::passes::identify::{has_identify_element, repair_identify, unresolved_fields};
use crate::repair::passes::markup::repair_markup;
use crate::repair::passes::rules::{OuterContexts, Rules};
use crate::repair::passes::strip_prefix::strip_item_prefixes;
use crate::repair::passes::tag_names::repair_names;
use crate::repair::sink::FieldIssue;
use crate::repair::text::characters::{Guesses, guess_characters, item_edits};
use crate::repair::text::charset::charset_of;
use crate::repair::text::edits::Edits;
use crate::repair::v1::items::upgrade_item;
use crate::repair::validate::envelope_names::{EnvelopeNames, Prefixes};
use crate::repair::validate::facts::{Facts, Places};
use crate::repair::validate::schema::Verb;
use crate::repair::validate::start_tag::Tags;
use crate::repair::validate::state::{Validation, Validator};

/// A repaired item.
#[derive(Debug)]
pub(crate) struct RepairedItem {
    pub(crate) bytes: Vec<u8>,
    pub(crate) edits: Edits,
    pub(crate) facts: Facts,
    /// Whether the markup was repaired.
    pub(crate) markup: bool,
    /// Missing or illegal fields whose values are unknown.
    pub(crate) lacks: Vec<(&'static str, FieldIssue)>,
}

impl RepairedItem {
    /// A valid item without changes.
    pub(crate) fn unchanged(raw: &[u8], facts: Facts) -> Self {
        Self { bytes: raw.to_vec(), edits: Edits::default(), facts, markup: false, lacks: Vec::new() }
    }
}

/// Repairs one item with the bytes `raw`.
///
/// # Errors
/// The reason for the quarantine of the item.
pub(crate) fn repair_item(
    raw: &[u8],
    skeleton: &EnvelopeNames,
    around: OuterContexts,
    tags: &mut Tags,
    rules: &Rules<'_>,
) -> Result<RepairedItem, QuarantineReason> {
    let repaired = in_passes(raw, skeleton, around, tags, rules)?;
    // Items in a section are not items of the list, but they must not be dropped with the section.
    let drops_section = |&(start, _): &(usize, usize)| {
        repaired.edits.iter().any(|edit| edit.start <= start && start < edit.end)
    };
    let sections = if repaired.edits.is_empty() || skeleton.tears {
        Vec::new()
    } else {
        sections_with_borders(raw, skeleton)
    };
    if sections.iter().any(drops_section) { Err(QuarantineReason::MismatchedTags) } else { Ok(repaired) }
}

fn in_passes(
    raw: &[u8],
    skeleton: &EnvelopeNames,
    around: OuterContexts,
    tags: &mut Tags,
    rules: &Rules<'_>,
) -> Result<RepairedItem, QuarantineReason> {
    let mut skeleton = skeleton.clone();
    if skeleton.prefixes == Prefixes::None {
        // A prefixed item is accepted and loses its prefix.
        skeleton.prefixes = Prefixes::Off;
    }
    let outer = around.read;
    let mut item = Item {
        skeleton,
        outer,
        written: around.written,
        tags,
        rules,
        text: raw.to_vec(),
        edits: Edits::default(),
        markup: false,
    };
    let guesses = Guesses::of(rules.enabled);
    let edits = match speaks_of_sections(raw) && item.is_well_formed() {
        true if guesses.any() => guess_characters(raw, guesses, rules.limits),
        true => Edits::default(),
        false => {
            let charset = match charset_of(raw, rules.text_charset) {
                // Identify is the response itself, so it is not quarantined for a charset.
                Err(_) if item.skeleton.element.name == b"Identify" => None,
                charset => charset?,
            };
            let lexemes = match item.sections_with_borders().is_empty() {
                true => Lexemes::of(raw),
                false => Lexemes::of_well_formed(raw),
            };
            item_edits(raw, lexemes, rules.entities, guesses, charset, rules.limits)
        }
    };
    let mut why = match item.pass(edits)? {
        Verdict::InOrder(facts) => return Ok(item.repaired(facts)),
        Verdict::Broken(why) => why,
    };
    if matches!(
        why,
        QuarantineReason::TooManyAttributes | QuarantineReason::TagTooLong | QuarantineReason::TooDeep
    ) {
        return Err(why);
    }
    if matches!(why, QuarantineReason::MalformedTag | QuarantineReason::MismatchedTags) {
        let names = repair_names(&item.text);
        if !names.is_empty() {
            why = match item.pass(names)? {
                Verdict::InOrder(facts) => return Ok(item.repaired(facts)),
                Verdict::Broken(why) => why,
            };
        }
    }
    // If the item is well-formed and only its envelope is broken, the markup is correct.
    if !item.is_envelope_fault(why) {
        let element = item.skeleton.element;
        item.tags.tidy();
        let sections = item.sections_with_borders();
        let markup = repair_markup(&item.text, element, outer, item.tags, rules.limits, &sections)?;
        item.markup = !markup.is_empty();
        why = match item.pass(markup)? {
            Verdict::InOrder(facts) => return Ok(item.repaired(facts)),
            Verdict::Broken(why) => why,
        };
    }
    let is_v1 = item.skeleton.upgraded.is_some();
    let bound = lower_bound(rules.repository);
    let envelope = repair_envelope(&item.text, item.skeleton.element, is_v1, bound.as_deref(), rules.limits);
    let is_known = item.skeleton.upgraded.is_none() && item.is_described();
    if envelope.is_empty() && !is_known {
        return Err(why);
    }
    let why = match item.pass(envelope)? {
        Verdict::InOrder(facts) => return Ok(item.repaired(facts)),
        Verdict::Broken(why) => why,
    };
    if !is_known || item.skeleton.element.name == b"Identify" && !has_identify_element(&item.text) {
        return Err(why);
    }
    let known = match item.skeleton.element.name {
        b"Identify" => repair_identify(&item.text, rules.known_values, rules.off),
        _ => repair_format(&item.text, rules.off),
    };
    match item.pass(known)? {
        Verdict::InOrder(facts) => Ok(item.repaired(facts)),
        Verdict::Broken(why) => item.left_as_it_is(why),
    }
}

/// Whether the item contains a second opening mark, perhaps inside a section. In well-formed text that is
/// content of the section, and no evidence that the section was never closed.
fn speaks_of_sections(raw: &[u8]) -> bool {
    let may_open = |at: &usize| at.checked_sub(1).and_then(|before| raw.get(before)) == Some(&b'<');
    memchr_iter(b'!', raw).filter(may_open).nth(1).is_some()
}

enum Verdict {
    InOrder(Facts),
    Broken(QuarantineReason),
}

struct Item<'m> {
    /// The names of 1.x until the item is upgraded.
    skeleton: EnvelopeNames,
    outer: Context,
    written: Context,
    tags: &'m mut Tags,
    rules: &'m Rules<'m>,
    text: Vec<u8>,
    edits: Edits,
    markup: bool,
}

impl Item<'_> {
    /// Applies one pass and validates the result. A valid item is then rewritten for the output and adjusted
    /// to its repository. After each of these changes it is validated again.
    fn pass(&mut self, edits: Edits) -> Result<Verdict, QuarantineReason> {
        self.change(edits)?;
        let (mut verdict, places) = self.judge();
        if self.skeleton.is_rewritten() && matches!(verdict, Verdict::InOrder(_)) {
            let limits = self.rules.limits;
            let is_upgraded = self.skeleton.upgraded.is_some();
            if is_upgraded {
                let upgrade =
                    upgrade_item(&self.text, self.skeleton.element, &places, &self.tags.contexts, limits);
                self.change(upgrade)?;
                self.skeleton = self.skeleton.version_two();
            }
            let is_moved = self.outer != self.written;
            let is_changed = self.rewrite()?;
            if is_upgraded || is_moved || is_changed {
                verdict = self.judge().0;
            }
        }
        match verdict {
            Verdict::InOrder(facts) => self.fitted(facts),
            broken @ Verdict::Broken(_) => Ok(broken),
        }
    }

    /// Adjusts a valid item to its repository.
    fn fitted(&mut self, facts: Facts) -> Result<Verdict, QuarantineReason> {
        let fitted = repair_granularity(&self.text, &facts, self.skeleton.element, self.rules);
        if fitted.is_empty() {
            return Ok(Verdict::InOrder(facts));
        }
        self.change(fitted)?;
        Ok(self.judge().0)
    }

    /// Rewrites a valid item for the output. Returns whether the text changed.
    fn rewrite(&mut self) -> Result<bool, QuarantineReason> {
        let mut is_changed = self.skeleton.headers_only;
        if self.skeleton.headers_only {
            self.change(keep_only_header(&self.text))?;
            self.skeleton.element = Verb::ListIdentifiers.item();
            self.skeleton.headers_only = false;
        }
        if self.skeleton.prefixes == Prefixes::Off {
            let (element, limits) = (self.skeleton.element, self.rules.limits);
            let edits = strip_item_prefixes(&self.text, element, self.outer, self.tags, limits);
            is_changed |= !edits.is_empty();
            self.change(edits)?;
            self.skeleton.prefix.clear();
            self.skeleton.prefixes = Prefixes::None;
        }
        if self.skeleton.prefixes == Prefixes::None {
            self.outer = self.written;
        }
        if self.skeleton.element.name == b"metadataFormat" && self.skeleton.upgraded.is_none() {
            let edits = repair_format(&self.text, self.rules.off);
            is_changed |= !edits.is_empty();
            self.change(edits)?;
        }
        Ok(is_changed)
    }

    /// The closed sections that contain a boundary. They are content and have their own end marks.
    fn sections_with_borders(&self) -> Vec<(usize, usize)> {
        if self.skeleton.tears { Vec::new() } else { sections_with_borders(&self.text, &self.skeleton) }
    }

    /// Whether the item describes the repository, so that missing values may be known.
    fn is_described(&self) -> bool {
        matches!(self.skeleton.element.name, b"Identify" | b"metadataFormat")
    }

    /// Keeps an Identify with unknown fields, because it is the response itself.
    fn left_as_it_is(mut self, why: QuarantineReason) -> Result<RepairedItem, QuarantineReason> {
        let is_identify = self.skeleton.element.name == b"Identify";
        if !is_identify || !self.is_well_formed() {
            return Err(why);
        }
        self.rewrite()?;
        if let Verdict::InOrder(facts) = self.judge().0
            && let Verdict::InOrder(facts) = self.fitted(facts)?
        {
            return Ok(self.repaired(facts));
        }
        if !self.is_well_formed() {
            return Err(why);
        }
        let lacks = unresolved_fields(&self.text);
        let is_dated = |(element, _): &(&str, FieldIssue)| {
            !matches!(*element, "earliestDatestamp" | "granularity" | "Identify")
        };
        if lacks.iter().all(is_dated) {
            self.change(repair_granularity(
                &self.text,
                &Facts::default(),
                self.skeleton.element,
                self.rules,
            ))?;
        }
        Ok(RepairedItem { lacks, ..self.repaired(Facts::default()) })
    }

    fn change(&mut self, edits: Edits) -> Result<(), QuarantineReason> {
        if edits.iter().any(|edit| self.rules.off.contains(edit.id)) {
            return Err(QuarantineReason::RepairOff);
        }
        if !edits.is_empty() {
            let next = edits.apply(&self.text).into_owned();
            self.edits = std::mem::take(&mut self.edits).then(&self.text, edits);
            self.text = next;
        }
        if self.edits.len() > self.rules.limits.repairs_per_record_max {
            return Err(QuarantineReason::TooManyRepairs);
        }
        Ok(())
    }

    /// Validates the item. In a response without a prefix, the item is first read without one. Most items
    /// then need no removal of prefixes.
    fn judge(&mut self) -> (Verdict, Places) {
        if self.skeleton.prefixes == Prefixes::Off && self.skeleton.prefix.is_empty() {
            let (verdict, places) = self.judge_with(Prefixes::None);
            if matches!(verdict, Verdict::InOrder(_)) {
                self.skeleton.prefixes = Prefixes::None;
                return (verdict, places);
            }
        }
        self.judge_with(self.skeleton.prefixes)
    }

    fn judge_with(&mut self, prefixes: Prefixes) -> (Verdict, Places) {
        self.tags.tidy();
        let mut scanner = Validator::new(EnvelopeNames { prefixes, ..self.skeleton.clone() }, self.outer);
        scanner.new_window(0);
        let verdict = match scanner.scan(&self.text, 0, true, self.tags, self.rules.limits) {
            Validation::Clean(len)
                if crate::repair::lex::names::trim(self.text.get(len..).unwrap_or_default()).is_empty() =>
            {
                Verdict::InOrder(scanner.facts)
            }
            Validation::Clean(_) => Verdict::Broken(QuarantineReason::MismatchedTags),
            Validation::Defect(defect) => Verdict::Broken(defect.why),
            Validation::TooLong | Validation::NeedMore => Verdict::Broken(QuarantineReason::RecordTooLong),
        };
        (verdict, scanner.places)
    }

    /// Whether the only defect is in the envelope: the item is well-formed.
    fn is_envelope_fault(&mut self, why: QuarantineReason) -> bool {
        matches!(
            why,
            QuarantineReason::MissingIdentifier
                | QuarantineReason::MissingDatestamp
                | QuarantineReason::IllegalDatestamp
                | QuarantineReason::IllegalSetSpec
                | QuarantineReason::MissingHeader
                | QuarantineReason::IllegalPayload
                | QuarantineReason::IllegalEnvelope
        ) && self.is_well_formed()
    }

    /// Whether the item is well-formed. Its envelope is not checked.
    fn is_well_formed(&mut self) -> bool {
        self.tags.tidy();
        let mut scanner = Validator::for_payload(self.skeleton.clone(), self.outer);
        scanner.new_window(0);
        matches!(
            scanner.scan(&self.text, 0, true, self.tags, self.rules.limits),
            Validation::Clean(len) if crate::repair::lex::names::trim(self.text.get(len..).unwrap_or_default()).is_empty()
        )
    }

    fn repaired(self, facts: Facts) -> RepairedItem {
        RepairedItem { bytes: self.text, edits: self.edits, facts, markup: self.markup, lacks: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use super::{Context, Tags, Validation, Validator};
    use crate::repair::lex::names::blanks;
    use crate::repair::limits::Limits;
    use crate::repair::passes::header::repair_envelope;
    use crate::repair::passes::markup::repair_markup;
    use crate::repair::text::characters::Guesses;
    use crate::repair::text::characters::repair_characters;
    use crate::repair::validate::envelope_names::{EnvelopeNames, Prefixes};
    use crate::repair::validate::schema::RECORD;

    const PAGES: [&[u8]; 6] = [
        include_bytes!("../../corpus/wellformed/cjk.xml"),
        include_bytes!("../../corpus/wellformed/cdata-with-border.xml"),
        include_bytes!("../../corpus/wellformed/marcxml-default-namespace.xml"),
        include_bytes!("../../corpus/wellformed/mets-wraps-a-record.xml"),
        include_bytes!("../../corpus/wellformed/mixed-content.xml"),
        include_bytes!("../../corpus/wellformed/withdrawn-in-comment.xml"),
    ];

    /// No pass of the slow path changes an item that the fast path accepts.
    #[test]
    fn the_slow_path_leaves_a_clean_item_alone() {
        let limits = Limits::default();
        for page in PAGES {
            let mut tags = Tags::default();
            let root_at = memchr::memmem::find(page, b"<OAI-PMH").unwrap();
            let root = tags.open(&page[root_at..], Context::default(), &limits).unwrap().context;
            let list_at = memchr::memmem::find(page, b"<ListRecords").unwrap();
            let list = tags.open(&page[list_at..], root, &limits).unwrap();
            let skeleton = EnvelopeNames {
                element: &RECORD,
                upgraded: None,
                verb: b"ListRecords".to_vec(),
                prefix: Vec::new(),
                other_prefix: None,
                prefixes: Prefixes::None,
                headers_only: false,
                tears: false,
            };
            let mut at = list_at + list.len as usize;
            at += blanks(&page[at..]);
            let mut scanner = Validator::new(skeleton, list.context);
            scanner.new_window(at);
            let Validation::Clean(len) = scanner.scan(page, at, true, &mut tags, &limits) else {
                panic!("a record of {} is not clean", String::from_utf8_lossy(page));
            };
            let item = &page[at..at + len];
            assert!(repair_characters(item, &[], Guesses::default(), &limits).is_empty());
            let markup = repair_markup(item, &RECORD, list.context, &mut tags, &limits, &[]);
            assert!(markup.is_ok_and(|edits| edits.is_empty()));
            assert!(repair_envelope(item, &RECORD, false, Some("2000-01-01"), &limits).is_empty());
        }
    }
}
