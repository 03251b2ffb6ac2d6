//! The title of a record, for links to it.

use crate::record::{Text, language_tag, shorten};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Longest title of a link, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// Deepest element that is read, in elements.
const DEPTH_MAX: usize = 100;

/// The text of the first `title` element inside `metadata`, on one line, at most 300 bytes. `None` if there is none, or
/// if the XML before its end is not well-formed.
///
/// It reads no further than necessary: a page shows the titles of up to 1,000 records.
pub fn first_title(xml: &str) -> Option<Text> {
    let mut reader = Reader::from_str(xml);
    // The languages of the elements around the current place, and whether it is inside `metadata`.
    let (mut languages, mut is_metadata): (Vec<Option<String>>, bool) = (Vec::new(), false);
    let mut title: Option<(usize, Text)> = None;
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => {
                let language = language_of(&tag).or_else(|| languages.last().cloned().flatten());
                let (depth, local) = (languages.len(), tag.local_name());
                is_metadata |= depth == 1 && local.as_ref() == "metadata";
                if is_metadata && title.is_none() && local.as_ref() == "title" {
                    title = Some((depth, Text { language: language.clone(), ..Text::default() }));
                }
                if depth == DEPTH_MAX {
                    return None;
                }
                languages.push(language);
            }
            Event::End(_) => {
                languages.pop();
                if let Some((_, text)) = title.take_if(|(depth, _)| *depth == languages.len())
                    && let Some(text) = on_one_line(text)
                {
                    return Some(text);
                }
                if is_metadata && languages.len() == 1 {
                    return None;
                }
            }
            Event::Text(text) => add(&mut title, &text),
            Event::CData(text) => add(&mut title, &text),
            Event::GeneralRef(name) => {
                let number = name.resolve_char_ref().ok()?.map(String::from);
                let named = || quick_xml::escape::resolve_xml_entity(&name).map(str::to_owned);
                add(&mut title, &number.or_else(named)?);
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn language_of(tag: &BytesStart<'_>) -> Option<String> {
    let language = tag.try_get_attribute("xml:lang").ok()??;
    language_tag(&language.normalized_value(XmlVersion::Implicit1_0).ok()?)
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

    fn title(metadata: &str) -> Option<(String, Option<String>)> {
        let xml = format!(
            "<record><header><identifier>a&amp;<![CDATA[<title>x</title>]]></identifier></header>\
             <metadata>{metadata}</metadata><about><title>about</title></about></record>"
        );
        first_title(&xml).map(|text| (text.value, text.language))
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
        assert_eq!(first_title("<record><metadata><title>cut"), None);
        assert_eq!(first_title(&format!("<record><metadata>{}<title>a</title>", "<a>".repeat(1_000))), None);
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
        let xml = format!("<record><metadata><title>{}</title></metadata></record>", "é ".repeat(1_000_000));
        let text = first_title(&xml).expect("it has a title");
        assert!(text.value.len() <= TITLE_BYTES_MAX && text.left_out_bytes > 0, "{}", text.value.len());
    }
}
