//! A list without its records, for records whose JSON is known.

use memchr::memmem;
use regex::bytes::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Longest text around the records of a list, in bytes. Only that of a source with long arguments is longer.
const AROUND_BYTES_MAX: usize = 16 << 10;

/// The start tag of a list.
static LIST: LazyLock<Regex> = LazyLock::new(|| {
    let attribute = r#"\s+[^\s=<>"'/]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*')"#;
    Regex::new(&format!(r"^<ListRecords(?:{attribute})*\s*>")).expect("a regular expression")
});
/// Everything after the last record.
static LIST_END: LazyLock<Regex> = LazyLock::new(|| {
    let token = "<resumptionToken[^<>]*(?:/>|>[^<>]*</resumptionToken>)";
    Regex::new(&format!(r"^\s*(?:{token}\s*)?</ListRecords>\s*</OAI-PMH>\s*$")).expect("a regular expression")
});

/// Divides a response with a list: what is around its records, and the place of everything between the start tag of the
/// list and the end of the last record.
///
/// `None` if a part around them is unusual, such as a comment, which could hide tags. Then the response must be read as a
/// whole. The response is well-formed.
pub fn divide_list(xml: &[u8]) -> Option<(Vec<u8>, Range<usize>)> {
    let list = memmem::find(xml, b"<ListRecords")?;
    let (before, from_list) = xml.split_at_checked(list)?;
    // The search does not read a long tag further.
    let tag = LIST.find(from_list.get(..AROUND_BYTES_MAX).unwrap_or(from_list))?;
    let start = list + tag.end();
    let last = memmem::rfind(xml, b"</record")?;
    let end = last + memchr::memchr(b'>', xml.get(last..)?)? + 1;
    let (head, tail) = (xml.get(..start)?, xml.get(end..)?);
    if start > end || head.len() + tail.len() > AROUND_BYTES_MAX {
        return None;
    }
    let declaration = before.strip_prefix(b"<?xml").unwrap_or(before);
    let may_hide = ["<!", "<?"].iter().any(|mark| memmem::find(declaration, mark.as_bytes()).is_some());
    (!may_hide && LIST_END.is_match(tail)).then(|| ([head, tail].concat(), start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(xml: &str) -> Option<(String, &str)> {
        let (frame, records) = divide_list(xml.as_bytes())?;
        Some((String::from_utf8(frame).expect("UTF-8"), &xml[records]))
    }

    #[test]
    fn all_records_are_divided_from_the_text_around_them() {
        let records = [
            "<record/><record><a/><!-- b --></record>",
            "\n<record xmlns:q='u'><a/></record>\n<record><![CDATA[</ListRecords>]]></record >",
            "<record><metadata><resumptionToken>x</resumptionToken></metadata></record>",
            "<record><metadata><ListRecords><record></record></ListRecords></metadata></record>",
        ];
        let heads = [
            "<?xml version='1.0'?>\n<OAI-PMH><ListRecords>",
            "<OAI-PMH><ListRecords xmlns:a = 'b' c=\"'\" >",
        ];
        let tails = [
            "<resumptionToken a='b'>t</resumptionToken></ListRecords></OAI-PMH>\n",
            "\n<resumptionToken/></ListRecords>\n</OAI-PMH>",
            "</ListRecords></OAI-PMH>",
        ];
        for (head, tail) in heads.iter().flat_map(|head| tails.iter().map(move |tail| (head, tail))) {
            for records in records {
                let xml = format!("{head}{records}{tail}");
                assert_eq!(divided(&xml), Some((format!("{head}{tail}"), records)), "{xml}");
            }
        }
    }

    #[test]
    fn unusual_responses_are_not_divided() {
        let (head, record, tail) =
            ("<OAI-PMH><ListRecords>", "<record></record>", "</ListRecords></OAI-PMH>");
        let long = "x".repeat(AROUND_BYTES_MAX);
        for unusual in [
            String::new(),
            format!("{head}{tail}"),
            format!("{head}{record}"),
            format!("<OAI-PMH><!-- <ListRecords> --><ListRecords>{record}{tail}"),
            format!("<?xml?><?x <ListRecords> ?>{head}{record}{tail}"),
            format!("<OAI-PMH><ListRecords a='>'>{record}{tail}"),
            format!("<OAI-PMH><ListRecords a='>{record}{tail}"),
            format!("<OAI-PMH><o:ListRecords>{record}</o:ListRecords></OAI-PMH>"),
            format!("{head}{record}<!-- </record> -->{tail}"),
            format!("{head}<o:record><record></record></o:record>{tail}"),
            format!("{head}{record}<![CDATA[</record>]]>{tail}"),
            format!("{head}{record}{tail}<!-- </record></ListRecords></OAI-PMH> -->"),
            format!("{head}{record}text{tail}"),
            format!("<OAI-PMH><responseDate>{long}</responseDate><ListRecords>{record}{tail}"),
            format!("{head}{record}<resumptionToken>{long}</resumptionToken>{tail}"),
        ] {
            assert_eq!(divided(&unusual), None, "{unusual}");
        }
    }
}
