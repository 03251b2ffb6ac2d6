//! The part of the validator that reads comments, CDATA sections and processing instructions.
//!
//! These run up to an end mark. The validator calls it at each `<!` and `<?`, and again with more text.

use crate::catalog::QuarantineReason;
use crate::lex::index::Mark;
use crate::lex::lexeme::marks;
use crate::lex::names::{is_blank, is_local_name, name_span};
use crate::lex::search::memmem;
use crate::lex::window::ItemWindow;
use crate::validate::envelope_names::EnvelopeNames;
use crate::validate::state::{Construct, Inside, Progress, Validation, Validator, defect};

/// Reads a comment, CDATA section or processing instruction from its opening mark.
pub(crate) fn open_construct(
    validator: &mut Validator,
    rest: &[u8],
    window: ItemWindow<'_>,
    offset: usize,
) -> Result<Progress, Validation> {
    let begins = |mark: &[u8]| {
        if rest.starts_with(mark) {
            Ok(true)
        } else if mark.starts_with(rest) {
            Err(Validation::NeedMore)
        } else {
            Ok(false)
        }
    };
    let start = offset as u32;
    if begins(b"<![CDATA[")? {
        if !validator.in_payload() {
            match &mut validator.inside {
                Inside::Field { plain, .. } => *plain = false,
                _ => return Err(defect(offset, QuarantineReason::IllegalEnvelope)),
            }
        }
        validator.construct = Construct::Cdata(start);
        validator.search = offset + 9;
    } else if begins(b"<!--")? {
        mark_field_not_plain(validator);
        validator.construct = Construct::Comment(start);
        validator.search = offset + 4;
    } else if rest.starts_with(b"<?") {
        mark_field_not_plain(validator);
        let body = rest.get(2..).unwrap_or_default();
        let target = name_span(body);
        if target + 2 > body.len() && !window.is_last {
            return Err(Validation::NeedMore);
        }
        if !is_legal_target(body, target) {
            return Err(defect(offset, QuarantineReason::MismatchedTags));
        }
        validator.construct = Construct::Instruction(start);
        validator.search = offset + 2;
    } else {
        return Err(defect(offset, QuarantineReason::MalformedTag));
    }
    close_construct(validator, window)?;
    Ok(Progress::Next)
}

/// A field that contains a comment or instruction is not plain text.
fn mark_field_not_plain(validator: &mut Validator) {
    if let Inside::Field { plain, .. } = &mut validator.inside {
        *plain = false;
    }
}

/// Searches the end of the open construct from `validator.search`.
pub(crate) fn close_construct(validator: &mut Validator, window: ItemWindow<'_>) -> Result<(), Validation> {
    let (start, end_mark): (u32, &[u8]) = match validator.construct {
        Construct::None => return Ok(()),
        Construct::Cdata(start) => (start, b"]]>"),
        Construct::Comment(start) => (start, b"--"),
        Construct::Instruction(start) => (start, b"?>"),
    };
    let from = window.item_at + validator.search;
    let start = start as usize;
    let kind = match validator.construct {
        Construct::Cdata(_) => 0,
        Construct::Comment(_) => 1,
        Construct::Instruction(_) | Construct::None => 2,
    };
    let base = validator.window_offset;
    let ahead =
        validator.section_ends.get_mut(kind).and_then(|ends| ends.find(window.text, base, from, end_mark));
    let Some(found) = ahead.map(|end| end - from) else {
        if window.is_last && !validator.is_oversized {
            // The rest of the text need not be read again for each such mark.
            return Err(defect(start, QuarantineReason::Truncated));
        }
        validator.search =
            validator.search.max((window.text.len() - window.item_at).saturating_sub(end_mark.len() - 1));
        return Err(Validation::NeedMore);
    };
    let mut end = validator.search + found + end_mark.len();
    if let Some(at) = boundary_inside(validator, window, window.item_at + end) {
        let bad = bad_inside(validator, window, window.item_at + at);
        return Err(bad.unwrap_or(defect(at, QuarantineReason::RecordTooLong)));
    }
    let body = window.text.get(window.item_at + start..window.item_at + end).unwrap_or_default();
    let legal = match validator.construct {
        Construct::Comment(_) => match window.text.get(window.item_at + end) {
            None if window.is_last => false,
            None => {
                validator.search = end - 2;
                return Err(Validation::NeedMore);
            }
            Some(&byte) => {
                end += 1;
                byte == b'>'
            }
        },
        _ => true,
    };
    if !legal {
        let at = validator.search + found;
        let bad = bad_inside(validator, window, window.item_at + at);
        return Err(bad.unwrap_or(defect(at, QuarantineReason::MismatchedTags)));
    }
    if swallows_boundary(body, &validator.names) {
        if validator.names.repairs_torn_sections {
            return Err(defect(start, QuarantineReason::MismatchedTags));
        }
        validator.facts.swallows_items = true;
    }
    // Parts of an oversized item are emitted early. They are repaired while their context is known.
    if validator.is_oversized
        && let Some(bad) = bad_inside(validator, window, window.item_at + end)
    {
        return Err(bad);
    }
    validator.construct = Construct::None;
    validator.lexeme_end = end;
    Ok(())
}

/// The window ends inside a comment, CDATA section or instruction. The available part must be legal text.
pub(crate) fn window_end_inside(validator: &mut Validator, window: ItemWindow<'_>) -> Validation {
    loop {
        let (end, bad) = match validator.index.next(window.window()) {
            Mark::At(_) => continue,
            Mark::Bad(at) => (at, true),
            Mark::WindowEnd(end) => (end, false),
        };
        validator.at = end - window.item_at;
        return match boundary_inside(validator, window, end) {
            Some(at) => defect(at, QuarantineReason::RecordTooLong),
            None if bad => defect(validator.at, QuarantineReason::MismatchedTags),
            None if window.is_last => defect(validator.at, QuarantineReason::Truncated),
            None => Validation::NeedMore,
        };
    }
}

/// The end tag of an item in the open section, before `end`.
fn boundary_inside(validator: &Validator, window: ItemWindow<'_>, end: usize) -> Option<usize> {
    let (Construct::Cdata(start) | Construct::Comment(start) | Construct::Instruction(start)) =
        validator.construct
    else {
        return None;
    };
    let body = window.text.get(window.item_at + start as usize..end).unwrap_or_default();
    validator.boundary_in_oversized(body).map(|at| start as usize + at)
}

/// An illegal byte in the open section, before `end`.
fn bad_inside(validator: &mut Validator, window: ItemWindow<'_>, end: usize) -> Option<Validation> {
    loop {
        match validator.index.next(window.window()) {
            Mark::At(at) if at < end => {}
            Mark::Bad(at) if at < end => {
                return Some(defect(at - window.item_at, QuarantineReason::MismatchedTags));
            }
            _ => break,
        }
    }
    validator.index.seek(end);
    None
}

/// Whether the target of an instruction is a legal name other than `xml`. A blank or the end mark must
/// follow it.
fn is_legal_target(body: &[u8], len: usize) -> bool {
    let target = body.get(..len).unwrap_or_default();
    let after = body.get(len..).unwrap_or_default();
    is_local_name(target)
        && !target.eq_ignore_ascii_case(b"xml")
        && (after.first().is_some_and(|&byte| is_blank(byte)) || after.starts_with(b"?>"))
}

/// Whether a closed section contains a boundary and its own opening mark.
pub(crate) fn swallows_boundary(section: &[u8], names: &EnvelopeNames) -> bool {
    let Some((mark, _)) = marks(section) else { return false };
    memmem::find(section.get(mark.len()..).unwrap_or_default(), mark).is_some()
        && names.contains_boundary(section)
}
