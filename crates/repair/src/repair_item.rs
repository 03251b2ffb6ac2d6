//! The slow path: repairs one broken item in several passes.
//!
//! The stage `list` calls it for each item that is not valid, and for each valid item that must be
//! rewritten. The passes are characters, markup and envelope. The validator reads the item after each pass.
//! The first valid version is the result. If there is none, the first defect that remains is the reason for
//! quarantine.

use crate::boundary::swallowed::sections_with_boundaries;
use crate::catalog::{QuarantineReason, RepairId};
use crate::lex::lexeme::Lexemes;
use crate::lex::names::trim;
use crate::lex::namespaces::Context;
use crate::lex::search::{memchr_iter, memrchr};
use crate::lex::window::TextWindow;
use crate::passes::formats::repair_format;
use crate::passes::granularity::{lower_bound, repair_granularity};
use crate::passes::header::{keep_only_header, repair_envelope};
use crate::passes::identify::{has_identify_element, repair_identify, unresolved_fields};
use crate::passes::markup::repair_markup;
use crate::passes::name_case::repair_name_case;
use crate::passes::rules::{ItemEnvelope, OuterContexts, Rules};
use crate::passes::strip_prefix::strip_item_prefixes;
use crate::passes::tag_names::repair_names;
use crate::passes::tree::MarkupItem;
use crate::sink::FieldIssue;
use crate::text::characters::{guess_characters, item_edits};
use crate::text::charset::detect_charset;
use crate::text::edits::Edits;
use crate::text::legal::has_legal_characters;
use crate::text::node_rules::{CharacterRules, Guesses};
use crate::v1::items::{V1Item, upgrade_item};
use crate::validate::envelope_names::{EnvelopeNames, EnvelopePrefixes};
use crate::validate::facts::{ItemFacts, V1Positions};
use crate::validate::schema::item_of;
use crate::validate::start_tag::StartTagCache;
use crate::validate::state::{Defect, Validation, Validator};
use oaimend_oai::Verb;

/// A repaired item.
#[derive(Debug)]
pub(crate) struct RepairedItem {
    pub(crate) bytes: Vec<u8>,
    pub(crate) edits: Edits,
    pub(crate) facts: ItemFacts,
    /// Whether the markup was repaired.
    pub(crate) markup: bool,
    /// Missing or illegal fields whose values are unknown.
    pub(crate) unresolved: Vec<(&'static str, FieldIssue)>,
    /// The datestamp of the source as written in the XML, if the granularity was adjusted.
    pub(crate) source_datestamp: Option<Vec<u8>>,
}

impl RepairedItem {
    /// A valid item without changes.
    pub(crate) fn unchanged(raw: &[u8], facts: ItemFacts) -> Self {
        Self {
            bytes: raw.to_vec(),
            edits: Edits::default(),
            facts,
            markup: false,
            unresolved: Vec::new(),
            source_datestamp: None,
        }
    }
}

/// What the validator of the list knows about an item of which the first defect is one of a payload without
/// sections (see `repair_nodes`).
#[derive(Debug)]
pub(crate) struct KnownStart<'v> {
    pub(crate) defect: Defect,
    /// The validator, if it is still at the defect. Then it need not read the text before it again.
    pub(crate) validator: Option<&'v mut Validator>,
}

/// Repairs one item with the bytes `raw`. `known` is what is known about its start.
///
/// # Errors
/// The reason for the quarantine of the item.
pub(crate) fn repair_item(
    raw: &[u8],
    envelope: ItemEnvelope<'_>,
    tags: &mut StartTagCache,
    rules: &Rules<'_>,
    known: Option<KnownStart<'_>>,
) -> Result<RepairedItem, QuarantineReason> {
    let is_flat = known.is_some();
    let repaired = run_passes(raw, envelope, tags, rules, known)?;
    // Items in a section are not items of the list, but they must not be dropped with the section.
    let drops_section = |&(start, _): &(usize, usize)| {
        repaired.edits.iter().any(|edit| edit.start <= start && start < edit.end)
    };
    let sections = if repaired.edits.is_empty() || envelope.names.repairs_torn_sections || is_flat {
        Vec::new()
    } else {
        sections_with_boundaries(raw, envelope.names)
    };
    if sections.iter().any(drops_section) { Err(QuarantineReason::MismatchedTags) } else { Ok(repaired) }
}

fn run_passes(
    raw: &[u8],
    envelope: ItemEnvelope<'_>,
    tags: &mut StartTagCache,
    rules: &Rules<'_>,
    known: Option<KnownStart<'_>>,
) -> Result<RepairedItem, QuarantineReason> {
    let defect = known.as_ref().map(|known| known.defect);
    let mut names = envelope.names.clone();
    if names.prefixes == EnvelopePrefixes::Forbidden {
        // A prefixed item is accepted and loses its prefix.
        names.prefixes = EnvelopePrefixes::Removed;
    }
    let OuterContexts { read: outer, written } = envelope.contexts;
    let mut item = ItemRepair {
        names,
        outer,
        written,
        tags,
        rules,
        text: raw.to_vec(),
        edits: Edits::default(),
        markup: false,
        source_datestamp: None,
        validator: known.and_then(|known| known.validator),
    };
    let edits = item.character_edits(raw, defect)?;
    let mut why = match defect {
        // The text is the one that the validator has read.
        Some(defect) if edits.is_empty() => defect.why,
        _ => match item.apply_pass(edits)? {
            Verdict::Valid(facts) => return Ok(item.repaired(facts)),
            Verdict::Invalid(why) => why,
        },
    };
    if matches!(
        why,
        QuarantineReason::TooManyAttributes | QuarantineReason::TagTooLong | QuarantineReason::TooDeep
    ) {
        return Err(why);
    }
    if matches!(why, QuarantineReason::MalformedTag | QuarantineReason::MismatchedTags) {
        let name_edits = repair_names(&item.text, rules.limits);
        if !name_edits.is_empty() {
            why = match item.apply_pass(name_edits)? {
                Verdict::Valid(facts) => return Ok(item.repaired(facts)),
                Verdict::Invalid(why) => why,
            };
        }
    }
    // If the item is well-formed and only its envelope is broken, the markup is correct.
    if !item.is_envelope_defect(why) {
        let element = item.names.element;
        item.tidy();
        let sections = if defect.is_some() { Vec::new() } else { item.sections_with_boundaries() };
        let valid_bytes = match defect {
            Some(defect) if item.edits.is_empty() => defect.at,
            _ => 0,
        };
        let markup_item = MarkupItem { text: &item.text, element, outer, sections: &sections, valid_bytes };
        let markup = repair_markup(markup_item, item.tags, rules.limits)?;
        item.markup = !markup.is_empty();
        why = match item.apply_markup(markup)? {
            Verdict::Valid(facts) => return Ok(item.repaired(facts)),
            Verdict::Invalid(why) => why,
        };
    }
    let renamed = repair_name_case(&item.text, item.names.element);
    if !renamed.is_empty() {
        why = match item.apply_pass(renamed)? {
            Verdict::Valid(facts) => return Ok(item.repaired(facts)),
            Verdict::Invalid(why) => why,
        };
    }
    let is_v1 = item.names.v2_element.is_some();
    let bound = lower_bound(rules.repository);
    let envelope = repair_envelope(&item.text, item.names.element, is_v1, bound.as_deref(), rules.limits);
    let is_known = item.names.v2_element.is_none() && item.describes_repository();
    if envelope.is_empty() && !is_known {
        return Err(why);
    }
    let why = match item.apply_pass(envelope)? {
        Verdict::Valid(facts) => return Ok(item.repaired(facts)),
        Verdict::Invalid(why) => why,
    };
    if !is_known || item.names.element.name == b"Identify" && !has_identify_element(&item.text) {
        return Err(why);
    }
    let known = match item.names.element.name {
        b"Identify" => repair_identify(&item.text, rules.known_values, rules.off),
        _ => repair_format(&item.text, rules.off),
    };
    match item.apply_pass(known)? {
        Verdict::Valid(facts) => Ok(item.repaired(facts)),
        Verdict::Invalid(why) => item.keep_incomplete_identify(why),
    }
}

/// Whether the item contains a second opening mark, perhaps inside a section. In well-formed text that is
/// content of the section, and no evidence that the section was never closed.
fn may_nest_sections(raw: &[u8]) -> bool {
    let may_open = |at: &usize| at.checked_sub(1).and_then(|before| raw.get(before)) == Some(&b'<');
    memchr_iter(b'!', raw).filter(may_open).nth(1).is_some()
}

enum Verdict {
    Valid(ItemFacts),
    Invalid(QuarantineReason),
}

struct ItemRepair<'m> {
    /// The names of 1.x until the item is upgraded.
    names: EnvelopeNames,
    outer: Context,
    written: Context,
    tags: &'m mut StartTagCache,
    rules: &'m Rules<'m>,
    text: Vec<u8>,
    edits: Edits,
    markup: bool,
    source_datestamp: Option<Vec<u8>>,
    /// The validator that has read the start of the text.
    validator: Option<&'m mut Validator>,
}

impl ItemRepair<'_> {
    /// The edits of the pass over characters. It reads no text before the defect that the validator has
    /// found.
    fn character_edits(&mut self, raw: &[u8], defect: Option<Defect>) -> Result<Edits, QuarantineReason> {
        let guesses = Guesses::enabled_by(self.rules.enabled);
        if defect.is_none() && may_nest_sections(raw) && self.is_well_formed() {
            return Ok(if guesses.any() {
                guess_characters(raw, guesses, self.rules.limits)
            } else {
                Edits::default()
            });
        }
        let valid = defect.and_then(|defect| raw.get(..defect.at)).unwrap_or_default();
        let from = memrchr(b'<', valid).unwrap_or(0);
        if !guesses.any() && has_legal_characters(raw.get(from..).unwrap_or_default()) {
            return Ok(Edits::default());
        }
        let charset = match detect_charset(raw, from, self.rules.text_charset) {
            // Identify is the response itself, so it is not quarantined for a charset.
            Err(_) if self.names.element.name == b"Identify" => None,
            charset => charset?,
        };
        let lexemes = if defect.is_some() || self.sections_with_boundaries().is_empty() {
            Lexemes::new(raw)
        } else {
            Lexemes::new_well_formed(raw)
        };
        let (entities, limits) = (self.rules.entities, self.rules.limits);
        Ok(item_edits(raw, from, lexemes, CharacterRules { entities, guesses, charset, limits }))
    }

    /// Applies one pass and validates the result. A valid item is then rewritten for the output and adjusted
    /// to its repository. After each of these changes it is validated again.
    fn apply_pass(&mut self, edits: Edits) -> Result<Verdict, QuarantineReason> {
        self.apply(edits)?;
        let (mut verdict, v1_positions) = self.validate();
        if self.names.is_rewritten() && matches!(verdict, Verdict::Valid(_)) {
            let limits = self.rules.limits;
            let is_upgraded = self.names.v2_element.is_some();
            if is_upgraded {
                let item = V1Item { bytes: &self.text, places: &v1_positions };
                let upgrade = upgrade_item(item, self.names.element, &self.tags.contexts, limits);
                self.apply(upgrade)?;
                self.names = self.names.as_v2();
            }
            let is_moved = self.outer != self.written;
            let is_changed = self.rewrite()?;
            if is_upgraded || is_moved || is_changed {
                verdict = self.validate().0;
            }
        }
        match verdict {
            Verdict::Valid(facts) => self.adjust_to_repository(facts),
            invalid @ Verdict::Invalid(_) => Ok(invalid),
        }
    }

    /// Like [`ItemRepair::apply_pass`]. If nothing changed before the defect, the validator of the list goes on there.
    /// It forbids prefixes, so an item that it rejects is read again.
    fn apply_markup(&mut self, edits: Edits) -> Result<Verdict, QuarantineReason> {
        let is_first = self.edits.is_empty() && !edits.is_empty();
        let known = self
            .validator
            .take()
            .filter(|validator| is_first && edits.iter().all(|edit| edit.start >= validator.lexeme_end));
        let Some(validator) = known else { return self.apply_pass(edits) };
        self.apply(edits)?;
        match validator.resume(&self.text, self.tags, self.rules.limits) {
            Validation::Clean(len) if trim(self.text.get(len..).unwrap_or_default()).is_empty() => {
                self.names.prefixes = EnvelopePrefixes::Forbidden;
                self.adjust_to_repository(std::mem::take(&mut validator.facts))
            }
            _ => self.apply_pass(Edits::default()),
        }
    }

    /// Drops the contexts of earlier items if there are too many, and with them what the validator has read.
    fn tidy(&mut self) {
        if self.tags.tidy() {
            self.validator = None;
        }
    }

    /// Adjusts a valid item to its repository.
    fn adjust_to_repository(&mut self, facts: ItemFacts) -> Result<Verdict, QuarantineReason> {
        let adjusted = repair_granularity(&self.text, &facts, self.names.element, self.rules);
        if adjusted.is_empty() {
            return Ok(Verdict::Valid(facts));
        }
        // A lower bound is not from the source.
        if adjusted.iter().all(|edit| edit.id == RepairId::DatestampGranularity) {
            self.source_datestamp = Some(facts.datestamp.slice(&self.text).to_vec());
        }
        self.apply(adjusted)?;
        Ok(self.validate().0)
    }

    /// Rewrites a valid item for the output. Returns whether the text changed.
    fn rewrite(&mut self) -> Result<bool, QuarantineReason> {
        let mut is_changed = self.names.headers_only;
        if self.names.headers_only {
            self.apply(keep_only_header(&self.text))?;
            self.names.element = item_of(Verb::ListIdentifiers);
            self.names.headers_only = false;
        }
        if self.names.prefixes == EnvelopePrefixes::Removed {
            let (element, limits) = (self.names.element, self.rules.limits);
            let edits = strip_item_prefixes(&self.text, element, self.outer, self.tags, limits);
            is_changed |= !edits.is_empty();
            self.apply(edits)?;
            self.names.prefix.clear();
            self.names.prefixes = EnvelopePrefixes::Forbidden;
        }
        if self.names.prefixes == EnvelopePrefixes::Forbidden {
            self.outer = self.written;
        }
        if self.names.element.name == b"metadataFormat" && self.names.v2_element.is_none() {
            let edits = repair_format(&self.text, self.rules.off);
            is_changed |= !edits.is_empty();
            self.apply(edits)?;
        }
        Ok(is_changed)
    }

    /// The closed sections that contain a boundary. They are content and have their own end marks.
    fn sections_with_boundaries(&self) -> Vec<(usize, usize)> {
        if self.names.repairs_torn_sections {
            Vec::new()
        } else {
            sections_with_boundaries(&self.text, &self.names)
        }
    }

    /// Whether the item describes the repository, so that missing values may be known.
    fn describes_repository(&self) -> bool {
        matches!(self.names.element.name, b"Identify" | b"metadataFormat")
    }

    /// Keeps an Identify with unknown fields, because it is the response itself.
    fn keep_incomplete_identify(mut self, why: QuarantineReason) -> Result<RepairedItem, QuarantineReason> {
        let is_identify = self.names.element.name == b"Identify";
        if !is_identify || !self.is_well_formed() {
            return Err(why);
        }
        self.rewrite()?;
        if let Verdict::Valid(facts) = self.validate().0
            && let Verdict::Valid(facts) = self.adjust_to_repository(facts)?
        {
            return Ok(self.repaired(facts));
        }
        if !self.is_well_formed() {
            return Err(why);
        }
        let unresolved = unresolved_fields(&self.text);
        let is_dated = |(element, _): &(&str, FieldIssue)| {
            !matches!(*element, "earliestDatestamp" | "granularity" | "Identify")
        };
        if unresolved.iter().all(is_dated) {
            self.apply(repair_granularity(
                &self.text,
                &ItemFacts::default(),
                self.names.element,
                self.rules,
            ))?;
        }
        Ok(RepairedItem { unresolved, ..self.repaired(ItemFacts::default()) })
    }

    fn apply(&mut self, edits: Edits) -> Result<(), QuarantineReason> {
        if edits.iter().any(|edit| self.rules.off.contains(edit.id)) {
            return Err(QuarantineReason::RepairOff);
        }
        // The passes stop at a limit, so their edits may be incomplete then.
        if edits.len() > self.rules.limits.repairs_per_record_max {
            return Err(QuarantineReason::TooManyRepairs);
        }
        if edits.replacement_bytes() > self.rules.limits.record_bytes_max {
            return Err(QuarantineReason::RecordTooLong);
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
    fn validate(&mut self) -> (Verdict, V1Positions) {
        if self.names.prefixes == EnvelopePrefixes::Removed && self.names.prefix.is_empty() {
            let (verdict, v1_positions) = self.validate_with(EnvelopePrefixes::Forbidden);
            if matches!(verdict, Verdict::Valid(_)) {
                self.names.prefixes = EnvelopePrefixes::Forbidden;
                return (verdict, v1_positions);
            }
        }
        self.validate_with(self.names.prefixes)
    }

    fn validate_with(&mut self, prefixes: EnvelopePrefixes) -> (Verdict, V1Positions) {
        self.tidy();
        let mut validator = Validator::new(EnvelopeNames { prefixes, ..self.names.clone() }, self.outer);
        validator.new_window(0);
        let verdict = match validator.validate(
            TextWindow::whole(&self.text).item_at(0),
            self.tags,
            self.rules.limits,
        ) {
            Validation::Clean(len) if trim(self.text.get(len..).unwrap_or_default()).is_empty() => {
                Verdict::Valid(validator.facts)
            }
            Validation::Clean(_) => Verdict::Invalid(QuarantineReason::MismatchedTags),
            Validation::Defect(defect) => Verdict::Invalid(defect.why),
            Validation::TooLong | Validation::NeedMore => Verdict::Invalid(QuarantineReason::RecordTooLong),
        };
        (verdict, validator.v1_positions)
    }

    /// Whether the only defect is in the envelope: the item is well-formed.
    fn is_envelope_defect(&mut self, why: QuarantineReason) -> bool {
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
        let mut validator = Validator::for_payload(self.names.clone(), self.outer);
        validator.new_window(0);
        matches!(
            validator.validate(TextWindow::whole(&self.text).item_at(0), self.tags, self.rules.limits),
            Validation::Clean(len) if crate::lex::names::trim(self.text.get(len..).unwrap_or_default()).is_empty()
        )
    }

    fn repaired(self, facts: ItemFacts) -> RepairedItem {
        RepairedItem {
            bytes: self.text,
            edits: self.edits,
            facts,
            markup: self.markup,
            unresolved: Vec::new(),
            source_datestamp: self.source_datestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use super::{Context, StartTagCache, Validation, Validator};
    use crate::lex::names::blanks;
    use crate::lex::window::TextWindow;
    use crate::limits::Limits;
    use crate::passes::header::repair_envelope;
    use crate::passes::markup::repair_markup;
    use crate::passes::name_case::repair_name_case;
    use crate::passes::tree::MarkupItem;
    use crate::text::characters::repair_characters;
    use crate::text::node_rules::CharacterRules;
    use crate::validate::envelope_names::EnvelopeNames;
    use crate::validate::schema::RECORD;

    const PAGES: [&[u8]; 6] = [
        include_bytes!("../../../corpus/wellformed/cjk.xml"),
        include_bytes!("../../../corpus/wellformed/cdata-with-border.xml"),
        include_bytes!("../../../corpus/wellformed/marcxml-default-namespace.xml"),
        include_bytes!("../../../corpus/wellformed/mets-wraps-a-record.xml"),
        include_bytes!("../../../corpus/wellformed/mixed-content.xml"),
        include_bytes!("../../../corpus/wellformed/withdrawn-in-comment.xml"),
    ];

    /// No pass of the slow path changes an item that the fast path accepts.
    #[test]
    fn the_slow_path_leaves_a_clean_item_alone() {
        let limits = Limits::default();
        for page in PAGES {
            let mut tags = StartTagCache::default();
            let root_at = crate::lex::search::memmem::find(page, b"<OAI-PMH").unwrap();
            let root = tags.open(&page[root_at..], Context::default(), &limits).unwrap().context;
            let list_at = crate::lex::search::memmem::find(page, b"<ListRecords").unwrap();
            let list = tags.open(&page[list_at..], root, &limits).unwrap();
            let names = EnvelopeNames::of_records();
            let mut at = list_at + list.len as usize;
            at += blanks(&page[at..]);
            let mut validator = Validator::new(names, list.context);
            validator.new_window(at);
            let Validation::Clean(len) =
                validator.validate(TextWindow::whole(page).item_at(at), &mut tags, &limits)
            else {
                panic!("a record of {} is not clean", String::from_utf8_lossy(page));
            };
            let item = &page[at..at + len];
            assert!(repair_characters(item, CharacterRules::plain(&limits)).is_empty());
            let (text, outer) = (item, list.context);
            let item = MarkupItem { text, element: &RECORD, outer, sections: &[], valid_bytes: 0 };
            let markup = repair_markup(item, &mut tags, &limits);
            assert!(markup.is_ok_and(|edits| edits.is_empty()));
            assert!(repair_name_case(text, &RECORD).is_empty());
            assert!(repair_envelope(text, &RECORD, false, Some("2000-01-01"), &limits).is_empty());
        }
    }
}
