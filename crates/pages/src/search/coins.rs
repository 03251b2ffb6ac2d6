//! COinS: a work as a ContextObject of OpenURL (ANSI/NISO Z39.88-2004) in the `title` of a `span`. Reference managers such
//! as Zotero take several works from one page by it.

use super::results::SearchItem;
use oaimend_record::WorkType;
use url::form_urlencoded;

/// Maximum number of creators.
const CREATORS_MAX: usize = 50;

/// The ContextObject of a record in the key/encoded-value format, not escaped. `public_url` has no slash at its end.
pub(crate) fn context_object(item: &SearchItem, public_url: &str) -> String {
    let Kind { format, genre, title: title_key } = kind(item.work.work_type);
    let core = &item.work.core;
    let is_plain = format == "dc";
    let mut keys = form_urlencoded::Serializer::new(String::new());
    keys.append_pair("ctx_ver", "Z39.88-2004");
    keys.append_pair("rft_val_fmt", &format!("info:ofi/fmt:kev:mtx:{format}"));
    if let Some(doi) = item.work.links.doi() {
        keys.append_pair("rft_id", &format!("info:doi/{doi}"));
    }
    keys.append_pair("rft_id", &item.url(public_url));
    if let Some(genre) = genre {
        keys.append_pair(if is_plain { "rft.type" } else { "rft.genre" }, genre);
    }
    keys.append_pair(title_key, item.title_text());
    let creator = if is_plain { "rft.creator" } else { "rft.au" };
    for name in core.creators.iter().take(CREATORS_MAX) {
        keys.append_pair(creator, &name.value);
    }
    if let Some(date) = item.work.published {
        keys.append_pair("rft.date", &date.in_iso_8601());
    }
    let container = &item.work.container;
    let of_container = [
        (if format == "journal" { "rft.jtitle" } else { "rft.btitle" }, container.title.as_ref()),
        ("rft.volume", container.volume.as_ref()),
        ("rft.issue", container.issue.as_ref()),
        ("rft.spage", container.first_page.as_ref()),
        ("rft.epage", container.last_page.as_ref()),
        ("rft.issn", container.issns.first()),
        ("rft.isbn", item.work.isbns.first()),
    ];
    for (key, value) in of_container {
        if let Some(value) = value
            && title_key != key
            && !is_plain
        {
            keys.append_pair(key, value);
        }
    }
    if let Some(publisher) = core.publishers.first() {
        let key = match format {
            "dissertation" => "rft.inst",
            "dc" => "rft.publisher",
            _ => "rft.pub",
        };
        keys.append_pair(key, &publisher.value);
    }
    if let Some(language) = item.work.language() {
        keys.append_pair("rft.language", &language);
    }
    keys.finish()
}

/// How a type of works is expressed.
struct Kind {
    format: &'static str,
    genre: Option<&'static str>,
    /// The key of the title.
    title: &'static str,
}

/// The formats of the registry of OpenURL cover articles, books and theses. Other works use Dublin Core with the names
/// that Zotero has for types.
fn kind(work_type: WorkType) -> Kind {
    let dc = |genre| Kind { format: "dc", genre: Some(genre), title: "rft.title" };
    match work_type {
        WorkType::Article => Kind { format: "journal", genre: Some("article"), title: "rft.atitle" },
        WorkType::Thesis => Kind { format: "dissertation", genre: None, title: "rft.title" },
        WorkType::Book => Kind { format: "book", genre: Some("book"), title: "rft.btitle" },
        WorkType::Chapter => Kind { format: "book", genre: Some("bookitem"), title: "rft.atitle" },
        WorkType::Report => Kind { format: "book", genre: Some("report"), title: "rft.btitle" },
        WorkType::Dataset => dc("dataset"),
        WorkType::Software => dc("computerProgram"),
        WorkType::Image => dc("artwork"),
        WorkType::Video => dc("videoRecording"),
        WorkType::Audio => dc("audioRecording"),
        WorkType::Map => dc("map"),
        WorkType::Other => dc("document"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_record::{RecordDocument, WorkDescription};

    fn keys(fields: &str) -> Vec<(String, String)> {
        let xml = format!(
            "<record><header><identifier>oai:x:1</identifier></header><metadata>\
             <a xmlns='http://purl.org/dc/elements/1.1/'>{fields}</a></metadata></record>"
        );
        let work = WorkDescription::of(&RecordDocument::read(&xml).expect("the record is well-formed"));
        let item = SearchItem { repository: "x".to_owned(), work, ..SearchItem::default() };
        form_urlencoded::parse(context_object(&item, "https://e.org").as_bytes()).into_owned().collect()
    }

    #[test]
    fn articles_have_the_keys_of_journals() {
        let found = keys(
            "<creator>Berg, Anna</creator><creator>Ho&amp;lm</creator><date>2019-04-05</date><type>article</type>\
             <identifier>https://doi.org/10.1234/tides.7</identifier><publisher>P</publisher>\
             <source>Tides, 12(3), 45-67</source><source>0378-5955</source><language>en</language>",
        );
        let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(
            found,
            [
                ("ctx_ver", "Z39.88-2004"),
                ("rft_val_fmt", "info:ofi/fmt:kev:mtx:journal"),
                ("rft_id", "info:doi/10.1234/tides.7"),
                ("rft_id", "https://e.org/x/record/oai%3Ax%3A1"),
                ("rft.genre", "article"),
                ("rft.atitle", "oai:x:1"),
                ("rft.au", "Berg, Anna"),
                ("rft.au", "Ho&lm"),
                ("rft.date", "2019-04-05"),
                ("rft.jtitle", "Tides"),
                ("rft.volume", "12"),
                ("rft.issue", "3"),
                ("rft.spage", "45"),
                ("rft.epage", "67"),
                ("rft.issn", "0378-5955"),
                ("rft.pub", "P"),
                ("rft.language", "en"),
            ]
        );
    }

    #[test]
    fn works_without_a_format_of_openurl_use_dublin_core() {
        let found = keys("<type>dataset</type><creator>A</creator>");
        for (key, value) in
            [("rft_val_fmt", "info:ofi/fmt:kev:mtx:dc"), ("rft.type", "dataset"), ("rft.creator", "A")]
        {
            assert!(found.contains(&(key.to_owned(), value.to_owned())), "{key}: {found:?}");
        }
    }
}
