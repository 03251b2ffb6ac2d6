//! A list without its records, for records whose JSON is known.

use memchr::memmem;
use std::ops::Range;

const RECORD: &[u8] = b"<record>";
const RECORD_END: &[u8] = b"</record>";

/// Divides a response with a list: what is around its records, and the place of these, from the first to the last one.
///
/// `None` if there are none, or if something around them could hide a tag: a comment, CDATA or a processing instruction.
/// Then the response must be read as a whole.
pub fn divide_list(xml: &[u8]) -> Option<(Vec<u8>, Range<usize>)> {
    let start = memmem::find(xml, RECORD)?;
    let end = memmem::rfind(xml, RECORD_END)? + RECORD_END.len();
    let (head, tail) = (xml.get(..start)?, xml.get(end..)?);
    let declaration = head.strip_prefix(b"<?xml").unwrap_or(head);
    // A tag in a comment is after its start and before its end.
    let has_one_of =
        |part, marks: &[&str]| marks.iter().any(|mark| memmem::find(part, mark.as_bytes()).is_some());
    let may_hide =
        has_one_of(declaration, &["<!", "<?"]) || has_one_of(tail, &["<!", "<?", "-->", "]]>", "?>"]);
    (start < end && !may_hide).then(|| ([head, tail].concat(), start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(xml: &str) -> Option<(String, &str)> {
        let (frame, records) = divide_list(xml.as_bytes())?;
        Some((String::from_utf8(frame).expect("UTF-8"), &xml[records]))
    }

    #[test]
    fn only_visible_tags_divide_a_list() {
        let records = "<record><a/><!-- b --></record>\n<record/><record><![CDATA[<record>]]></record>";
        let (head, tail) = ("<?xml version='1.0'?>\n<l>", "<resumptionToken>t</resumptionToken></l>");
        let divide = |head: &str, tail: &str| divided(&format!("{head}{records}{tail}")).is_some();
        assert_eq!(divided(&format!("{head}{records}{tail}")), Some((format!("{head}{tail}"), records)));
        assert!(!divide("<l><!-- <record> -->", tail) && !divide("<?x?><l>", tail));
        assert!(!divide(head, "<!-- </record> --></l>") && !divide(head, "<![CDATA[</record>]]></l>"));
        assert!(!divide(head, "<?x </record>?></l>"));
        for none in ["", "<l/>", "<record>", "</record><record>", "</record>"] {
            assert_eq!(divided(none), None, "{none}");
        }
    }
}
