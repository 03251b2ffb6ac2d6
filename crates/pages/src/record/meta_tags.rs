//! Meta tags of record pages: `citation_*` of Highwire Press, which Google Scholar and Zotero read, and `DC.*`.

use super::limits::{META_BYTES_MAX, META_VALUES_MAX};
use oaimend_record::WorkDescription;
use oaimend_record::WorkType;
use oaimend_record::shorten;
use oaimend_record::{Text, on_one_line};

/// A meta tag of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaTag {
    /// The name.
    pub name: &'static str,
    /// The content, at most 4 KiB. It is not escaped.
    pub content: String,
    /// The language tag of the content.
    pub language: Option<String>,
}

/// Longest description for lists of search results, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 300;

/// The meta tags of the page of a work, at most 200 of each name. `page_url` is absolute.
pub(crate) fn meta_tags(work: &WorkDescription, page_url: &str) -> Vec<MetaTag> {
    let mut tags = Tags(Vec::new());
    if let Some(text) = work.core.descriptions.first() {
        let (start, left_out) = shorten(&text.value, DESCRIPTION_BYTES_MAX);
        let content = on_one_line(start) + if left_out > 0 { "…" } else { "" };
        tags.add("description", content, text.language.clone());
    }
    add_citation(&mut tags, work, page_url);
    add_dublin_core(&mut tags, work);
    tags.0
}

struct Tags(Vec<MetaTag>);

impl Tags {
    fn add(&mut self, name: &'static str, content: String, language: Option<String>) {
        if self.0.iter().rev().take_while(|tag| tag.name == name).count() < META_VALUES_MAX {
            self.0.push(MetaTag { name, content, language });
        }
    }

    fn add_text(&mut self, name: &'static str, text: &Text) {
        let (content, _) = shorten(&text.value, META_BYTES_MAX);
        self.add(name, on_one_line(content), text.language.clone());
    }

    fn add_texts(&mut self, name: &'static str, texts: &[Text]) {
        for text in texts {
            self.add_text(name, text);
        }
    }
}

fn add_citation(tags: &mut Tags, work: &WorkDescription, page_url: &str) {
    let core = &work.core;
    // Google Scholar reads one title.
    if let Some(title) = core.titles.first() {
        tags.add_text("citation_title", title);
    }
    tags.add_texts("citation_author", &core.creators);
    if let Some(date) = work.published {
        tags.add("citation_publication_date", date.in_citation(), None);
    }
    if let Some(doi) = work.links.doi() {
        tags.add("citation_doi", doi.to_owned(), None);
    }
    if let Some(language) = work.language() {
        tags.add("citation_language", language, None);
    }
    tags.add_texts("citation_keywords", &core.subjects);
    let publisher = match work.work_type {
        WorkType::Thesis => "citation_dissertation_institution",
        WorkType::Report => "citation_technical_report_institution",
        _ => "citation_publisher",
    };
    if let Some(name) = core.publishers.first() {
        tags.add_text(publisher, name);
    }
    tags.add("citation_abstract_html_url", page_url.to_owned(), None);
    if let Some(pdf) = work.links.pdf() {
        tags.add("citation_pdf_url", pdf.url.clone(), None);
    }
}

fn add_dublin_core(tags: &mut Tags, work: &WorkDescription) {
    let core = &work.core;
    for (name, texts) in [
        ("DC.title", &core.titles),
        ("DC.creator", &core.creators),
        ("DC.contributor", &core.contributors),
        ("DC.date", &core.dates),
        ("DC.description", &core.descriptions),
        ("DC.subject", &core.subjects),
        ("DC.publisher", &core.publishers),
        ("DC.type", &core.types),
        ("DC.format", &core.formats),
        ("DC.language", &core.languages),
        ("DC.rights", &core.rights),
        ("DC.identifier", &core.identifiers),
        ("DC.source", &core.sources),
        ("DC.relation", &core.relations),
    ] {
        tags.add_texts(name, texts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_record::RecordDocument;

    fn work(fields: &str) -> WorkDescription {
        let xml = format!(
            "<record><metadata><a xmlns:dc='http://purl.org/dc/elements/1.1/'>{}</a></metadata></record>",
            fields.replace("</", "</dc:").replace('<', "<dc:").replace("<dc:/dc:", "</dc:")
        );
        WorkDescription::of(&RecordDocument::read(&xml).expect("the record is well-formed"))
    }

    fn tags(fields: &str) -> Vec<(&'static str, String)> {
        let tags = meta_tags(&work(fields), "https://e.org/x/record/1");
        tags.into_iter().map(|tag| (tag.name, tag.content)).collect()
    }

    #[test]
    fn citations_have_the_names_of_highwire() {
        let tags = tags(
            "<title>A\n b</title><title>C</title><creator>D, E</creator><creator>F, G</creator><date>2014-05-06</date>\
             <identifier>doi:10.1000/1</identifier><relation>https://e.org/1.pdf</relation><language>ger</language>\
             <subject>s</subject><publisher>P</publisher><type>article</type>",
        );
        let citation: Vec<(&str, &str)> = tags
            .iter()
            .filter_map(|(name, content)| Some((name.strip_prefix("citation_")?, content.as_str())))
            .collect();
        assert_eq!(
            citation,
            [
                ("title", "A b"),
                ("author", "D, E"),
                ("author", "F, G"),
                ("publication_date", "2014/05/06"),
                ("doi", "10.1000/1"),
                ("language", "de"),
                ("keywords", "s"),
                ("publisher", "P"),
                ("abstract_html_url", "https://e.org/x/record/1"),
                ("pdf_url", "https://e.org/1.pdf"),
            ]
        );
        assert!(tags.contains(&("DC.title", "C".to_owned())), "{tags:?}");
    }

    #[test]
    fn the_institution_depends_on_the_type() {
        for (work_type, name) in [
            ("doctoralThesis", "citation_dissertation_institution"),
            ("technical report", "citation_technical_report_institution"),
            ("dataset", "citation_publisher"),
        ] {
            let tags = tags(&format!("<type>{work_type}</type><publisher>P</publisher>"));
            let found = tags.iter().filter(|(name, content)| content == "P" && name.starts_with("citation"));
            assert_eq!(found.map(|(name, _)| *name).collect::<Vec<_>>(), [name]);
        }
    }

    #[test]
    fn tags_are_limited_in_number_and_length() {
        let tags = tags(&format!(
            "{}<description>{}</description>",
            "<creator>x</creator>".repeat(META_VALUES_MAX + 1),
            "é ".repeat(META_BYTES_MAX)
        ));
        assert_eq!(tags.iter().filter(|(name, _)| *name == "citation_author").count(), META_VALUES_MAX);
        assert!(tags.iter().all(|(_, content)| content.len() <= META_BYTES_MAX));
        let description = tags.iter().find(|(name, _)| *name == "description").map(|(_, content)| content);
        assert!(
            description.is_some_and(|content| content.len() < 310 && content.ends_with('…')),
            "{description:?}"
        );
    }

    #[test]
    fn a_record_without_fields_has_its_url_only() {
        assert_eq!(tags(""), [("citation_abstract_html_url", "https://e.org/x/record/1".to_owned())]);
    }
}
