//! The entities that a document type declaration defines as plain text.
//!
//! The prolog reads the declaration before the root, the pass over characters those inside an item.
//!
//! Only the internal subset is read. An entity is plain text if its value has neither markup nor references
//! to other entities, so its text never grows when it is inserted. Parameter entities and entities with an
//! external identifier (`SYSTEM`, `PUBLIC`, `NDATA`) are never read. Character references in a value stay as
//! they are, except those of `<` and `&`: XML reads the result of these as markup (section 4.4.5, appendix D).

use crate::lex::names::{
    Reference, blanks, is_blank, is_legal_char, name_span, numeric_reference, reference, trim,
};
use crate::lex::search::{count_read, memchr, memmem};

/// Names and texts of entities, sorted by name. A text is legal in an element; quotes and `>` in it are not
/// escaped.
pub(crate) type Entities = [(Vec<u8>, Vec<u8>)];

/// Maximum number of entities that are read in one response or one item.
const ENTITIES_MAX: usize = 4096;

/// Entities that are read from one declaration after the other.
#[derive(Debug, Default)]
pub(crate) struct DeclaredEntities {
    sorted: Vec<(Vec<u8>, Vec<u8>)>,
    /// All entities and all bytes of text that were declared, also those that another one replaced.
    declared: usize,
    text_bytes: usize,
}

impl DeclaredEntities {
    /// The entities so far.
    pub(crate) fn entities(&self) -> &Entities {
        &self.sorted
    }

    pub(crate) fn into_entities(self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.sorted
    }

    /// Reads a whole declaration, `<!DOCTYPE` to `>`. Its entities replace earlier ones with the same names.
    /// All texts together have at most `text_bytes_max` bytes; further entities count as undefined.
    pub(crate) fn read(&mut self, doctype: &[u8], text_bytes_max: usize) {
        count_read(doctype.len());
        let mut found: Vec<(&[u8], Option<&[u8]>)> = Vec::new();
        for declaration in declarations(doctype) {
            let Some((name, value)) = read_entity(declaration) else { continue };
            let text = value.filter(|value| is_plain_text(value));
            let text_bytes = text.map_or(0, <[u8]>::len);
            if self.declared >= ENTITIES_MAX || self.text_bytes + text_bytes > text_bytes_max {
                break;
            }
            self.declared += 1;
            self.text_bytes += text_bytes;
            found.push((name, text));
        }
        if found.is_empty() {
            return;
        }
        // The first declaration of a name is the binding one (section 4.2), also if it is not plain text.
        found.sort_by_key(|(name, _)| *name);
        found.dedup_by_key(|(name, _)| *name);
        let is_new = |name: &[u8]| found.binary_search_by_key(&name, |(found, _)| found).is_err();
        self.sorted.retain(|(name, _)| is_new(name));
        let texts = found.iter().filter_map(|(name, text)| Some((name.to_vec(), text.as_ref()?.to_vec())));
        self.sorted.extend(texts);
        self.sorted.sort();
    }
}

/// The text of the entity with this name.
pub(crate) fn entity_text<'e>(entities: &'e Entities, name: &[u8]) -> Option<&'e [u8]> {
    let found = entities.binary_search_by(|(known, _)| known.as_slice().cmp(name)).ok()?;
    entities.get(found).map(|(_, text)| text.as_slice())
}

/// The markup declarations of the internal subset, each from `<!` to `>`.
fn declarations(doctype: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = subset_start(doctype).unwrap_or(doctype.len());
    std::iter::from_fn(move || {
        loop {
            let rest = doctype.get(at..)?;
            let len = match rest {
                [] | [b']', ..] => return None,
                [b'<', b'!', b'-', b'-', ..] => 4 + memmem::find(rest.get(4..)?, b"-->")? + 3,
                [b'<', b'?', ..] => memmem::find(rest, b"?>")? + 2,
                [b'<', b'!', ..] => {
                    let len = outside_quotes(rest, b'>')? + 1;
                    at += len;
                    return rest.get(..len);
                }
                // White space, or a reference to a parameter entity.
                _ => 1,
            };
            at += len;
        }
    })
}

fn subset_start(doctype: &[u8]) -> Option<usize> {
    outside_quotes(doctype, b'[').map(|open| open + 1)
}

/// The position of `byte` outside of quoted values.
fn outside_quotes(text: &[u8], byte: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        match *text.get(at)? {
            found if found == byte => return Some(at),
            quote @ (b'"' | b'\'') => at += 1 + memchr(quote, text.get(at + 1..)?)?,
            _ => {}
        }
        at += 1;
    }
}

/// The name of a general entity, and its value if it has no external identifier. `None` if the declaration
/// is not one of a general entity.
fn read_entity(declaration: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let rest = declaration.strip_prefix(b"<!ENTITY")?;
    let gap = blanks(rest);
    if gap == 0 {
        return None;
    }
    let rest = rest.get(gap..)?;
    let (name, definition) = rest.split_at_checked(name_span(rest))?;
    let is_entity = !name.is_empty() && definition.first().is_some_and(|&byte| is_blank(byte));
    let definition = trim(definition.strip_suffix(b">")?);
    let value = match definition.split_first() {
        Some((quote @ (b'"' | b'\''), value)) => {
            value.strip_suffix(&[*quote]).filter(|value| !value.contains(quote))
        }
        _ => None,
    };
    is_entity.then_some((name, value))
}

/// Whether the value of an entity is text that stays text wherever it is inserted.
fn is_plain_text(value: &[u8]) -> bool {
    let is_reference = |at: usize| {
        let rest = value.get(at..).unwrap_or_default();
        let Reference::Legal(len) = reference(rest) else { return false };
        let code = rest.get(1..len - 1).and_then(numeric_reference).flatten();
        code.is_some_and(|code| code != u32::from(b'<') && code != u32::from(b'&'))
    };
    let is_text = |(at, c): (usize, char)| match c {
        '<' | '%' => false,
        '&' => is_reference(at),
        _ => is_legal_char(c.into()),
    };
    std::str::from_utf8(value).is_ok_and(|value| value.char_indices().all(is_text))
}

#[cfg(test)]
mod tests {
    use super::{DeclaredEntities, entity_text};

    fn text_of(subset: &str, name: &str) -> Option<String> {
        let mut declared = DeclaredEntities::default();
        declared.read(format!("<!DOCTYPE a SYSTEM \"[\" [{subset}]>").as_bytes(), 64);
        let text = entity_text(declared.entities(), name.as_bytes())?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    #[test]
    fn plain_text_is_read() {
        for (declared, text) in [
            ("<!ENTITY a \"Town Archive\">", "Town Archive"),
            ("<!ENTITY\n a\t'say \"hi\"'  >", "say \"hi\""),
            ("<!ENTITY a \"two\n lines\">", "two\n lines"),
            ("<!ENTITY a \"caf&#233; &#x2F;\">", "caf&#233; &#x2F;"),
            ("<!ENTITY a \"\">", ""),
            ("<!ENTITY b SYSTEM 'b'><!ENTITY % c 'd'> %c; <!ENTITY a \"x>y]\">", "x>y]"),
            ("<!ATTLIST a b CDATA \"<!ENTITY a 'no'>\"><!ENTITY a \"yes\">", "yes"),
            ("<!-- <!ENTITY a 'no'> --><!ENTITY a \"yes\">", "yes"),
            ("<?p <!ENTITY a 'no'> ?><!ENTITY a \"yes\">", "yes"),
            ("<!ENTITY a \"first\"><!ENTITY a \"second\">", "first"),
        ] {
            assert_eq!(text_of(declared, "a").as_deref(), Some(text), "{declared}");
        }
    }

    #[test]
    fn everything_else_is_undefined() {
        for declared in [
            "<!ENTITY a \"&b;\"><!ENTITY b \"x\">",
            "<!ENTITY a \"Smith &amp; Sons\">",
            "<!ENTITY a \"<b/>\">",
            "<!ENTITY a \"&#60;b/>\">",
            "<!ENTITY a \"&#x26;b;\">",
            "<!ENTITY a \"&#1;\">",
            "<!ENTITY a \"\u{1}\">",
            "<!ENTITY a \"\u{ffff}\">",
            "<!ENTITY a \"%b;\">",
            "<!ENTITY % a \"x\">",
            "<!ENTITY a SYSTEM \"x\">",
            "<!ENTITY a PUBLIC \"x\" \"y\">",
            "<!ENTITY a SYSTEM \"x\" NDATA gif>",
            "<!ENTITY a SYSTEM \"x\"><!ENTITY a \"second\">",
            "<!ENTITY a \"x\" \"y\">",
            "<!ENTITYa \"x\">",
            "<!entity a \"x\">",
            "<!ELEMENT a \"x\">",
            "<!-- <!ENTITY a \"x\"> -->",
            "]<!ENTITY a \"after the subset\">",
            "<!ENTITY b \"0123456789012345678901234567890123456789\"><!ENTITY a \"0123456789012345678901234\">",
        ] {
            assert_eq!(text_of(declared, "a"), None, "{declared}");
        }
    }

    #[test]
    fn a_later_declaration_replaces_names_of_an_earlier_one() {
        let mut declared = DeclaredEntities::default();
        declared.read(b"<!DOCTYPE a [<!ENTITY x '1'><!ENTITY y '2'><!ENTITY z '3'>]>", 64);
        declared.read(b"<!DOCTYPE a [<!ENTITY y '4'><!ENTITY z SYSTEM 'z'>]>", 64);
        declared.read(b"<!DOCTYPE a SYSTEM 'b'>", 64);
        let texts = ["x", "y", "z"].map(|name| entity_text(declared.entities(), name.as_bytes()));
        assert_eq!(texts, [Some(&b"1"[..]), Some(&b"4"[..]), None]);
    }
}
