//! The pages that requests name. Pure: no I/O.

use super::record_form::RecordForm;
use oaimend_oai::path_segment::text_of;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

/// The overview of all repositories, as a request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverviewTarget {
    /// The repositories whose id or name contains this text; empty: all of them.
    pub filter: String,
    /// The page, from 1.
    pub page: usize,
}

impl Default for OverviewTarget {
    fn default() -> Self {
        Self { filter: String::new(), page: 1 }
    }
}

/// A record of a repository, as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordTarget {
    /// The repository id.
    pub repository: String,
    /// The identifier.
    pub identifier: String,
    /// The form that the ending of the path selects, or the argument `raw`; `None`: by `Accept`.
    pub form: Option<RecordForm>,
    /// The metadataPrefix, of the argument `raw` or `format`; `None`: the default one.
    pub format: Option<String>,
    /// Where a list of links continues, of the argument `after`.
    pub after: Option<String>,
}

/// Longest filter that is used, in characters.
const FILTER_CHARS_MAX: usize = 100;

impl OverviewTarget {
    /// Reads a query.
    pub fn read(query: &str) -> Self {
        let value = |wanted| {
            let mut arguments = form_urlencoded::parse(query.as_bytes());
            arguments.find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        let filter = value("q").map(|filter| filter.trim().chars().take(FILTER_CHARS_MAX).collect());
        let page = value("page").and_then(|page| page.parse().ok()).filter(|page| *page > 0);
        Self { filter: filter.unwrap_or_default(), page: page.unwrap_or(1) }
    }

    /// The URL of another page with the same filter. `base` is the path of the site, without a slash at its end.
    pub fn url(&self, base: &str, page: usize) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !self.filter.is_empty() {
            query.append_pair("q", &self.filter);
        }
        if page > 1 {
            query.append_pair("page", &page.to_string());
        }
        let query = query.finish();
        if query.is_empty() { format!("{base}/") } else { format!("{base}/?{query}") }
    }

    /// Whether the filter matches one of these texts.
    pub fn matches(&self, texts: &[&str]) -> bool {
        let filter = self.filter.to_lowercase();
        texts.iter().any(|text| text.to_lowercase().contains(&filter))
    }
}

impl RecordTarget {
    /// Reads the identifier of a path, as it is written there, and a query. `None` if it is not an identifier in UTF-8.
    pub fn read(repository: &str, written: &str, query: &str) -> Option<Self> {
        let arguments = |name: &str| {
            let mut arguments = form_urlencoded::parse(query.as_bytes());
            let found = arguments.find(|(argument, value)| argument == name && !value.is_empty());
            found.map(|(_, value)| value.into_owned())
        };
        let decode = |written| Some(text_of(&percent_decode_str(written).decode_utf8().ok()?).to_owned());
        let repository = repository.to_owned();
        if let Some(prefix) = arguments("raw") {
            let (form, format) = (Some(RecordForm::RawMetadata), Some(prefix));
            return Some(Self { repository, identifier: decode(written)?, form, format, after: None });
        }
        let by_ending = RecordForm::of_path(written).filter(|(identifier, _)| !identifier.is_empty());
        let (identifier, form) =
            by_ending.map_or((written, None), |(identifier, form)| (identifier, Some(form)));
        let format = arguments("format");
        let after = if form == Some(RecordForm::LinksJson) { arguments("after") } else { None };
        Some(Self { repository, identifier: decode(identifier)?, form, format, after })
    }

    /// The same target, with its ending as a part of the identifier. Some clients decode the dot that
    /// [`RecordAddress`](super::record::RecordAddress) encodes in such an identifier.
    pub fn with_ending_in_identifier(&self) -> Option<Self> {
        let ending = self.form.map(RecordForm::ending).filter(|ending| !ending.is_empty())?;
        let identifier = format!("{}{ending}", self.identifier);
        Some(Self { identifier, form: None, after: None, ..self.clone() })
    }
}
