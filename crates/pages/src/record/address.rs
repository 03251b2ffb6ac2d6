//! The URLs of a record on this server.

use crate::record_form::RecordForm;
use oaimend_oai::path_segment::segment_of;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The place of a record on this server, in one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordAddress<'a> {
    /// The repository id.
    pub repository: &'a str,
    /// The identifier, any text.
    pub identifier: &'a str,
    /// The metadataPrefix; `None` for the format that the page shows by default.
    pub format: Option<&'a str>,
}

/// The place of a repository on this server. `base` is the public URL or its path, without a slash at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepositoryAddress<'a> {
    /// The repository id.
    pub repository: &'a str,
}

/// The place of the quarantine of a repository on the admin listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantineAddress<'a> {
    /// The repository id.
    pub repository: &'a str,
}

/// All characters but the unreserved ones of RFC 3986. A slash is encoded, so that the identifier is one segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of the state of the server on the admin listener.
pub const STATUS_PATH: &str = "/-/status";
/// The path of the plot of the plan on the admin listener.
pub const PLAN_CHART_PATH: &str = "/-/plan.svg";

/// A text as one segment of a path, or as a value of a query.
pub(crate) fn encoded_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

impl RecordAddress<'_> {
    /// The page. `base` is the public URL or its path, without a slash at its end.
    pub fn page(&self, base: &str) -> String {
        self.in_form(base, RecordForm::Html)
    }

    /// The record in a form that an ending selects.
    pub fn in_form(&self, base: &str, form: RecordForm) -> String {
        let mut url = format!("{}{}", self.start(base), form.ending());
        if let Some(format) = self.format {
            url.push_str(&format!("?format={}", encoded_segment(format)));
        }
        url
    }

    /// The links of the record, where their list continues.
    pub(crate) fn links_after(&self, base: &str, after: &str) -> String {
        format!("{}?after={}", self.in_form(base, RecordForm::LinksJson), encoded_segment(after))
    }

    /// The metadata of the record alone, in a format.
    pub fn raw_metadata(&self, base: &str, prefix: &str) -> String {
        format!("{}?raw={}", self.start(base), encoded_segment(prefix))
    }

    /// The page of the repository.
    pub fn repository(&self, base: &str) -> String {
        RepositoryAddress { repository: self.repository }.page(base)
    }

    /// The URL without an ending and a query.
    fn start(&self, base: &str) -> String {
        let mut identifier = encoded_segment(&segment_of(self.identifier));
        // Without this, the end of the identifier would select a form, also together with the ending of another form.
        if let Some(dot) = identifier.rfind('.').filter(|&dot| SELECTING.contains(&&identifier[dot..])) {
            identifier.replace_range(dot..=dot, "%2E");
        }
        format!("{}record/{identifier}", self.repository(base))
    }
}

/// The ends of identifiers that would select a form. `.csl` is one because `.csl.json` is an ending, and so is
/// `.links`.
const SELECTING: &[&str] = &[".xml", ".json", ".bib", ".ris", ".csl", ".linkset", ".links"];

impl RepositoryAddress<'_> {
    /// The page.
    pub fn page(&self, base: &str) -> String {
        format!("{base}/{}/", utf8_percent_encode(self.repository, SEGMENT))
    }

    /// The list of its records.
    pub fn records(&self, base: &str) -> String {
        format!("{}records/", self.page(base))
    }

    /// The list of its sets.
    pub fn sets(&self, base: &str) -> String {
        format!("{}sets/", self.page(base))
    }

    /// The list of the records of a set.
    pub fn set(&self, base: &str, set_spec: &str) -> String {
        format!("{}{}/", self.sets(base), encoded_segment(&segment_of(set_spec)))
    }

    /// The base URL for harvesters.
    pub fn base_url(&self, base: &str) -> String {
        format!("{base}/{}", utf8_percent_encode(self.repository, SEGMENT))
    }
}

impl RecordAddress<'_> {
    /// The `GetRecord` request for it. `base` is the public URL, without a slash at its end.
    pub fn get_record(&self, base: &str) -> String {
        let part = |text| utf8_percent_encode(text, SEGMENT);
        let base_url = RepositoryAddress { repository: self.repository }.base_url(base);
        let (identifier, prefix) = (part(self.identifier), part(self.format.unwrap_or("oai_dc")));
        format!("{base_url}?verb=GetRecord&identifier={identifier}&metadataPrefix={prefix}")
    }
}

impl QuarantineAddress<'_> {
    /// The list of its records. `base` is the path of the admin listener, without a slash at its end.
    pub fn list(&self, base: &str) -> String {
        format!("{}quarantine/", RepositoryAddress { repository: self.repository }.page(base))
    }

    /// One record.
    pub fn record(&self, base: &str, key: &str) -> String {
        format!("{}{}", self.list(base), utf8_percent_encode(key, SEGMENT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::RecordTarget;

    #[test]
    fn every_identifier_is_one_segment() {
        let page = |identifier| RecordAddress { repository: "x", identifier, format: None }.page("");
        for (identifier, path) in [
            ("oai:x:1", "/x/record/oai%3Ax%3A1"),
            ("a/b c", "/x/record/a%2Fb%20c"),
            ("50%?#&=+", "/x/record/50%25%3F%23%26%3D%2B"),
            ("ü\"<'>", "/x/record/%C3%BC%22%3C%27%3E"),
            ("a-b_c.d~e", "/x/record/a-b_c.d~e"),
            ("a.xml", "/x/record/a%2Exml"),
            ("a.xml.json", "/x/record/a.xml%2Ejson"),
            ("a.xmlx", "/x/record/a.xmlx"),
            ("a.csl.json", "/x/record/a.csl%2Ejson"),
            ("a.csl", "/x/record/a%2Ecsl"),
            ("a.bib", "/x/record/a%2Ebib"),
            ("a.links", "/x/record/a%2Elinks"),
            (".", "/x/record/.%2F"),
            ("..", "/x/record/..%2F"),
            ("../", "/x/record/..%2F%2F"),
        ] {
            let written = page(identifier);
            assert_eq!(written, path);
            // Clients do not change it, and it is read as it was written.
            let url = url::Url::parse(&format!("http://e.org{written}")).expect("a URL");
            assert_eq!(url.path(), path);
            let segment = path.strip_prefix("/x/record/").expect("the start");
            let read = RecordTarget::read("x", segment, "").expect("UTF-8");
            assert_eq!((&*read.identifier, read.form), (identifier, None), "{path}");
            let raw = RecordTarget::read("x", segment, "raw=oai_dc").expect("UTF-8");
            assert_eq!(raw.identifier, identifier, "{path}");
        }
    }

    #[test]
    fn forms_and_formats_have_their_own_urls() {
        let address = RecordAddress { repository: "x", identifier: "1", format: Some("a&b") };
        assert_eq!(address.page("https://e.org/p"), "https://e.org/p/x/record/1?format=a%26b");
        assert_eq!(address.in_form("", RecordForm::Xml), "/x/record/1.xml?format=a%26b");
        assert_eq!(address.raw_metadata("", "a&b"), "/x/record/1?raw=a%26b");
        let address = RecordAddress { format: None, ..address };
        assert_eq!(address.in_form("", RecordForm::CslJson), "/x/record/1.csl.json");
        assert_eq!(address.repository(""), "/x/");
    }

    #[test]
    fn repositories_and_their_lists_have_urls() {
        let address = RepositoryAddress { repository: "x" };
        for (url, expected) in [
            (address.page("/b"), "/b/x/"),
            (address.records("/b"), "/b/x/records/"),
            (address.sets(""), "/x/sets/"),
            (address.set("", "a:b/c"), "/x/sets/a%3Ab%2Fc/"),
            (address.base_url("https://e.org"), "https://e.org/x"),
        ] {
            assert_eq!(url, expected);
        }
    }
}
