//! The title of a record, for links to it.

use oaimend_record::{Text, WorkDescription, language_tag, shorten};
use oaimend_repository::RecordView;
use oaimend_repository::xml::{StartTag, XmlEvent};

/// Longest title of a link, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// Deepest element that is read, in elements.
const DEPTH_MAX: usize = 100;

/// The first title of a work, on one line, at most 300 bytes.
pub fn title_of(work: &WorkDescription) -> Option<Text> {
    on_one_line(work.core.titles.first()?.clone())
}

/// The text of the first `title` element inside `metadata`, on one line, at most 300 bytes. `None` if there is none, or
/// if the XML before its end is not well-formed.
///
/// For formats without a crosswalk. It reads no further than necessary: a page shows the titles of up to 1,000 records.
pub fn first_title(record: &RecordView<'_>) -> Option<Text> {
    let mut reader = record.content();
    let (mut open, mut is_metadata) = (vec![record.root()], false);
    let mut title: Option<(usize, Text)> = None;
    loop {
        match (reader.read().ok()??, reader.depth()) {
            (XmlEvent::Start(_), DEPTH_MAX) => return None,
            (XmlEvent::Start(tag), depth) => {
                open.push(tag);
                is_metadata |= depth == 1 && tag.local_name() == "metadata";
                if is_metadata && title.is_none() && tag.local_name() == "title" {
                    let language = open.iter().rev().find_map(language_of);
                    title = Some((depth, Text { language, ..Text::default() }));
                }
            }
            (XmlEvent::End(_), depth) => {
                open.pop();
                if let Some((_, text)) = title.take_if(|(of_title, _)| *of_title == depth)
                    && let Some(text) = on_one_line(text)
                {
                    return Some(text);
                }
                if is_metadata && depth == 1 {
                    return None;
                }
            }
            (XmlEvent::Text(text), _) => add(&mut title, &text.resolve().ok()?),
            _ => {}
        }
    }
}

fn language_of(tag: &StartTag<'_>) -> Option<String> {
    language_tag(&tag.attribute("xml:lang").ok()??)
}

/// Adds characters to a title. It keeps twice as many as a link shows, because blanks are removed later.
fn add(title: &mut Option<(usize, Text)>, characters: &str) {
    if let Some((_, text)) = title {
        let space = (2 * TITLE_BYTES_MAX).saturating_sub(text.value.len());
        let (kept, left_out_bytes) = shorten(characters, space);
        text.value.push_str(kept);
        text.left_out_bytes += left_out_bytes;
    }
}

/// The title with one space in place of each run of blanks; `None` if it is empty.
fn on_one_line(text: Text) -> Option<Text> {
    let line = text.value.split_whitespace().collect::<Vec<_>>().join(" ");
    let (kept, left_out_bytes) = shorten(&line, TITLE_BYTES_MAX);
    let left_out_bytes = text.left_out_bytes + left_out_bytes;
    (!kept.is_empty()).then(|| Text { value: kept.to_owned(), language: text.language, left_out_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title_of(xml: &str) -> Option<Text> {
        first_title(&RecordView::read(xml)?)
    }

    fn title(metadata: &str) -> Option<(String, Option<String>)> {
        let xml = format!(
            "<record><header><identifier>a&amp;<![CDATA[<title>x</title>]]></identifier></header>\
             <metadata>{metadata}</metadata><about><title>about</title></about></record>"
        );
        title_of(&xml).map(|text| (text.value, text.language))
    }

    #[test]
    fn the_first_title_with_text_counts() {
        for (metadata, expected) in [
            (
                "<dc><dc:creator>A</dc:creator><dc:title>One\n  line</dc:title><dc:title>b</dc:title></dc>",
                "One line",
            ),
            (
                "<dc><title> </title><title/><title>a &amp; b &#x263a;<![CDATA[<c>]]></title></dc>",
                "a & b ☺<c>",
            ),
            ("<mods><titleInfo><title>In <i>italics</i></title></titleInfo></mods>", "In italics"),
        ] {
            assert_eq!(title(metadata), Some((expected.to_owned(), None)), "{metadata}");
        }
        for metadata in [
            "",
            "<dc/>",
            "<dc><title/></dc>",
            "<dc><subtitle>a</subtitle></dc>",
            "<dc><title>&x;</title></dc>",
        ] {
            assert_eq!(title(metadata), None, "{metadata}");
        }
        let cut = |metadata: &str| title_of(&format!("<record><header></header><metadata>{metadata}"));
        assert_eq!(cut("<a></a><title>cut"), None);
        assert_eq!(cut(&format!("{}<title>a</title>", "<a>".repeat(900))), None);
    }

    #[test]
    fn the_language_of_the_nearest_element_counts() {
        let language = |metadata| title(metadata).and_then(|(_, language)| language);
        assert_eq!(language("<dc xml:lang='ger'><title>a</title></dc>").as_deref(), Some("de"));
        assert_eq!(language("<dc xml:lang='ger'><title xml:lang='fr'>a</title></dc>").as_deref(), Some("fr"));
        assert_eq!(language("<dc><x xml:lang='fr'/><title>a</title></dc>"), None);
    }

    #[test]
    fn long_titles_are_shortened() {
        let xml = format!(
            "<record><header></header><metadata><title>{}</title></metadata></record>",
            "é ".repeat(1_000_000)
        );
        let text = title_of(&xml).expect("it has a title");
        assert!(text.value.len() <= TITLE_BYTES_MAX && text.left_out_bytes > 0, "{}", text.value.len());
    }
}
