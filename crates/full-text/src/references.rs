//! The works that the list of references in a text names. Pure.
//!
//! The text of a PDF has lines as they are printed, so an identifier may go on after a blank, in the next line, or on the next
//! page, and the header and footer of a page are between its lines. This file reads only what is certain: explicit identifiers
//! after the last heading of a list of references that cannot continue, and that are not printed elsewhere too.

use oaimend_resolver::{ContentIdentifier, IdentifierKind};
use std::collections::HashMap;

/// Maximum number of identifiers that are read from a text.
pub const REFERENCES_MAX: usize = 1_000;
/// Longest identifier, in bytes. Those of real works are shorter.
const VALUE_BYTES_MAX: usize = 256;
/// Maximum length of all identifiers of a text together, in bytes. A thousand references need half of it.
pub const REFERENCES_BYTES_MAX: usize = 64 << 10;
/// Longest word that is read as an identifier, in bytes, as for the identifiers of records.
const WORD_BYTES_MAX: usize = 2_048;
/// Longest line that can be a heading, in bytes.
const HEADING_BYTES_MAX: usize = 100;

/// The headings of a list of references, in lower case. docs/how-to/full-texts.md lists them.
const HEADINGS: &[&str] = &[
    "references",
    "references and notes",
    "references cited",
    "list of references",
    "reference list",
    "cited references",
    "bibliography",
    "bibliographic references",
    "literature",
    "literature cited",
    "cited literature",
    "works cited",
    "literatur",
    "literaturverzeichnis",
    "quellenverzeichnis",
    "bibliographie",
    "références",
    "références bibliographiques",
    "referencias",
    "referencias bibliográficas",
    "bibliografía",
    "referências",
    "referências bibliográficas",
    "bibliografia",
    "riferimenti",
    "riferimenti bibliografici",
    "literatuur",
    "referenties",
    "referenser",
    "referanser",
    "litteratur",
    "kirjallisuus",
    "lähteet",
    "literatura",
    "kaynakça",
    "kaynaklar",
    "литература",
    "список литературы",
    "参考文献",
    "参考文獻",
    "참고문헌",
];

/// The kinds of identifiers that count: those that only one work has.
const KINDS: [IdentifierKind; 5] = [
    IdentifierKind::Doi,
    IdentifierKind::Handle,
    IdentifierKind::Urn,
    IdentifierKind::Arxiv,
    IdentifierKind::Pmid,
];

/// The labels that can be words of their own, before the identifier.
const LABELS: [&str; 5] = ["doi", "arxiv", "hdl", "pmid", "handle"];

/// The brackets of identifiers, opening and closing.
const BRACKETS: [(char, char); 4] = [('(', ')'), ('[', ']'), ('<', '>'), ('{', '}')];
/// The ends of lines and pages in a text. Each is one byte.
const LINE_ENDS: [char; 2] = ['\n', PAGE_END];
const PAGE_END: char = '\u{c}';

/// The identifiers in the list of references of a text, in its order and without repetition, at most [`REFERENCES_MAX`] and
/// [`REFERENCES_BYTES_MAX`]. Without a heading there are none.
///
/// A text is as hostile as its PDF, so the time is linear in its length, and no memory but that of the result depends on it.
pub fn references_in(text: &str) -> Vec<ContentIdentifier> {
    let Some((before, list)) = split_at_list(text) else { return Vec::new() };
    let mut found = Found::default();
    let mut lines = lines_in(list).peekable();
    while let Some(line) = lines.next() {
        let next_line = lines.peek().map_or(Next::Nothing, Next::Line);
        for (word, next_word) in words_in(line.text) {
            for identifier in identifiers_in_word(word, next_word.map_or(next_line, Next::Word)) {
                found.add(identifier, line.page);
            }
        }
    }
    if !found.references.is_empty() {
        for (word, _) in before.split(LINE_ENDS).flat_map(words_in) {
            identifiers_in_word(word, Next::Nothing).iter().for_each(|identifier| found.remove(identifier));
        }
    }
    found.references.into_iter().filter(|found| !found.is_elsewhere).map(|found| found.identifier).collect()
}

/// The references that were found, in their order.
#[derive(Default)]
struct Found {
    references: Vec<Reference>,
    places: HashMap<ContentIdentifier, usize>,
    bytes: usize,
}

struct Reference {
    identifier: ContentIdentifier,
    /// The page of the list that has it first.
    page: usize,
    /// Whether it is printed before the list or on another page of it, as the identifier of the article itself is in a footer.
    is_elsewhere: bool,
}

impl Found {
    fn add(&mut self, identifier: ContentIdentifier, page: usize) {
        if let Some(&at) = self.places.get(&identifier) {
            let known = &mut self.references[at];
            known.is_elsewhere |= known.page != page;
        } else if self.has_room_for(&identifier) {
            self.bytes += identifier.value.len();
            self.places.insert(identifier.clone(), self.references.len());
            self.references.push(Reference { identifier, page, is_elsewhere: false });
        }
    }

    fn has_room_for(&self, identifier: &ContentIdentifier) -> bool {
        let bytes = identifier.value.len();
        KINDS.contains(&identifier.kind)
            && bytes <= VALUE_BYTES_MAX
            && self.references.len() < REFERENCES_MAX
            && self.bytes + bytes <= REFERENCES_BYTES_MAX
    }

    fn remove(&mut self, identifier: &ContentIdentifier) {
        if let Some(&at) = self.places.get(identifier) {
            self.references[at].is_elsewhere = true;
        }
    }
}

/// The text before the last heading of a list of references, and the text after it.
fn split_at_list(text: &str) -> Option<(&str, &str)> {
    let mut end = text.len();
    for line in text.rsplit(LINE_ENDS) {
        if is_heading(line.trim()) {
            return Some((&text[..end - line.len()], &text[end..]));
        }
        end = end.saturating_sub(line.len() + 1);
    }
    None
}

/// A line that is not empty.
#[derive(Debug)]
struct Line<'t> {
    text: &'t str,
    page: usize,
    /// Whether it is the first one after an empty line or the end of a page.
    follows_gap: bool,
}

fn lines_in(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut follows_gap = false;
    let pages = text.split(PAGE_END).enumerate();
    let lines = pages.flat_map(|(page, text)| text.split('\n').map(move |line| (page, line.trim())));
    lines.filter_map(move |(page, text)| {
        if text.is_empty() {
            follows_gap = true;
            return None;
        }
        Some(Line { text, page, follows_gap: std::mem::take(&mut follows_gap) })
    })
}

/// Whether a line is the heading of a list of references. A number may precede it, and a colon may follow.
fn is_heading(line: &str) -> bool {
    if line.is_empty() || line.len() > HEADING_BYTES_MAX {
        return false;
    }
    let is_number =
        |character: char| character.is_ascii_digit() || matches!(character, '.' | ')' | ' ' | '\u{a7}');
    let roman = |text: &str| {
        let (number, rest) = text.split_once('.')?;
        let is_roman = !number.is_empty() && number.chars().all(|c| matches!(c, 'I' | 'V' | 'X' | 'L'));
        is_roman.then(|| rest.trim_start().to_owned())
    };
    let text = line.trim_start_matches(is_number);
    let text = roman(text).unwrap_or_else(|| text.to_owned());
    // Headings with wide letters come with blanks: `R E F E R E N C E S`.
    let letters: Vec<&str> = text.split(' ').collect();
    let is_spaced = letters.len() > 4 && letters.iter().all(|part| part.chars().count() == 1);
    let text = if is_spaced { letters.concat() } else { text };
    let text = text.trim_end_matches([':', '.']).trim().to_lowercase();
    HEADINGS.contains(&text.as_str())
}

/// A word, with the label before it.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    label: Option<&'static str>,
}

/// The words of a line, each with the next one in the line.
fn words_in(line: &str) -> impl Iterator<Item = (Word<'_>, Option<&str>)> {
    let (mut words, mut before) = (line.split_whitespace().peekable(), None);
    std::iter::from_fn(move || {
        let text = words.next()?;
        let label = before.replace(text).and_then(label_in);
        Some((Word { text, label }, words.peek().copied()))
    })
}

/// The text after a word.
#[derive(Clone, Copy)]
enum Next<'t> {
    /// A word of the same line.
    Word(&'t str),
    /// Another line.
    Line(&'t Line<'t>),
    Nothing,
}

/// The identifiers in a word that end there.
fn identifiers_in_word(word: Word<'_>, next: Next<'_>) -> Vec<ContentIdentifier> {
    if word.text.len() > WORD_BYTES_MAX {
        return Vec::new();
    }
    let text = word.text.trim_start_matches(['(', '[', '<', '{', '"', '\'', '\u{201c}', ',', ';']);
    let Some(start) = start_of(text, word.label) else { return Vec::new() };
    let (name, ending) = split_ending(start.name);
    // Dashes and ligatures of a typesetter are no part of an identifier, so the text does not have the right one.
    if !name.is_ascii() || is_cut(name) {
        return Vec::new();
    }
    let mut found = ContentIdentifier::read(&format!("{}{name}", start.label));
    found.retain(|identifier| match next {
        // These have a fixed length.
        Next::Word(_) if matches!(identifier.kind, IdentifierKind::Arxiv | IdentifierKind::Pmid) => true,
        Next::Word(next) => !may_continue_after_blank(ending, next),
        Next::Line(next) => !may_continue_in_line(ending, next),
        Next::Nothing => true,
    });
    found
}

/// A word that begins as an identifier does.
struct Start<'t> {
    /// The label that it needs to be read.
    label: &'static str,
    name: &'t str,
}

/// The label that a whole word is, such as `doi:`.
fn label_in(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches(['(', '[', '<']).trim_end_matches(':');
    LABELS.into_iter().find(|label| word.eq_ignore_ascii_case(label))
}

fn start_of<'t>(word: &'t str, label: Option<&str>) -> Option<Start<'t>> {
    let lower = word.to_ascii_lowercase();
    let is_start =
        ["doi:", "doi.org/", "http://", "https://", "urn:", "hdl:", "hdl.handle.net/", "arxiv:", "pmid:"]
            .iter()
            .any(|start| lower.starts_with(start) && word.len() > start.len());
    // A DOI needs no label: nothing else begins so.
    let is_doi = lower.starts_with("10.") && lower.contains('/');
    match label {
        _ if is_start || is_doi => Some(Start { label: "", name: word }),
        Some("doi") => Some(Start { label: "doi:", name: word }),
        Some("arxiv") => Some(Start { label: "arxiv:", name: word }),
        Some("hdl" | "handle") => Some(Start { label: "hdl:", name: word }),
        Some("pmid") => Some(Start { label: "pmid:", name: word }),
        _ => None,
    }
}

/// An identifier without the punctuation that ends it. A closing bracket belongs to it if it contains the opening one.
fn split_ending(word: &str) -> (&str, &str) {
    // What a name has more of opening brackets than of closing ones. It is counted once, because a word can be all brackets.
    let mut surplus = BRACKETS.map(|(opening, closing)| {
        let count = |character: char| word.matches(character).count().cast_signed();
        count(opening) - count(closing)
    });
    let mut name = word;
    while let Some(last) = name.chars().next_back() {
        if let Some(at) = BRACKETS.iter().position(|(_, closing)| *closing == last) {
            if surplus[at] >= 0 {
                break;
            }
            surplus[at] += 1;
        } else if !matches!(last, '.' | ',' | ';' | ':' | '"' | '\'' | '\u{201d}' | '\u{3002}') {
            break;
        }
        name = &name[..name.len() - last.len_utf8()];
    }
    (name, &word[name.len()..])
}

/// Whether an identifier does not end so.
fn is_cut(name: &str) -> bool {
    name.ends_with(['-', '/', '_', '(', '=', '%']) || name.matches('(').count() > name.matches(')').count()
}

/// Whether an identifier may go on after a blank, which printers leave after the points in it: `10.1016/j. jcp.2004`.
fn may_continue_after_blank(ending: &str, next: &str) -> bool {
    matches!(ending, "." | ":")
        && next.starts_with(|first: char| first.is_lowercase() || first.is_ascii_digit())
}

/// Whether an identifier at the end of a line may go on in the next one.
fn may_continue_in_line(ending: &str, next: &Line<'_>) -> bool {
    if begins_entry(next.text) {
        return false;
    }
    // After punctuation or an empty line, a word that starts like a name or a sentence is no part of an identifier.
    let first = next.text.split_whitespace().next().unwrap_or_default();
    let mut letters = first.chars();
    let is_capitalised = letters.next().is_some_and(char::is_uppercase)
        && letters
            .next()
            .is_some_and(|second| second.is_lowercase() || matches!(second, '.' | '\'' | '\u{2019}'))
        && first.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | ',' | '\'' | '\u{2019}' | '-' | ':'));
    let is_separate = !ending.is_empty() || next.follows_gap;
    !(is_capitalised && is_separate && next.text.contains(char::is_whitespace))
}

/// Whether a line begins another entry of the list: `[12]`, `12.`, `(12)`, or a bullet.
fn begins_entry(line: &str) -> bool {
    let inside = |open: char, close: char| {
        line.strip_prefix(open).and_then(|rest| rest.split_once(close)).is_some_and(|(inside, rest)| {
            !inside.is_empty()
                && inside.len() <= 12
                && inside.chars().all(char::is_alphanumeric)
                && rest.starts_with(char::is_whitespace)
        })
    };
    let number = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = line.len() - rest.len();
        (1..=4).contains(&digits) && rest.strip_prefix(['.', ')']).is_some_and(|rest| rest.starts_with(' '))
    };
    inside('[', ']') || inside('(', ')') || number() || line.starts_with(['\u{2022}', '\u{2013}', '\u{25cf}'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_base::clock::uptime;
    use std::time::Duration;

    fn found(list: &str) -> Vec<String> {
        let text = format!("An article\n10.1000/before\nReferences\n{list}");
        references_in(&text)
            .into_iter()
            .map(|found| format!("{} {}", found.kind.name(), found.value))
            .collect()
    }

    #[test]
    fn explicit_identifiers_after_the_heading_are_references() {
        let list = "[1] A. Author. A title. doi:10.1000/A1.\n\
            [2] B. Author (2001). https://doi.org/10.1000/b(2)2. Seen in 2002.\n\
            [3] C. Author, arXiv preprint arXiv:1706.03762v5, 2017.\n\
            [4] D. Author, doi: 10.1000/d.4; PMID: 12345678.\n\
            [5] E. Author, <https://hdl.handle.net/2027/5>, urn:nbn:de:101:1-201102033592\n\
            [6] F. Author, https://files.example.org/paper.pdf, ISBN 978-3-16-148410-0, 1706.03763\n\
            [7] Again 10.1000/a1 and (10.1000/g7).";
        let expected = [
            "doi 10.1000/a1",
            "doi 10.1000/b(2)2",
            "arxiv 1706.03762",
            "doi 10.1000/d.4",
            "pmid 12345678",
            "handle 2027/5",
            "urn urn:nbn:de:101:1-201102033592",
            "doi 10.1000/g7",
        ];
        assert_eq!(found(list), expected);
    }

    #[test]
    fn nothing_is_read_without_a_heading_and_the_last_one_counts() {
        assert!(references_in("Introduction\n[1] doi:10.1000/1.\n").is_empty());
        let text = "References\n10.1000/contents\n\n7. REFERENCES:\n10.1000/7\n\nThe references are old.\n";
        let values: Vec<_> = references_in(text).into_iter().map(|found| found.value).collect();
        assert_eq!(values, ["10.1000/7"]);
    }

    #[test]
    fn headings_come_in_many_spellings() {
        for heading in [
            "References",
            "REFERENCES",
            "6 References",
            "VII. References",
            "R E F E R E N C E S",
            "Literaturverzeichnis",
            "Références bibliographiques",
            "Список литературы",
            "参考文献",
            "5. Bibliografía",
            "Literature cited:",
        ] {
            assert!(is_heading(heading), "{heading}");
        }
        for line in
            ["", "References to earlier work are rare.", "See references", "Preferences", "7", "12. 2001"]
        {
            assert!(!is_heading(line), "{line}");
        }
        assert!(!is_heading(&"R ".repeat(1_000_000)));
    }

    #[test]
    fn joins_over_lines_are_not_guessed() {
        for (list, expected) in [
            // The next line may go on.
            ("[1] doi:10.1000/abc-\ndef. Seen.", &[][..]),
            ("[1] doi:10.1000/\nabc.", &[]),
            ("[1] doi:10.1000/abc\ndef.", &[]),
            ("[1] doi:10.1000/abc.\ndef.", &[]),
            ("[1] doi:10.1000/abc\n12", &[]),
            ("[1] doi:10.1000/abc(1\n2)", &[]),
            ("[1] doi:10.1000/abc\nSmith", &[]),
            ("[1] doi:10.1000/abc-", &[]),
            ("[1] doi:10.1000/s\u{2013}12 next", &[]),
            // So may the next column or page.
            ("[1] doi:10.1016/j.jcp\n\n.2004.11.026", &[]),
            ("[1] doi:10.1016/j.jcp\n\n\u{c}2004.11.026", &[]),
            ("[1] doi:10.1016/j.jcp\n\njcp.2004.11.026 Seen", &[]),
            // So may the next word.
            ("[1] doi:10.1016/j. jcp.2004, x", &[]),
            ("[1] doi:10.1016/j.jcp. 2004.11, x", &[]),
            ("[1] doi:10.1016/j.jcp- 2004.11, x", &[]),
            ("[1] doi:10.1016/j.jcp(20 04), x", &[]),
            // It cannot.
            ("[1] doi:10.1000/abc. Seen, x", &["doi 10.1000/abc"]),
            ("[1] doi:10.1000/abc, seen, x", &["doi 10.1000/abc"]),
            ("[1] arXiv:1706.03762. 2017, x", &["arxiv 1706.03762"]),
            ("doi:10.1000/abc\n\n\u{c}[2] B.", &["doi 10.1000/abc"]),
            ("[1] doi:10.1000/abc\n[2] B.", &["doi 10.1000/abc"]),
            ("[1] doi:10.1000/abc\n2. B.", &["doi 10.1000/abc"]),
            ("doi:10.1000/abc.\nSmith, J. A title.", &["doi 10.1000/abc"]),
            ("doi:10.1000/abc.\nJ. Smith. A title.", &["doi 10.1000/abc"]),
            ("doi:10.1000/abc\n\nSmith, J.", &["doi 10.1000/abc"]),
            ("doi:10.1000/abc", &["doi 10.1000/abc"]),
            ("doi:10.1000/abc, 2001\nx", &["doi 10.1000/abc"]),
        ] {
            assert_eq!(found(list), expected, "{list:?}");
        }
    }

    /// The footer of a page is no reference, so an article does not cite itself.
    #[test]
    fn identifiers_that_are_printed_elsewhere_are_no_references() {
        let footer = "https://doi.org/10.1371/journal.pone.0123456 June 1, 2020";
        let list =
            "References\n[1] doi:10.1000/one, x\n[2] doi:10.1000/two, https://doi.org/10.1000/two, x\n";
        let values =
            |text: &str| references_in(text).into_iter().map(|found| found.value).collect::<Vec<_>>();
        let expected = ["10.1000/one", "10.1000/two"];
        assert_eq!(values(&format!("An article\n{footer} 1/2\n\u{c}{list}{footer} 2/2\n\u{c}")), expected);
        // The heading can be on the first page, and the identifier at the end of a line.
        let text = format!("{list}{footer} 1/2\n\u{c}[3] x\n{footer} 2/2\n\u{c}");
        assert_eq!(values(&text), expected);
        assert_eq!(values(&format!("doi:10.1000/self\nx\n{list}doi:10.1000/self")), expected);
    }

    #[test]
    fn the_number_of_references_is_limited() {
        let list: String = (0..5_000).map(|at| format!("[{at}] 10.1000/{at}, x\n")).collect();
        assert_eq!(found(&list).len(), REFERENCES_MAX);
    }

    #[test]
    fn the_bytes_of_references_are_limited() {
        let of_length = |at: usize, bytes: usize| {
            let width = bytes - "10.1000/".len();
            format!("10.1000/{at:0width$}")
        };
        let list =
            format!("{}, x\n{}, x\n", of_length(1, VALUE_BYTES_MAX), of_length(2, VALUE_BYTES_MAX + 1));
        let values = found(&list);
        assert_eq!(values, [format!("doi {}", of_length(1, VALUE_BYTES_MAX))]);
        let list: String = (0..900).map(|at| format!("{}, x\n", of_length(at, VALUE_BYTES_MAX))).collect();
        assert_eq!(found(&list).len(), REFERENCES_BYTES_MAX / VALUE_BYTES_MAX);
    }

    #[test]
    fn strange_texts_do_no_harm() {
        for text in [
            "References\n(((((",
            "References\ndoi:",
            "References\ndoi: ",
            "References\n10./",
            "References\n\u{0}10.1\u{0}/a",
        ] {
            assert!(references_in(text).is_empty(), "{text:?}");
        }
        let long = format!("References\n10.1000/{}", "(".repeat(1 << 20));
        assert!(references_in(&long).is_empty());
    }

    /// Words of brackets alone, for which each bracket was counted in the whole word again. The time of a test depends on
    /// the machine, so it is compared with that of a text of the same length.
    #[test]
    fn words_of_brackets_take_no_longer_than_others() {
        let text =
            |word: &str| format!("References\n{}", format!("10.1000/{} ", word.repeat(1_900)).repeat(300));
        let time = |text: &str| {
            let start = uptime();
            let found = references_in(text).len();
            (found, uptime() - start)
        };
        let ((plain, usual), (brackets, long)) = (time(&text("a")), time(&text(")")));
        assert_eq!((plain, brackets), (0, 0));
        assert!(long < usual * 20 + Duration::from_millis(100), "{long:?} instead of {usual:?}");
    }

    #[test]
    fn brackets_that_an_identifier_does_not_open_end_it() {
        for (word, name) in [
            ("10.1/a(b)", "10.1/a(b)"),
            ("10.1/a(b)).", "10.1/a(b)"),
            ("10.1/a(b)c]>.", "10.1/a(b)c"),
            ("10.1/a<b>;2-c>", "10.1/a<b>;2-c"),
            ("10.1/a((b)", "10.1/a((b)"),
            (")))", ""),
        ] {
            assert_eq!(split_ending(word), (name, &word[name.len()..]), "{word}");
        }
    }
}
