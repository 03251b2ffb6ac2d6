//! OpenSearch 1.1, by which browsers offer a site as a search engine: its description, and suggestions while a person types.

use super::address::{ResultList, SUGGESTIONS_PATH};
use super::form::SearchForm;
use oaimend_html::layout::DESCRIPTION_PATH;
use oaimend_oai::escape;
use serde_json::{Value, json};

/// Longest short name, in characters (OpenSearch 1.1, "ShortName").
const SHORT_NAME_CHARS_MAX: usize = 16;
/// Longest description, in characters (OpenSearch 1.1, "Description").
const DESCRIPTION_CHARS_MAX: usize = 1_024;

/// The description document. `description` says what is searched, and `public_url` has no slash at its end.
pub fn open_search_description(site_name: &str, description: &str, public_url: &str) -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">\n",
    );
    for (name, text, chars_max) in [
        ("ShortName", site_name, SHORT_NAME_CHARS_MAX),
        ("Description", description, DESCRIPTION_CHARS_MAX),
        ("InputEncoding", "UTF-8", usize::MAX),
        ("OutputEncoding", "UTF-8", usize::MAX),
    ] {
        xml.push_str(&format!("<{name}>"));
        escape(&text.chars().take(chars_max).collect::<String>(), &mut xml);
        xml.push_str(&format!("</{name}>\n"));
    }
    let path = ResultList::Search.path();
    let results = [SearchForm::Html, SearchForm::Atom, SearchForm::Json].map(|form| {
        let media_type = form.content_type().split(';').next().unwrap_or_default();
        let ending = form.ending();
        ("results", media_type, format!("{path}{ending}?q={{searchTerms}}&page={{startPage?}}"))
    });
    let others = [
        ("suggestions", SUGGESTIONS_TYPE, format!("{SUGGESTIONS_PATH}?q={{searchTerms}}")),
        ("self", DESCRIPTION_TYPE, DESCRIPTION_PATH.to_owned()),
    ];
    for (relation, media_type, template) in results.into_iter().chain(others) {
        xml.push_str(&format!("<Url type=\"{media_type}\" rel=\"{relation}\" template=\""));
        escape(&format!("{public_url}{template}"), &mut xml);
        xml.push_str("\"/>\n");
    }
    xml.push_str("</OpenSearchDescription>\n");
    xml
}

/// The media type of the description.
const DESCRIPTION_TYPE: &str = "application/opensearchdescription+xml";
/// The media type of suggestions.
const SUGGESTIONS_TYPE: &str = "application/x-suggestions+json";

/// The suggestions for the start of a query: texts, and what is said of each.
pub fn suggestions(query: &str, found: &[(String, String)]) -> Value {
    let texts = found.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>();
    let descriptions = found.iter().map(|(_, description)| description.as_str()).collect::<Vec<_>>();
    json!([query, texts, descriptions])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_urls_are_escaped() {
        let xml = open_search_description("The <long> name of a site", "Records & more", "https://e.org/a&b");
        for part in [
            "<ShortName>The &lt;long&gt; name </ShortName>",
            "<Description>Records &amp; more</Description>",
            "<Url type=\"text/html\" rel=\"results\" \
             template=\"https://e.org/a&amp;b/_search?q={searchTerms}&amp;page={startPage?}\"/>",
            "<Url type=\"application/x-suggestions+json\" rel=\"suggestions\" \
             template=\"https://e.org/a&amp;b/_search/suggest?q={searchTerms}\"/>",
        ] {
            assert!(xml.contains(part), "{part}: {xml}");
        }
        assert_eq!(
            suggestions("a", &[("ab".to_owned(), "2 records".to_owned())]).to_string(),
            "[\"a\",[\"ab\"],[\"2 records\"]]"
        );
    }
}
