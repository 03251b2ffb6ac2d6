//! The slow path: one broken item through its passes, until the strict reader accepts it.
//!
//! Characters, then markup, then envelope; after each pass the item is read
//! strictly, and the first version that is in order is taken. What no pass can
//! mend is beyond repair, and the strict reader says why.

use memchr::memchr_iter;

use super::RepositoryFacts;
use super::catalogue::QuarantineReason;
use super::context::Context;
use super::convention::conventional;
use super::edits::Edits;
use super::facts::{Facts, Places};
use super::fit::{bound, fit};
use super::formats::mend_format;
use super::header::{header_alone, mend_envelope};
use super::identify::{Known, lacks, mend_identify, says_something};
use super::lexeme::Lexemes;
use super::limits::Limits;
use super::markup::mend_markup;
use super::repair_set::RepairSet;
use super::scan::{Scan, Scanner};
use super::schema::Verb;
use super::sink::FieldIssue;
use super::skeleton::{Prefixes, Skeleton};
use super::swallowed::sections_with_borders;
use super::tag::Tags;
use super::tag_names::mend_names;
use super::text::{Entities, Guesses, characters, charset_of, guess_characters};
use super::upgrade::upgrade;

/// What mending is told besides the item.
#[derive(Debug)]
pub(super) struct Rules<'c> {
    pub(super) limits: &'c Limits,
    pub(super) off: RepairSet,
    pub(super) enabled: RepairSet,
    pub(super) text_charset: Option<&'c str>,
    pub(super) entities: &'c Entities,
    pub(super) known: Known<'c>,
    pub(super) repository: &'c RepositoryFacts,
}

/// What is declared around an item, as it came and as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) read: Context,
    pub(super) written: Context,
}

/// An item that is in order again.
#[derive(Debug)]
pub(super) struct Mended {
    pub(super) bytes: Vec<u8>,
    pub(super) edits: Edits,
    pub(super) facts: Facts,
    /// Whether its markup had to be mended.
    pub(super) markup: bool,
    /// What it lacks, and nobody knows.
    pub(super) lacks: Vec<(&'static str, FieldIssue)>,
}

impl Mended {
    /// An item that was in order as it came.
    pub(super) fn unchanged(raw: &[u8], facts: Facts) -> Self {
        Self { bytes: raw.to_vec(), edits: Edits::default(), facts, markup: false, lacks: Vec::new() }
    }
}

/// Mends one item whose bytes are `raw`.
///
/// # Errors
/// Why it is beyond repair.
pub(super) fn mend(
    raw: &[u8],
    skeleton: &Skeleton,
    around: Around,
    tags: &mut Tags,
    rules: &Rules<'_>,
) -> Result<Mended, QuarantineReason> {
    let mended = in_passes(raw, skeleton, around, tags, rules)?;
    // Items in a section are no items, but they do not vanish with it either.
    let drops_section = |&(start, _): &(usize, usize)| {
        mended.edits.iter().any(|edit| edit.start <= start && start < edit.end)
    };
    let sections = if mended.edits.is_empty() || skeleton.tears {
        Vec::new()
    } else {
        sections_with_borders(raw, skeleton)
    };
    if sections.iter().any(drops_section) { Err(QuarantineReason::MismatchedTags) } else { Ok(mended) }
}

fn in_passes(
    raw: &[u8],
    skeleton: &Skeleton,
    around: Around,
    tags: &mut Tags,
    rules: &Rules<'_>,
) -> Result<Mended, QuarantineReason> {
    let mut skeleton = skeleton.clone();
    if skeleton.prefixes == Prefixes::None {
        // One that has a prefix is read, and loses it.
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
                // The answer itself: it is not put aside for a name.
                Err(_) if item.skeleton.element.name == b"Identify" => None,
                charset => charset?,
            };
            let lexemes = match item.sections_with_borders().is_empty() {
                true => Lexemes::of(raw),
                false => Lexemes::of_well_formed(raw),
            };
            characters(raw, lexemes, rules.entities, guesses, charset, rules.limits)
        }
    };
    let mut why = match item.pass(edits)? {
        Verdict::InOrder(facts) => return Ok(item.mended(facts)),
        Verdict::Broken(why) => why,
    };
    if matches!(
        why,
        QuarantineReason::TooManyAttributes | QuarantineReason::TagTooLong | QuarantineReason::TooDeep
    ) {
        return Err(why);
    }
    if matches!(why, QuarantineReason::MalformedTag | QuarantineReason::MismatchedTags) {
        let names = mend_names(&item.text);
        if !names.is_empty() {
            why = match item.pass(names)? {
                Verdict::InOrder(facts) => return Ok(item.mended(facts)),
                Verdict::Broken(why) => why,
            };
        }
    }
    // Well-formed, and broken only as a record of OAI-PMH: the markup is right.
    if !item.is_envelope_fault(why) {
        let element = item.skeleton.element;
        item.tags.tidy();
        let sections = item.sections_with_borders();
        let markup = mend_markup(&item.text, element, outer, item.tags, rules.limits, &sections)?;
        item.markup = !markup.is_empty();
        why = match item.pass(markup)? {
            Verdict::InOrder(facts) => return Ok(item.mended(facts)),
            Verdict::Broken(why) => why,
        };
    }
    let is_version_one = item.skeleton.upgraded.is_some();
    let bound = bound(rules.repository);
    let envelope =
        mend_envelope(&item.text, item.skeleton.element, is_version_one, bound.as_deref(), rules.limits);
    let is_known = item.skeleton.upgraded.is_none() && item.is_described();
    if envelope.is_empty() && !is_known {
        return Err(why);
    }
    let why = match item.pass(envelope)? {
        Verdict::InOrder(facts) => return Ok(item.mended(facts)),
        Verdict::Broken(why) => why,
    };
    if !is_known || item.skeleton.element.name == b"Identify" && !says_something(&item.text) {
        return Err(why);
    }
    let known = match item.skeleton.element.name {
        b"Identify" => mend_identify(&item.text, rules.known, rules.off),
        _ => mend_format(&item.text, rules.off),
    };
    match item.pass(known)? {
        Verdict::InOrder(facts) => Ok(item.mended(facts)),
        Verdict::Broken(why) => item.left_as_it_is(why),
    }
}

/// Whether a mark that opens a section may stand inside one: where all is well-formed that is its
/// text, as the strict reader has it, and no sign that the section was never closed.
fn speaks_of_sections(raw: &[u8]) -> bool {
    let may_open = |at: &usize| at.checked_sub(1).and_then(|before| raw.get(before)) == Some(&b'<');
    memchr_iter(b'!', raw).filter(may_open).nth(1).is_some()
}

enum Verdict {
    InOrder(Facts),
    Broken(QuarantineReason),
}

struct Item<'m> {
    /// Of 1.x until it is upgraded.
    skeleton: Skeleton,
    outer: Context,
    written: Context,
    tags: &'m mut Tags,
    rules: &'m Rules<'m>,
    text: Vec<u8>,
    edits: Edits,
    markup: bool,
}

impl Item<'_> {
    /// Applies one pass and reads the result strictly. What is in order as it was
    /// read becomes what is written, and what does not fit its repository is made to; both are read
    /// once more.
    fn pass(&mut self, edits: Edits) -> Result<Verdict, QuarantineReason> {
        self.change(edits)?;
        let (mut verdict, places) = self.judge();
        if self.skeleton.is_rewritten() && matches!(verdict, Verdict::InOrder(_)) {
            let limits = self.rules.limits;
            let is_upgraded = self.skeleton.upgraded.is_some();
            if is_upgraded {
                let upgrade =
                    upgrade(&self.text, self.skeleton.element, &places, &self.tags.contexts, limits);
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

    /// What is in order is made to fit its repository.
    fn fitted(&mut self, facts: Facts) -> Result<Verdict, QuarantineReason> {
        let fitted = fit(&self.text, &facts, self.skeleton.element, self.rules);
        if fitted.is_empty() {
            return Ok(Verdict::InOrder(facts));
        }
        self.change(fitted)?;
        Ok(self.judge().0)
    }

    /// What is in order as it was read becomes what is written; says whether that is another text.
    fn rewrite(&mut self) -> Result<bool, QuarantineReason> {
        let mut is_changed = self.skeleton.headers_only;
        if self.skeleton.headers_only {
            self.change(header_alone(&self.text))?;
            self.skeleton.element = Verb::ListIdentifiers.item();
            self.skeleton.headers_only = false;
        }
        if self.skeleton.prefixes == Prefixes::Off {
            let (element, limits) = (self.skeleton.element, self.rules.limits);
            let edits = conventional(&self.text, element, self.outer, self.tags, limits);
            is_changed |= !edits.is_empty();
            self.change(edits)?;
            self.skeleton.prefix.clear();
            self.skeleton.prefixes = Prefixes::None;
        }
        if self.skeleton.prefixes == Prefixes::None {
            self.outer = self.written;
        }
        if self.skeleton.element.name == b"metadataFormat" && self.skeleton.upgraded.is_none() {
            let edits = mend_format(&self.text, self.rules.off);
            is_changed |= !edits.is_empty();
            self.change(edits)?;
        }
        Ok(is_changed)
    }

    /// The closed sections with borders of items inside. They are content, with their own end marks.
    fn sections_with_borders(&self) -> Vec<(usize, usize)> {
        if self.skeleton.tears { Vec::new() } else { sections_with_borders(&self.text, &self.skeleton) }
    }

    /// Whether it describes the repository, so that what it lacks may be known.
    fn is_described(&self) -> bool {
        matches!(self.skeleton.element.name, b"Identify" | b"metadataFormat")
    }

    /// Identify is the answer itself: what nobody knows of it is left as it is.
    fn left_as_it_is(mut self, why: QuarantineReason) -> Result<Mended, QuarantineReason> {
        let is_identify = self.skeleton.element.name == b"Identify";
        if !is_identify || !self.is_well_formed() {
            return Err(why);
        }
        self.rewrite()?;
        if let Verdict::InOrder(facts) = self.judge().0
            && let Verdict::InOrder(facts) = self.fitted(facts)?
        {
            return Ok(self.mended(facts));
        }
        if !self.is_well_formed() {
            return Err(why);
        }
        let lacks = lacks(&self.text);
        let is_dated = |(element, _): &(&str, FieldIssue)| {
            !matches!(*element, "earliestDatestamp" | "granularity" | "Identify")
        };
        if lacks.iter().all(is_dated) {
            self.change(fit(&self.text, &Facts::default(), self.skeleton.element, self.rules))?;
        }
        Ok(Mended { lacks, ..self.mended(Facts::default()) })
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

    /// Reads it strictly; in a response without a prefix first as an item that has none either, which
    /// spares nearly all of them the way of one that loses it.
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
        let mut scanner = Scanner::new(Skeleton { prefixes, ..self.skeleton.clone() }, self.outer);
        scanner.new_window(0);
        let verdict = match scanner.scan(&self.text, 0, true, self.tags, self.rules.limits) {
            Scan::Clean(len) if super::name::trim(self.text.get(len..).unwrap_or_default()).is_empty() => {
                Verdict::InOrder(scanner.facts)
            }
            Scan::Clean(_) => Verdict::Broken(QuarantineReason::MismatchedTags),
            Scan::Defect(defect) => Verdict::Broken(defect.why),
            Scan::TooLong | Scan::NeedMore => Verdict::Broken(QuarantineReason::RecordTooLong),
        };
        (verdict, scanner.places)
    }

    /// Whether the defect is one of the envelope, and the item is well-formed
    /// all the same.
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

    /// Whether the markup is in order, the envelope aside.
    fn is_well_formed(&mut self) -> bool {
        self.tags.tidy();
        let mut scanner = Scanner::for_payload(self.skeleton.clone(), self.outer);
        scanner.new_window(0);
        matches!(
            scanner.scan(&self.text, 0, true, self.tags, self.rules.limits),
            Scan::Clean(len) if super::name::trim(self.text.get(len..).unwrap_or_default()).is_empty()
        )
    }

    fn mended(self, facts: Facts) -> Mended {
        Mended { bytes: self.text, edits: self.edits, facts, markup: self.markup, lacks: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use super::super::header::mend_envelope;
    use super::super::markup::mend_markup;
    use super::super::name::blanks;
    use super::super::schema::RECORD;
    use super::super::skeleton::{Prefixes, Skeleton};
    use super::super::text::{Guesses, mend_characters};
    use super::{Context, Limits, Scan, Scanner, Tags};

    const PAGES: [&[u8]; 6] = [
        include_bytes!("../../corpus/wellformed/cjk.xml"),
        include_bytes!("../../corpus/wellformed/cdata-with-border.xml"),
        include_bytes!("../../corpus/wellformed/marcxml-default-namespace.xml"),
        include_bytes!("../../corpus/wellformed/mets-wraps-a-record.xml"),
        include_bytes!("../../corpus/wellformed/mixed-content.xml"),
        include_bytes!("../../corpus/wellformed/withdrawn-in-comment.xml"),
    ];

    /// What the fast path lets through, no pass of the slow path would change.
    #[test]
    fn the_slow_path_leaves_a_clean_item_alone() {
        let limits = Limits::default();
        for page in PAGES {
            let mut tags = Tags::default();
            let root_at = memchr::memmem::find(page, b"<OAI-PMH").unwrap();
            let root = tags.open(&page[root_at..], Context::default(), &limits).unwrap().context;
            let list_at = memchr::memmem::find(page, b"<ListRecords").unwrap();
            let list = tags.open(&page[list_at..], root, &limits).unwrap();
            let skeleton = Skeleton {
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
            let mut scanner = Scanner::new(skeleton, list.context);
            scanner.new_window(at);
            let Scan::Clean(len) = scanner.scan(page, at, true, &mut tags, &limits) else {
                panic!("a record of {} is not clean", String::from_utf8_lossy(page));
            };
            let item = &page[at..at + len];
            assert!(mend_characters(item, &[], Guesses::default(), &limits).is_empty());
            let markup = mend_markup(item, &RECORD, list.context, &mut tags, &limits, &[]);
            assert!(markup.is_ok_and(|edits| edits.is_empty()));
            assert!(mend_envelope(item, &RECORD, false, Some("2000-01-01"), &limits).is_empty());
        }
    }
}
