//! Signposting: typed links for programs that follow the links of a page, in HTTP `Link` headers (RFC 8288) and as a link
//! set (RFC 9264). See <https://signposting.org/FAIR/>.

use super::address::RecordAddress;
use super::limits::LINK_HEADERS_BYTES_MAX;
use crate::record_form::RecordForm;
use oaimend_record::{LinkKind, WorkDescription};
use serde_json::{Map, Value, json};

/// The links of the page of a record.
#[derive(Clone, Debug)]
pub struct Signposts {
    /// The URL of the page.
    page: String,
    /// The links, the most important ones first.
    links: Vec<TypedLink>,
    /// The URL of the link set as JSON.
    linkset: String,
}

#[derive(Clone, Debug)]
struct TypedLink {
    relation: &'static str,
    url: String,
    media_type: Option<&'static str>,
}

/// The forms that describe the work, apart from the XML of its formats.
const DESCRIPTIONS: [RecordForm; 4] =
    [RecordForm::JsonLd, RecordForm::BibTeX, RecordForm::Ris, RecordForm::CslJson];

impl Signposts {
    /// The links of a work. `formats` are the metadataPrefixes of its record, the default one first. `public_url` is
    /// absolute, without a slash at its end.
    pub fn new(
        work: &WorkDescription,
        address: RecordAddress<'_>,
        formats: &[&str],
        public_url: &str,
    ) -> Self {
        let address = RecordAddress { format: None, ..address };
        let mut signposts = Self {
            page: address.page(public_url),
            links: Vec::new(),
            linkset: address.in_form(public_url, RecordForm::LinksetJson),
        };
        if let Some(link) = work.links.persistent() {
            signposts.add("cite-as", link.url.clone(), None);
        }
        signposts.add("type", "https://schema.org/AboutPage".to_owned(), None);
        signposts.add("type", format!("https://schema.org/{}", work.work_type.schema_org()), None);
        if let Some(link) = &work.links.license {
            signposts.add("license", link.url.clone(), None);
        }
        for (place, prefix) in formats.iter().enumerate() {
            let format = if place == 0 { None } else { Some(*prefix) };
            let url = RecordAddress { format, ..address }.in_form(public_url, RecordForm::Xml);
            signposts.add("describedby", url, Some("application/xml"));
        }
        for form in DESCRIPTIONS {
            let media_type = form.content_type().split(';').next();
            signposts.add("describedby", address.in_form(public_url, form), media_type);
        }
        signposts.add("collection", address.repository(public_url), None);
        for link in work.links.full_texts.iter().filter(|link| link.kind == LinkKind::Url) {
            signposts.add("item", link.url.clone(), link.text_media_type());
        }
        let orcids = work.creators.iter().filter_map(|creator| creator.orcid.as_ref()).chain(&work.orcids);
        for orcid in orcids {
            signposts.add("author", orcid.url(), None);
        }
        signposts
    }

    fn add(&mut self, relation: &'static str, url: String, media_type: Option<&'static str>) {
        self.links.push(TypedLink { relation, url, media_type });
    }

    /// The values of the `Link` headers, at most 4 KiB together.
    ///
    /// A link that does not fit is left out: the URL of an identifier with 2,000 characters can be longer than servers
    /// accept. The link set contains all. All values are ASCII without control characters.
    pub fn headers(&self) -> Vec<String> {
        let linksets =
            [(RecordForm::LinksetJson, self.linkset.as_str()), (RecordForm::Linkset, self.text_url())];
        let linksets = linksets.map(|(form, url)| {
            let media_type = form.content_type().split(';').next();
            TypedLink { relation: "linkset", url: url.to_owned(), media_type }.header()
        });
        let mut headers: Vec<String> =
            linksets.into_iter().chain(self.links.iter().map(TypedLink::header)).collect();
        let mut bytes = 0;
        headers.retain(|link| {
            let is_safe = link.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            let fits = is_safe && bytes + link.len() <= LINK_HEADERS_BYTES_MAX;
            bytes += if fits { link.len() } else { 0 };
            fits
        });
        headers
    }

    /// The URL of the link set as text.
    fn text_url(&self) -> &str {
        self.linkset.strip_suffix(".json").unwrap_or(&self.linkset)
    }

    /// The link set as JSON: the links of the page, and those of its descriptions and files back to it.
    pub fn linkset_json(&self) -> Value {
        let mut contexts = Vec::new();
        let mut page = Map::new();
        page.insert("anchor".to_owned(), json!(self.page));
        for link in &self.links {
            let targets = page.entry(link.relation).or_insert_with(|| json!([]));
            if let Some(targets) = targets.as_array_mut() {
                targets.push(target(&link.url, link.media_type));
            }
        }
        contexts.push(Value::Object(page));
        for (link, relation) in self.links_back() {
            contexts.push(json!({ "anchor": link.url, relation: [target(&self.page, Some("text/html"))] }));
        }
        json!({ "linkset": contexts })
    }

    /// The link set as text: a `Link` header whose links name what they are links of.
    pub fn linkset(&self) -> String {
        let anchored = |link: &TypedLink, anchor: &str| format!("{}; anchor=\"{anchor}\"", link.header());
        let mut links: Vec<String> = self.links.iter().map(|link| anchored(link, &self.page)).collect();
        links.extend(self.links_back().map(|(link, relation)| {
            let back = TypedLink { relation, url: self.page.clone(), media_type: Some("text/html") };
            anchored(&back, &link.url)
        }));
        links.join(",\n") + "\n"
    }

    /// The descriptions and files of the page, with the relation from them to the page.
    fn links_back(&self) -> impl Iterator<Item = (&TypedLink, &'static str)> {
        self.links.iter().filter_map(|link| match link.relation {
            "describedby" => Some((link, "describes")),
            "item" => Some((link, "collection")),
            _ => None,
        })
    }

    /// The `Link` header of the descriptions of a page.
    pub fn header_of_descriptions(page_url: &str) -> String {
        TypedLink { relation: "describes", url: page_url.to_owned(), media_type: Some("text/html") }.header()
    }
}

impl TypedLink {
    fn header(&self) -> String {
        let media_type = self.media_type.map(|name| format!("; type=\"{name}\"")).unwrap_or_default();
        format!("<{}>; rel=\"{}\"{media_type}", self.url, self.relation)
    }
}

fn target(url: &str, media_type: Option<&str>) -> Value {
    match media_type {
        Some(media_type) => json!({ "href": url, "type": media_type }),
        None => json!({ "href": url }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_record::RecordDocument;

    fn signposts(identifier: &str, fields: &str) -> Signposts {
        let xml = format!(
            "<record><metadata><a xmlns='http://purl.org/dc/elements/1.1/'>{fields}</a></metadata></record>"
        );
        let document = RecordDocument::read(&xml).expect("the record is well-formed");
        let address = RecordAddress { repository: "x", identifier, format: Some("marc21") };
        Signposts::new(&WorkDescription::of(&document), address, &["oai_dc", "marc21"], "https://e.org")
    }

    fn links(identifier: &str, fields: &str) -> Vec<String> {
        signposts(identifier, fields).headers()
    }

    const FIELDS: &str = "<type>book</type><identifier>doi:10.1000/1</identifier><rights>http://e.org/cc</rights>\
        <identifier>https://e.org/1.pdf</identifier><creator>D (0000-0002-1825-0097)</creator>";

    #[test]
    fn a_page_names_its_work_its_forms_and_its_repository() {
        assert_eq!(
            links("a/é", FIELDS),
            [
                "<https://e.org/x/record/a%2F%C3%A9.linkset.json>; rel=\"linkset\"; type=\"application/linkset+json\"",
                "<https://e.org/x/record/a%2F%C3%A9.linkset>; rel=\"linkset\"; type=\"application/linkset\"",
                "<https://doi.org/10.1000/1>; rel=\"cite-as\"",
                "<https://schema.org/AboutPage>; rel=\"type\"",
                "<https://schema.org/Book>; rel=\"type\"",
                "<http://e.org/cc>; rel=\"license\"",
                "<https://e.org/x/record/a%2F%C3%A9.xml>; rel=\"describedby\"; type=\"application/xml\"",
                "<https://e.org/x/record/a%2F%C3%A9.xml?format=marc21>; rel=\"describedby\"; type=\"application/xml\"",
                "<https://e.org/x/record/a%2F%C3%A9.json>; rel=\"describedby\"; type=\"application/ld+json\"",
                "<https://e.org/x/record/a%2F%C3%A9.bib>; rel=\"describedby\"; type=\"application/x-bibtex\"",
                "<https://e.org/x/record/a%2F%C3%A9.ris>; rel=\"describedby\"; \
                 type=\"application/x-research-info-systems\"",
                "<https://e.org/x/record/a%2F%C3%A9.csl.json>; rel=\"describedby\"; \
                 type=\"application/vnd.citationstyles.csl+json\"",
                "<https://e.org/x/>; rel=\"collection\"",
                "<https://e.org/1.pdf>; rel=\"item\"; type=\"application/pdf\"",
                "<https://orcid.org/0000-0002-1825-0097>; rel=\"author\"",
            ]
        );
    }

    #[test]
    fn a_link_set_has_all_links_and_those_back_to_the_page() {
        let signposts = signposts("1", FIELDS);
        let page = "https://e.org/x/record/1";
        let json = signposts.linkset_json();
        let contexts = json["linkset"].as_array().expect("a list");
        assert_eq!(contexts[0]["anchor"], page);
        assert_eq!(contexts[0]["author"], json!([{"href": "https://orcid.org/0000-0002-1825-0097"}]));
        assert_eq!(contexts[0]["describedby"].as_array().map(Vec::len), Some(6));
        let back = json!({
            "anchor": "https://e.org/1.pdf",
            "collection": [{"href": page, "type": "text/html"}],
        });
        assert_eq!((contexts.len(), contexts.last()), (8, Some(&back)));
        let text = signposts.linkset();
        assert_eq!(text.lines().count(), 13 + 7);
        assert!(
            text.starts_with(&format!("<https://doi.org/10.1000/1>; rel=\"cite-as\"; anchor=\"{page}\",\n")),
            "{text}"
        );
    }

    #[test]
    fn nothing_in_a_record_adds_a_link_or_a_header() {
        let links = links("a>; rel=\"x\"\r\nb", "<identifier>10.1000/a&gt;;rel=\"x\",&lt;b</identifier>");
        assert_eq!(links.len(), 12);
        for link in &links {
            assert_eq!((link.matches('<').count(), link.matches('>').count()), (1, 1), "{link}");
            assert!(link.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{link}");
        }
    }

    #[test]
    fn the_size_of_all_headers_is_limited() {
        for identifier in ["x".repeat(2_000), "é".repeat(2_000), "漢".repeat(400)] {
            let links = links(&identifier, "<identifier>doi:10.1000/1</identifier>");
            let bytes: usize = links.iter().map(String::len).sum();
            assert!(bytes <= LINK_HEADERS_BYTES_MAX && links.len() >= 4, "{bytes} {links:?}");
        }
    }
}
