//! The short way of the slow path: repairs an item whose only defects are characters of its payload.
//!
//! The stage `list` tries it before [`repair_item`](crate::repair_item::repair_item). The
//! validator of the list stopped at the first defect, so everything before it is valid. This file repairs
//! the text or tag with the defect, and the validator resumes there. Each byte is validated once.
//!
//! The result is that of the first pass of `repair_item`. That pass reads all nodes of the item, and
//! changes none that the validator accepts. An item that needs anything else goes to `repair_item`.

use encoding_rs::Encoding;

use crate::catalog::RepairId;
use crate::lex::search::memrchr;
use crate::passes::granularity::repair_granularity;
use crate::passes::rules::Rules;
use crate::repair_item::RepairedItem;
use crate::text::characters::edits_around;
use crate::text::charset::detect_charset;
use crate::text::edits::Edits;
use crate::text::node_rules::{CharacterRules, Guesses};
use crate::validate::envelope_names::EnvelopePrefixes;
use crate::validate::start_tag::StartTagCache;
use crate::validate::state::{Defect, Validation, Validator};

/// Maximum number of defects that are repaired one after the other. After each of them, the rest of the item moves.
const DEFECTS_MAX: usize = 8;
/// Room for the growth of an item by its repairs, in bytes. It is enough for most items.
const GROWTH_BYTES: usize = 64;

/// The defect at which `validator` stopped in an item without sections, if it is one of a payload. Then
/// any reading of the item accepts the text before it, and finds it.
pub(crate) fn local_defect(defect: Defect, validator: &Validator, rules: &Rules<'_>) -> Option<Defect> {
    let names = &validator.names;
    let is_plain = names.prefixes == EnvelopePrefixes::Forbidden
        && names.prefix.is_empty()
        && !names.is_rewritten()
        && !Guesses::enabled_by(rules.enabled).any();
    (is_plain && validator.can_resume(defect)).then_some(defect)
}

/// How far the validator has read an item that repairs of characters alone did not make valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unrepaired {
    /// The validator is still at the defect.
    AtDefect,
    /// The validator has read a repaired part.
    After,
}

/// Repairs the characters of the item `raw`, in which `validator` stopped at a local defect.
///
/// # Errors
/// The item may need other repairs.
pub(crate) fn repair_nodes(
    raw: &[u8],
    defect: Defect,
    validator: &mut Validator,
    tags: &mut StartTagCache,
    rules: &Rules<'_>,
) -> Result<RepairedItem, Unrepaired> {
    let valid = raw.get(..defect.at).and_then(|valid| memrchr(b'<', valid)).unwrap_or(0);
    let (text, edits) = (Vec::with_capacity(raw.len() + GROWTH_BYTES), Edits::default());
    let mut repaired = NodeRepair { raw, text, edits, repaired: 0, copied: 0, done: 0, valid, charset: None };
    let mut next = defect;
    let mut unrepaired = Unrepaired::AtDefect;
    for _ in 0..DEFECTS_MAX {
        repaired.repair(next.at, rules).ok_or(unrepaired)?;
        unrepaired = Unrepaired::After;
        match validator.resume(&repaired.text, tags, rules.limits) {
            Validation::Clean(len) => return repaired.finish(len, validator, rules).ok_or(unrepaired),
            Validation::Defect(defect) if validator.can_resume(defect) => next = defect,
            _ => return Err(unrepaired),
        }
    }
    Err(unrepaired)
}

/// An item of which the first part is repaired.
struct NodeRepair<'t> {
    raw: &'t [u8],
    /// The repaired part, and the rest of the item. Empty before the first repair.
    text: Vec<u8>,
    edits: Edits,
    /// The end of the last replacement in `text`, and of the text that it replaces in `raw`.
    repaired: usize,
    copied: usize,
    /// The start of the first tag in `raw` that may be damaged.
    done: usize,
    /// The start of the tag before the first defect.
    valid: usize,
    /// The result of [`NodeRepair::charset`].
    charset: Option<Option<&'static Encoding>>,
}

impl NodeRepair<'_> {
    /// Repairs the nodes around the defect at `at` of the text.
    fn repair(&mut self, at: usize, rules: &Rules<'_>) -> Option<()> {
        let shift = self.text.len() as isize - self.raw.len() as isize;
        let at = if self.text.is_empty() { at } else { at.checked_add_signed(-shift)? };
        // The text before the defect is valid and without sections, so each `<` in it begins a tag.
        let from = self.done + memrchr(b'<', self.raw.get(self.done..at)?).unwrap_or(0);
        let node_rules = CharacterRules { entities: rules.entities, ..CharacterRules::plain(rules.limits) };
        let (mut edits, mut end) = edits_around(self.raw, from, at, node_rules);
        if simdutf8::basic::from_utf8(self.raw.get(from..end)?).is_err()
            && let charset @ Some(_) = self.charset(rules)?
        {
            (edits, end) = edits_around(self.raw, from, at, CharacterRules { charset, ..node_rules });
        }
        // The text of entities is limited for the whole item.
        let is_other = |id| id == RepairId::Doctype || rules.off.contains(id);
        let is_off = edits.iter().any(|edit| is_other(edit.id));
        let has_too_many = self.edits.len() + edits.len() > rules.limits.repairs_per_record_max
            || edits.replacement_bytes() > rules.limits.record_bytes_max;
        if edits.is_empty() || is_off || has_too_many {
            return None;
        }
        self.text.truncate(self.repaired);
        for edit in edits.iter() {
            self.text.extend_from_slice(self.raw.get(self.copied..edit.start)?);
            self.text.extend_from_slice(&edit.replacement);
            self.copied = edit.end;
        }
        self.repaired = self.text.len();
        self.text.extend_from_slice(self.raw.get(self.copied..)?);
        self.edits.append(edits);
        self.done = end;
        Some(())
    }

    /// The charset of nodes that are not UTF-8. It depends on the whole item.
    fn charset(&mut self, rules: &Rules<'_>) -> Option<Option<&'static Encoding>> {
        if self.charset.is_none() {
            self.charset = detect_charset(self.raw, self.valid, rules.text_charset).ok();
        }
        self.charset
    }

    /// The repaired item, of which the validator accepted the first `len` bytes.
    fn finish(self, len: usize, validator: &mut Validator, rules: &Rules<'_>) -> Option<RepairedItem> {
        let rest = self.text.get(len..)?;
        let facts = std::mem::take(&mut validator.facts);
        let is_adjusted = !repair_granularity(&self.text, &facts, validator.names.element, rules).is_empty();
        if !crate::lex::names::trim(rest).is_empty() || is_adjusted {
            return None;
        }
        Some(RepairedItem { bytes: self.text, edits: self.edits, ..RepairedItem::unchanged(&[], facts) })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]
    use super::{Unrepaired, local_defect, repair_nodes};
    use crate::config::RepairConfig;
    use crate::lex::namespaces::{Context, OAI};
    use crate::lex::window::TextWindow;
    use crate::passes::rules::{ItemEnvelope, OuterContexts, Rules};
    use crate::random;
    use crate::repair_item::{KnownStart, repair_item};
    use crate::validate::envelope_names::EnvelopeNames;
    use crate::validate::start_tag::StartTagCache;
    use crate::validate::state::{Validation, Validator};

    const RECORD_START: &str = "<record><header><identifier>oai:a:1</identifier><datestamp>2024-01-01</datestamp>\
        </header><metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
        xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>A title</dc:title>\n<dc:creator>B &amp; C\
        </dc:creator>\n<dc:subject xml:lang=\"en\">caf\u{e9} \u{442}\u{435}\u{43a}\u{441}\u{442}</dc:subject>";
    const RECORD_END: &str = "<dc:date>2024</dc:date></oai_dc:dc></metadata></record>";
    const INSERTIONS: [&[u8]; 18] = [
        b"&",
        b"&nbsp;",
        b"\x0b",
        b"\xe4",
        b"\xe2\x80",
        b" < ",
        b"]]>",
        b"&#1;",
        b"\xef\xbf\xbf",
        b"\x80\x93",
        b"<b>",
        b"</dc:title>",
        b"=",
        b"\"",
        b"x",
        b" lang=en ",
        b"<![CDATA[x]]>",
        b"\xcf\xf0\xe8\xe2\xe5\xf2\xfb",
    ];

    /// What the validator has read is not read again, and the result is the same.
    #[test]
    fn a_known_defect_changes_no_result() {
        let seed = 0x5EED_0005_u64;
        let (mut random, config) = (random(seed), RepairConfig::default());
        let rules = Rules::new(&config, &[]);
        let (mut repaired, mut resumed) = (0, 0);
        for _ in 0..40_000 {
            let mut raw = [RECORD_START, RECORD_END].concat().into_bytes();
            for _ in 0..=random(3) {
                let at = RECORD_START.len() / 2 + random(raw.len() - RECORD_START.len() / 2);
                let insertion = INSERTIONS[random(INSERTIONS.len())];
                raw.splice(at..at, insertion.iter().copied());
            }
            let mut tags = StartTagCache::default();
            let root = [b"<OAI-PMH xmlns=\"", OAI, b"\">"].concat();
            let context = tags.open(&root, Context::default(), rules.limits).unwrap().context;
            let contexts = OuterContexts { read: context, written: context };
            let names = EnvelopeNames::of_records();
            let envelope = ItemEnvelope { names: &names, contexts };
            let mut validator = Validator::new(names.clone(), context);
            validator.new_window(0);
            let Validation::Defect(defect) =
                validator.validate(TextWindow::whole(&raw).item_at(0), &mut tags, rules.limits)
            else {
                continue;
            };
            let has_sections = raw.windows(2).any(|pair| pair == b"<!");
            let (Some(defect), false) = (local_defect(defect, &validator, &rules), has_sections) else {
                continue;
            };
            let expected = format!("{:?}", repair_item(&raw, envelope, &mut tags, &rules, None));
            let text = raw.escape_ascii();
            let at_defect = match repair_nodes(&raw, defect, &mut validator, &mut tags, &rules) {
                Ok(item) => {
                    repaired += 1;
                    let found = format!("{:?}", Ok::<_, crate::QuarantineReason>(item));
                    assert_eq!(found, expected, "seed {seed:#x}: {text}");
                    None
                }
                Err(Unrepaired::AtDefect) => Some(&mut validator),
                Err(Unrepaired::After) => None,
            };
            let known = KnownStart { defect, validator: at_defect };
            let item = repair_item(&raw, envelope, &mut tags, &rules, Some(known));
            resumed += usize::from(item.as_ref().is_ok_and(|item| item.markup));
            assert_eq!(format!("{item:?}"), expected, "seed {seed:#x}: {text}");
        }
        assert!(resumed > 1_000, "the markup of only {resumed} items was repaired");
        assert!(repaired > 2_000, "only {repaired} items were repaired");
    }
}
