//! The values of a field in a repository: creators, titles, years of publication.

use crate::record::RepositoryAddress;
use crate::search::{FacetKind, SearchAddress};
use oaimend_oai::named_enum;
use url::form_urlencoded;

named_enum! {
    /// A field by whose values people browse the records of a repository. The names are parts of URLs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BrowsedField {
        /// The creators.
        Creators = "creators",
        /// The titles.
        Titles = "titles",
        /// The years of publication.
        Years = "years",
    }
}

/// The place of a page with the values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseAddress {
    /// The repository id.
    pub repository: String,
    /// The field.
    pub field: BrowsedField,
    /// The values that begin so; empty: all.
    pub start: String,
    /// The page begins after this value, folded; `None`: at the first one.
    pub after: Option<String>,
}

/// Longest text of an argument that is used, in characters.
const ARGUMENT_CHARS_MAX: usize = 300;

impl BrowsedField {
    /// The search for the records of a repository with a value.
    pub fn search(self, repository: &str, value: &str) -> SearchAddress {
        let all = SearchAddress::default();
        let found = match self {
            Self::Creators => SearchAddress::of_value("creator", value),
            Self::Titles => SearchAddress::of_value("title", value),
            Self::Years => all.with(FacetKind::Year, value),
        };
        found.with(FacetKind::Repository, repository)
    }
}

impl BrowseAddress {
    /// The first page of all values of a field.
    pub fn of(repository: &str, field: BrowsedField) -> Self {
        Self { repository: repository.to_owned(), field, start: String::new(), after: None }
    }

    /// Reads the name of the field, as it is in the path, and a query. `None` if there is no such field.
    pub fn read(repository: &str, field: &str, query: &str) -> Option<Self> {
        let mut address = Self::of(repository, BrowsedField::from_name(field)?);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = || value.chars().take(ARGUMENT_CHARS_MAX).collect::<String>();
            match &*name {
                "start" => address.start = value(),
                "after" => address.after = Some(value()),
                _ => {}
            }
        }
        Some(address)
    }

    /// The URL. `base` is the public URL or its path, without a slash at its end.
    pub fn url(&self, base: &str) -> String {
        let mut arguments = form_urlencoded::Serializer::new(String::new());
        if !self.start.is_empty() {
            arguments.append_pair("start", &self.start);
        }
        if let Some(after) = &self.after {
            arguments.append_pair("after", after);
        }
        let repository = RepositoryAddress { repository: &self.repository }.page(base);
        let (field, arguments) = (self.field.name(), arguments.finish());
        let mark = if arguments.is_empty() { "" } else { "?" };
        format!("{repository}browse/{field}/{mark}{arguments}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_urls_that_lead_back_to_them() {
        for (field, query, url) in [
            ("titles", "utm_source=a", "/b/x/browse/titles/"),
            ("creators", "after=b+c&start=%C3%A9", "/b/x/browse/creators/?start=%C3%A9&after=b+c"),
        ] {
            let address = BrowseAddress::read("x", field, query).expect("there is such a field");
            assert_eq!(address.url("/b"), url);
            let query = url.split_once('?').unwrap_or_default().1;
            assert_eq!(BrowseAddress::read("x", field, query), Some(address), "{url}");
        }
        let long = BrowseAddress::read("x", "years", &format!("start={}", "é".repeat(999)));
        assert_eq!(long.map(|address| address.start.chars().count()), Some(ARGUMENT_CHARS_MAX));
        assert_eq!(BrowseAddress::read("x", "other", ""), None);
    }
}
