//! Meta tags of record pages: `citation_*` of Highwire Press, which Google Scholar and Zotero read, `DC.*`, and `og:*` of
//! Open Graph, which messengers read for a preview.

use super::limits::META_BYTES_MAX;
use oaimend_record::{Text, WorkDescription, WorkType, on_one_line, shorten};

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

/// The meta tags of the page of a work, with all values of the record. `page_url` is absolute.
pub(crate) fn meta_tags(work: &WorkDescription, page_url: &str) -> Vec<MetaTag> {
    let mut tags = Tags(Vec::new());
    if let Some(content) = description(work) {
        let language = work.core.descriptions.first().and_then(|text| text.language.clone());
        tags.add("description", content, language);
    }
    add_citation(&mut tags, work, page_url);
    add_dublin_core(&mut tags, work);
    tags.0
}

/// The start of the abstract.
fn description(work: &WorkDescription) -> Option<String> {
    let (start, left_out) = shorten(&work.core.descriptions.first()?.value, DESCRIPTION_BYTES_MAX);
    Some(on_one_line(start) + if left_out > 0 { "…" } else { "" })
}

/// The tags of Open Graph, whose names are in the attribute `property`.
pub(crate) fn open_graph(work: &WorkDescription, page_url: &str) -> Vec<MetaTag> {
    let mut tags = Tags(Vec::new());
    // A page without a type is a `website` too. Zotero believes a named one more than the type of Dublin Core, so a dataset
    // would become a web page. Without both it takes any work for an article.
    let is_dataset = |text: &Text| text.value.eq_ignore_ascii_case("dataset");
    let kind = match work.work_type {
        WorkType::Book => Some("book"),
        WorkType::Article | WorkType::Chapter | WorkType::Report | WorkType::Thesis => Some("article"),
        WorkType::Dataset if work.core.types.iter().any(is_dataset) => None,
        _ => Some("website"),
    };
    match work.core.titles.first() {
        Some(title) => tags.add_text("og:title", title),
        None => tags.add("og:title", on_one_line(&work.identifier), None),
    }
    if let Some(kind) = kind {
        tags.add("og:type", kind.to_owned(), None);
    }
    tags.add("og:url", page_url.to_owned(), None);
    if let Some(content) = description(work) {
        tags.add("og:description", content, None);
    }
    tags.0
}

struct Tags(Vec<MetaTag>);

impl Tags {
    fn add(&mut self, name: &'static str, content: String, language: Option<String>) {
        self.0.push(MetaTag { name, content, language });
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
    for creator in &work.creators {
        tags.add_text("citation_author", &creator.name);
        if let Some(orcid) = &creator.orcid {
            tags.add("citation_author_orcid", orcid.url(), None);
        }
    }
    if let Some(date) = work.published {
        tags.add("citation_publication_date", date.in_citation(), None);
    }
    add_container(tags, work);
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
    if let Some(page) = work.links.full_texts.iter().find(|link| link.text_media_type().is_none()) {
        tags.add("citation_fulltext_html_url", page.url.clone(), None);
    }
}

fn add_container(tags: &mut Tags, work: &WorkDescription) {
    let container = &work.container;
    let title = match work.work_type {
        WorkType::Chapter => "citation_inbook_title",
        _ => "citation_journal_title",
    };
    for (name, value) in [
        (title, &container.title),
        ("citation_volume", &container.volume),
        ("citation_issue", &container.issue),
        ("citation_firstpage", &container.first_page),
        ("citation_lastpage", &container.last_page),
    ] {
        if let Some(value) = value {
            tags.add(name, value.clone(), None);
        }
    }
    for (name, values) in [("citation_issn", &container.issns), ("citation_isbn", &work.isbns)] {
        for value in values {
            tags.add(name, value.clone(), None);
        }
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
        ("DC.coverage", &core.coverages),
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
    fn tags_have_all_values_and_are_limited_in_length() {
        let tags = tags(&format!(
            "{}<description>{}</description>",
            "<creator>x</creator>".repeat(900),
            "é ".repeat(META_BYTES_MAX)
        ));
        assert_eq!(tags.iter().filter(|(name, _)| *name == "citation_author").count(), 900);
        assert!(tags.iter().all(|(_, content)| content.len() <= META_BYTES_MAX));
        let description = tags.iter().find(|(name, _)| *name == "description").map(|(_, content)| content);
        assert!(
            description.is_some_and(|content| content.len() < 310 && content.ends_with('…')),
            "{description:?}"
        );
    }

    #[test]
    fn journals_and_orcids_have_tags() {
        let tags = tags(
            "<creator>D, E (ORCID 0000-0002-1825-0097)</creator><source>Journal of X, 12(3), 45-67</source>\
             <source>0378-5955</source><identifier>urn:isbn:9783161484100</identifier>",
        );
        for (name, content) in [
            ("citation_author", "D, E"),
            ("citation_author_orcid", "https://orcid.org/0000-0002-1825-0097"),
            ("citation_journal_title", "Journal of X"),
            ("citation_volume", "12"),
            ("citation_issue", "3"),
            ("citation_firstpage", "45"),
            ("citation_lastpage", "67"),
            ("citation_issn", "0378-5955"),
            ("citation_isbn", "9783161484100"),
        ] {
            assert!(tags.contains(&(name, content.to_owned())), "{name} {tags:?}");
        }
    }

    #[test]
    fn a_preview_has_a_title_also_without_one_in_the_record() {
        let preview = |fields: &str| {
            let tags = open_graph(&work(fields), "https://e.org/1");
            tags.into_iter().map(|tag| format!("{}={}", tag.name, tag.content)).collect::<Vec<_>>()
        };
        let titled = preview("<title>A\nb</title><type>book</type><description>c</description>");
        assert_eq!(titled, ["og:title=A b", "og:type=book", "og:url=https://e.org/1", "og:description=c"]);
        assert_eq!(preview("<type>Dataset</type>")[..2], ["og:title=", "og:url=https://e.org/1"]);
        assert_eq!(preview("")[..2], ["og:title=", "og:type=website"]);
    }

    #[test]
    fn a_record_without_fields_has_its_url_only() {
        assert_eq!(tags(""), [("citation_abstract_html_url", "https://e.org/x/record/1".to_owned())]);
    }
}
