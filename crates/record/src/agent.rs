//! The persons and organizations of a work, and their ORCIDs.

use crate::text::Text;

/// A creator or contributor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// The name on one line, without an identifier.
    pub name: Text,
    /// What it is.
    pub kind: AgentKind,
    /// The ORCID of a person.
    pub orcid: Option<Orcid>,
}

/// What a creator or contributor is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentKind {
    /// A person.
    Person,
    /// An organization or a conference.
    Organization,
    /// The format does not say it.
    #[default]
    Unknown,
}

/// An ORCID with a valid checksum, such as `0000-0002-1825-0097`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orcid(String);

/// The length of an ORCID, in bytes.
const ORCID_BYTES: usize = 19;

impl Orcid {
    /// The ORCID that a text is, alone or with one of the usual prefixes.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (before, orcid) = text.split_at_checked(text.len().checked_sub(ORCID_BYTES)?)?;
        let before = before.trim().to_ascii_lowercase();
        let is_prefix = [
            "",
            "orcid",
            "orcid:",
            "orcid id:",
            "orcid id",
            "orcid=",
            "(orcid)",
            "orcid.org/",
            "http://orcid.org/",
            "https://orcid.org/",
            "http://www.orcid.org/",
            "https://www.orcid.org/",
            "info:eu-repo/dai/orcid/",
            "urn:orcid:",
        ];
        (is_prefix.contains(&before.as_str()) && is_valid(orcid)).then(|| Self(orcid.to_ascii_uppercase()))
    }

    /// The URL that identifies the person.
    pub fn url(&self) -> String {
        format!("https://orcid.org/{}", self.0)
    }
}

/// Four groups of four digits. The last digit is a checksum (ISO 7064, MOD 11-2), with `X` for 10.
fn is_valid(orcid: &str) -> bool {
    let mut total = 0_u32;
    for (place, byte) in orcid.bytes().enumerate() {
        let digit = match (place, byte) {
            (4 | 9 | 14, b'-') => continue,
            (4 | 9 | 14, _) => return false,
            (_, b'0'..=b'9') => u32::from(byte - b'0'),
            (18, b'X' | b'x') => 10,
            _ => return false,
        };
        if place == ORCID_BYTES - 1 {
            return digit == (12 - total % 11) % 11;
        }
        total = (total + digit) * 2;
    }
    false
}

impl Agent {
    /// The agent that a text names. The text may contain an ORCID, such as `Doe, J. (ORCID: 0000-0002-1825-0097)`; if it
    /// is nothing else, the name is empty.
    pub(crate) fn read(text: &Text) -> Self {
        let text = text.on_one_line();
        let starts = text.value.match_indices("0000-").map(|(start, _)| start);
        let found = starts
            .chain(text.value.match_indices("0009-").map(|(start, _)| start))
            .find(|&start| text.value.get(start..start + ORCID_BYTES).is_some_and(is_valid));
        let Some(start) = found else { return Self { name: text, ..Self::default() } };
        let (before, rest) = text.value.split_at(start);
        let (orcid, after) = rest.split_at(ORCID_BYTES);
        let name = match (without_label(before), after.trim_start_matches([')', ']', ' ', ',', ';', '/'])) {
            (before, "") => before.to_owned(),
            ("", after) => after.to_owned(),
            // A text on both sides may be about more than one person.
            _ => return Self { name: text, ..Self::default() },
        };
        let orcid = Some(Orcid(orcid.to_ascii_uppercase()));
        Self { name: Text { value: name, ..text }, kind: AgentKind::Person, orcid }
    }
}

/// A text without what announces an ORCID at its end.
fn without_label(text: &str) -> &str {
    let labels = [
        "https://orcid.org/",
        "http://orcid.org/",
        "https://www.orcid.org/",
        "orcid.org/",
        "orcid id",
        "orcid",
    ];
    let mut rest = text.trim_end_matches([' ', ':', '=', '(', '[', ',', ';', ')']);
    while let Some(label) = labels.iter().find(|label| ends_with(rest, label)) {
        rest = rest.get(..rest.len() - label.len()).unwrap_or_default();
        rest = rest.trim_end_matches([' ', ':', '=', '(', '[', ',', ';', ')']);
    }
    rest
}

fn ends_with(text: &str, end: &str) -> bool {
    let start = text.len().checked_sub(end.len());
    start.and_then(|start| text.get(start..)).is_some_and(|rest| rest.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORCID: &str = "0000-0002-1825-0097";

    fn agent(text: &str) -> (String, Option<String>) {
        let agent = Agent::read(&Text { value: text.to_owned(), ..Text::default() });
        (agent.name.value, agent.orcid.map(|orcid| orcid.0))
    }

    #[test]
    fn an_orcid_is_no_part_of_a_name() {
        for text in [
            "Doe, J. (ORCID: 0000-0002-1825-0097)",
            "Doe, J. [0000-0002-1825-0097]",
            "Doe, J. (https://orcid.org/0000-0002-1825-0097)",
            "Doe, J.\n ORCID iD 0000-0002-1825-0097",
            "Doe, J.; orcid.org/0000-0002-1825-0097",
            "https://orcid.org/0000-0002-1825-0097 Doe, J.",
        ] {
            assert_eq!(agent(text), ("Doe, J.".to_owned(), Some(ORCID.to_owned())), "{text}");
        }
        for text in ["https://orcid.org/0000-0002-1825-0097", ORCID, "ORCID: 0000-0002-1825-0097"] {
            assert_eq!(agent(text), (String::new(), Some(ORCID.to_owned())), "{text}");
        }
        for text in ["Doe, J.", "Doe (0000-0002-1825-0098)", "A 0000-0002-1825-0097 B", "0000-"] {
            assert_eq!(agent(text), (text.to_owned(), None), "{text}");
        }
    }

    #[test]
    fn an_orcid_has_a_checksum() {
        for text in
            ["0000-0002-1694-233x", "(orcid)0000-0002-1694-233X", " HTTP://orcid.org/0000-0002-1694-233X"]
        {
            let url = "https://orcid.org/0000-0002-1694-233X";
            assert_eq!(Orcid::read(text).map(|orcid| orcid.url()).as_deref(), Some(url), "{text}");
        }
        for text in
            ["", "0000-0002-1694-2330", "0000 0002 1694 233X", "é00-0002-1694-233X", "x0000-0002-1694-233X"]
        {
            assert_eq!(Orcid::read(text), None, "{text}");
        }
    }
}
