//! Signposting: typed links in HTTP `Link` headers (RFC 8288), for programs that follow the links of a page.

use super::address::RecordAddress;
use super::limits::LINK_HEADERS_BYTES_MAX;
use oaimend_record::WorkDescription;

/// The values of the `Link` headers of a record page, at most seven with 4 KiB together.
///
/// A link that does not fit is left out: the URL of an identifier with 2,000 characters can be longer than servers
/// accept. All values are ASCII without control characters. `public_url` is absolute, without a slash at its end.
pub fn signposting(work: &WorkDescription, address: RecordAddress<'_>, public_url: &str) -> Vec<String> {
    let mut links = Vec::new();
    if let Some(link) = work.links.persistent() {
        links.push(format!("<{}>; rel=\"cite-as\"", link.url));
    }
    links.push("<https://schema.org/AboutPage>; rel=\"type\"".to_owned());
    links.push(format!("<https://schema.org/{}>; rel=\"type\"", work.work_type.schema_org()));
    links.push(format!("<{}>; rel=\"describedby\"; type=\"application/xml\"", address.xml(public_url)));
    links.push(format!("<{}>; rel=\"describedby\"; type=\"application/ld+json\"", address.json(public_url)));
    links.push(format!("<{}>; rel=\"collection\"", address.repository(public_url)));
    if let Some(link) = &work.links.license {
        links.push(format!("<{}>; rel=\"license\"", link.url));
    }
    let mut bytes = 0;
    links.retain(|link| {
        let is_safe = link.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let fits = is_safe && bytes + link.len() <= LINK_HEADERS_BYTES_MAX;
        bytes += if fits { link.len() } else { 0 };
        fits
    });
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_record::RecordDocument;

    fn links(identifier: &str, fields: &str) -> Vec<String> {
        let xml = format!(
            "<record><metadata><a xmlns='http://purl.org/dc/elements/1.1/'>{fields}</a></metadata></record>"
        );
        let document = RecordDocument::read(&xml).expect("the record is well-formed");
        let address = RecordAddress { repository: "x", identifier, format: None };
        signposting(&WorkDescription::of(&document), address, "https://e.org")
    }

    #[test]
    fn a_page_names_its_work_its_forms_and_its_repository() {
        let fields =
            "<type>book</type><identifier>doi:10.1000/1</identifier><rights>http://e.org/cc</rights>";
        assert_eq!(
            links("a/é", fields),
            [
                "<https://doi.org/10.1000/1>; rel=\"cite-as\"",
                "<https://schema.org/AboutPage>; rel=\"type\"",
                "<https://schema.org/Book>; rel=\"type\"",
                "<https://e.org/x/record/a%2F%C3%A9.xml>; rel=\"describedby\"; type=\"application/xml\"",
                "<https://e.org/x/record/a%2F%C3%A9.json>; rel=\"describedby\"; type=\"application/ld+json\"",
                "<https://e.org/x/>; rel=\"collection\"",
                "<http://e.org/cc>; rel=\"license\"",
            ]
        );
    }

    #[test]
    fn nothing_in_a_record_adds_a_link_or_a_header() {
        let links = links("a>; rel=\"x\"\r\nb", "<identifier>10.1000/a&gt;;rel=\"x\",&lt;b</identifier>");
        assert_eq!(links.len(), 6);
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
