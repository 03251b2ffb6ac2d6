//! Divides the XML of a record into parts of one colour.

use oaimend_repository::xml::XmlReader;

/// The kind of a part of XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlTokenKind {
    /// `<`, `>`, `=` and the like, and the blanks inside tags.
    Punctuation,
    /// The name of an element.
    TagName,
    /// The name of an attribute.
    AttributeName,
    /// The value of an attribute with its quotation marks.
    AttributeValue,
    /// Text and references.
    Text,
    /// A CDATA section.
    CData,
    /// A comment or processing instruction.
    Comment,
    /// A place between two tags without any character, where a line break may be shown.
    Break,
}

/// A part of XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlToken<'x> {
    /// The kind.
    pub kind: XmlTokenKind,
    /// The part as written; empty for [`XmlTokenKind::Break`].
    pub text: &'x str,
    /// The number of elements around it.
    pub depth: usize,
}

/// Divides XML. The parts are the whole text in order. XML that ends early is divided as far as its last whole tag; the
/// rest is text. Uses memory for about one part per three bytes.
pub(crate) fn xml_tokens(xml: &str) -> Vec<XmlToken<'_>> {
    let mut tokens = Tokens::default();
    let mut reader = XmlReader::of_part(xml);
    let (mut event_start, mut part_start) = (0, 0);
    while let Ok(Some(_)) = reader.read() {
        let end = reader.span().end;
        let is_markup = xml.get(event_start..end).is_some_and(|event| event.starts_with('<'));
        // A text and its references are one part, so that a browser orders text of both directions correctly.
        if !is_markup && tokens.list.last().is_some_and(|last| last.kind == XmlTokenKind::Text) {
            tokens.list.pop();
        } else {
            part_start = event_start;
        }
        tokens.depth = reader.depth();
        tokens.add(xml.get(part_start..end).unwrap_or_default());
        event_start = end;
    }
    tokens.push(XmlTokenKind::Text, xml.get(event_start..).unwrap_or_default());
    tokens.list
}

#[derive(Default)]
struct Tokens<'x> {
    list: Vec<XmlToken<'x>>,
    depth: usize,
    /// Whether the last event was a tag or comment.
    is_after_markup: bool,
    is_after_start: bool,
}

impl<'x> Tokens<'x> {
    fn add(&mut self, raw: &'x str) {
        if raw.is_empty() {
            // The end of an element that has only one tag.
            return;
        }
        let (is_cdata, is_end) = (raw.starts_with("<![CDATA["), raw.starts_with("</"));
        let is_comment = raw.starts_with("<!") || raw.starts_with("<?");
        let is_markup = raw.starts_with('<') && !is_cdata;
        // The end tag of an empty element stays on the line of its start tag.
        let is_empty_element = self.is_after_start && is_end;
        if is_markup && self.is_after_markup && !is_empty_element {
            self.push(XmlTokenKind::Break, "");
        }
        if is_cdata {
            self.push(XmlTokenKind::CData, raw);
        } else if is_comment {
            self.push(XmlTokenKind::Comment, raw);
        } else if is_markup {
            self.add_tag(raw, if is_end { "</" } else { "<" });
        } else {
            self.push(XmlTokenKind::Text, raw);
        }
        self.is_after_start = is_markup && !is_comment && !is_end && !raw.ends_with("/>");
        self.is_after_markup = is_markup;
    }

    fn push(&mut self, kind: XmlTokenKind, text: &'x str) {
        if !text.is_empty() || kind == XmlTokenKind::Break {
            self.list.push(XmlToken { kind, text, depth: self.depth });
        }
    }

    /// Divides a tag: its name, then attributes up to `>`.
    fn add_tag(&mut self, raw: &'x str, opening: &str) {
        let (open, rest) = raw.split_at_checked(opening.len()).unwrap_or((raw, ""));
        self.push(XmlTokenKind::Punctuation, open);
        let name_len =
            rest.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>').unwrap_or(rest.len());
        let (name, mut rest) = rest.split_at(name_len);
        self.push(XmlTokenKind::TagName, name);
        while !rest.is_empty() {
            let punctuation =
                rest.find(|c: char| !c.is_ascii_whitespace() && !"/>=".contains(c)).unwrap_or(rest.len());
            let (before, after) = rest.split_at(punctuation);
            self.push(XmlTokenKind::Punctuation, before);
            let Some(first) = after.chars().next() else { break };
            let (kind, len) = match first {
                '"' | '\'' => {
                    let inner = after.get(1..).unwrap_or_default();
                    (XmlTokenKind::AttributeValue, inner.find(first).map_or(after.len(), |len| len + 2))
                }
                _ => {
                    let ends_name = |c: char| c.is_ascii_whitespace() || "=/>\"'".contains(c);
                    (XmlTokenKind::AttributeName, after.find(ends_name).unwrap_or(after.len()))
                }
            };
            let (token, after) = after.split_at(len);
            self.push(kind, token);
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(xml: &str) -> String {
        let parts = xml_tokens(xml).into_iter().map(|token| {
            let letter = match token.kind {
                XmlTokenKind::Punctuation => 'p',
                XmlTokenKind::TagName => 'n',
                XmlTokenKind::AttributeName => 'a',
                XmlTokenKind::AttributeValue => 'v',
                XmlTokenKind::Text => 't',
                XmlTokenKind::CData => 'd',
                XmlTokenKind::Comment => 'c',
                XmlTokenKind::Break => return format!("\n{}", token.depth),
            };
            format!("{letter}[{}]", token.text)
        });
        parts.collect()
    }

    #[test]
    fn parts_have_their_kind() {
        for (xml, expected) in [
            ("<a:b c='>' d = \"'\"/>", "p[<]n[a:b]p[ ]a[c]p[=]v['>']p[ ]a[d]p[ = ]v[\"'\"]p[/>]"),
            ("<a>x &amp; y</a >", "p[<]n[a]p[>]t[x &amp; y]p[</]n[a]p[ >]"),
            ("<!-- <x> --><?p i?><![CDATA[<y>]]>", "c[<!-- <x> -->]\n0c[<?p i?>]d[<![CDATA[<y>]]>]"),
        ] {
            assert_eq!(shown(xml), expected, "{xml}");
        }
    }

    #[test]
    fn breaks_are_between_tags_that_touch() {
        assert_eq!(
            shown("<a><b/><c>x</c><d></d> <e></e></a>").replace(['p', 'n', 'a', 't'], ""),
            "[<][][>]\n1[<][b][/>]\n1[<][c][>][x][</][c][>]\n1[<][d][>][</][d][>][ ][<][e][>][</][e][>]\n0[</][][>]"
        );
    }

    #[test]
    fn the_parts_are_the_whole_text() {
        let whole = "<a b='1' c><!-- x --><é>t&#9;</é><![CDATA[]]></z></a><a b=\"<\">&<<b\n/ c='";
        for (end, _) in whole.char_indices() {
            let xml = &whole[..end];
            assert_eq!(xml_tokens(xml).iter().map(|token| token.text).collect::<String>(), xml);
        }
    }
}
