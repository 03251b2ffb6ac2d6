//! The URLs of a record that are full texts. Pure.

use oaimend_record::{DublinCore, Field, RecordDocument};
use url::Url;

/// Maximum number of URLs of a record that are kept, in the order of the record. The first one that works is read.
pub const URLS_MAX: usize = 3;
/// Longest URL of a full text, in bytes.
const URL_BYTES_MAX: usize = 2_048;

/// The hosts from which full texts of a repository are fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FullTextHosts(Vec<AllowedHost>);

/// A host with the ports at which it is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    name: String,
    /// `None`: the usual ports of http and https.
    port: Option<u16>,
}

impl AllowedHost {
    /// Reads a name or an address, with or without a port, such as `files.example.org` or `10.0.0.2:8080`.
    ///
    /// # Errors
    ///
    /// The text is no host. It names the expected value.
    pub fn read(text: &str) -> Result<Self, String> {
        let host = text.to_ascii_lowercase();
        let is_whole = |url: &Url| url.path() == "/" && url.query().is_none() && url.username().is_empty();
        let url = Url::parse(&format!("http://{host}/"));
        match url {
            Ok(url) if is_whole(&url) && !host.contains(['/', '@', '?', '#']) => {
                let name = url.host_str().unwrap_or_default().to_owned();
                // The parser leaves a port out that is the usual one.
                let written = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
                Ok(Self { name, port: written.and_then(|(_, port)| port.parse().ok()) })
            }
            _ => {
                Err("is not a host; expected one such as \"files.example.org\" or \"10.0.0.2:8080\""
                    .to_owned())
            }
        }
    }

    /// The host as it is written.
    pub fn text(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.name),
            None => self.name.clone(),
        }
    }

    fn allows(&self, url: &Url) -> bool {
        let port = url.port_or_known_default();
        let is_port = match self.port {
            Some(_) => port == self.port,
            None => matches!(port, Some(80 | 443)),
        };
        is_port && url.host_str() == Some(&self.name)
    }
}

impl FullTextHosts {
    /// These hosts, or that of the base URL if there are none.
    pub fn new(hosts: &[AllowedHost], base_url: Option<&Url>) -> Self {
        if !hosts.is_empty() {
            return Self(hosts.to_vec());
        }
        let Some(url) = base_url else { return Self::default() };
        let Some(name) = url.host_str().map(str::to_owned) else { return Self::default() };
        let usual = AllowedHost { name: name.clone(), port: None };
        let with_port = url.port().map(|port| AllowedHost { name, port: Some(port) });
        Self(std::iter::once(usual).chain(with_port).collect())
    }

    /// Whether a URL may be requested.
    pub fn allow(&self, url: &Url) -> bool {
        matches!(url.scheme(), "http" | "https") && self.0.iter().any(|host| host.allows(url))
    }

    /// The URLs of full texts in a record at these hosts, at most [`URLS_MAX`], each once: what the format calls a PDF, and
    /// URLs in `identifier`, `relation` and `source` of Dublin Core whose path ends in `.pdf`.
    pub fn full_texts(&self, document: &RecordDocument) -> Vec<Url> {
        let core = DublinCore::of(document);
        let typed = document.metadata.iter().filter_map(typed_link);
        let texts = core.identifiers.iter().chain(&core.relations).chain(&core.sources);
        let named = texts.filter_map(|text| read_url(&text.value)).filter(is_pdf);
        let mut found: Vec<Url> = Vec::new();
        for url in typed.chain(named).filter(|url| self.allow(url)) {
            if found.len() < URLS_MAX && !found.contains(&url) {
                found.push(url);
            }
        }
        found
    }

    /// The hosts in one line, which changes if they do.
    pub fn text(&self) -> String {
        self.0.iter().map(AllowedHost::text).collect::<Vec<_>>().join(" ")
    }

    /// Whether there is a host.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// `self-uri` of JATS that is of a PDF.
fn typed_link(field: &Field) -> Option<Url> {
    if field.name != "self-uri" {
        return None;
    }
    let attribute = |name: &str| {
        let is_named = |written: &str| written == name || written.ends_with(&format!(":{name}"));
        field
            .attributes
            .iter()
            .find(|attribute| is_named(&attribute.name))
            .map(|attribute| attribute.value.as_str())
    };
    let is_typed = attribute("content-type").is_some_and(|kind| kind.to_ascii_lowercase().contains("pdf"));
    read_url(attribute("href")?).filter(|url| is_typed || is_pdf(url))
}

fn is_pdf(url: &Url) -> bool {
    let path = url.path();
    path.len() >= 4 && path.as_bytes()[path.len() - 4..].eq_ignore_ascii_case(b".pdf")
}

/// A URL without its fragment. One with a user or a password is none: they would be sent.
fn read_url(text: &str) -> Option<Url> {
    let text = text.trim();
    if text.len() > URL_BYTES_MAX {
        return None;
    }
    let mut url = Url::parse(text).ok()?;
    url.set_fragment(None);
    (matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none())
        .then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(metadata: &str) -> RecordDocument {
        let xml = format!(
            "<record><header><identifier>oai:x:1</identifier></header><metadata>{metadata}</metadata></record>"
        );
        RecordDocument::read(&xml).expect("well-formed")
    }

    fn dc(fields: &str) -> RecordDocument {
        document(&format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{fields}</oai_dc:dc>"
        ))
    }

    fn hosts(names: &[&str]) -> FullTextHosts {
        FullTextHosts::new(
            &names.iter().map(|name| AllowedHost::read(name).expect(name)).collect::<Vec<_>>(),
            None,
        )
    }

    fn found(hosts: &FullTextHosts, document: &RecordDocument) -> Vec<String> {
        hosts.full_texts(document).into_iter().map(String::from).collect()
    }

    #[test]
    fn full_texts_are_pdfs_at_allowed_hosts() {
        let record = dc("<dc:identifier>https://x.example/1</dc:identifier>\
             <dc:identifier> https://x.example/a/1.PDF#page=2 </dc:identifier>\
             <dc:relation>https://x.example/a/1.PDF</dc:relation>\
             <dc:relation>https://other.example/1.pdf</dc:relation>\
             <dc:relation>https://u:p@x.example/secret.pdf</dc:relation>\
             <dc:relation>https://x.example:6379/1.pdf</dc:relation>\
             <dc:relation>ftp://x.example/1.pdf</dc:relation>\
             <dc:relation>file:///etc/passwd.pdf</dc:relation>\
             <dc:source>http://x.example/s.pdf?v=1</dc:source>\
             <dc:description>http://x.example/d.pdf</dc:description>");
        let expected = ["https://x.example/a/1.PDF", "http://x.example/s.pdf?v=1"];
        assert_eq!(found(&hosts(&["x.example"]), &record), expected);
        assert_eq!(found(&hosts(&["X.example:6379"]), &record), ["https://x.example:6379/1.pdf"]);
        assert_eq!(found(&hosts(&[]), &record), [""; 0]);
        let many: String =
            (0..9).map(|at| format!("<dc:relation>https://x.example/{at}.pdf</dc:relation>")).collect();
        assert_eq!(found(&hosts(&["x.example"]), &dc(&many)).len(), URLS_MAX);
        let long = format!("<dc:relation>https://x.example/{}.pdf</dc:relation>", "a".repeat(URL_BYTES_MAX));
        assert_eq!(found(&hosts(&["x.example"]), &dc(&long)), [""; 0]);
    }

    #[test]
    fn the_host_of_the_base_url_is_the_default() {
        let of = |base: &str| FullTextHosts::new(&[], Some(&Url::parse(base).expect("a literal")));
        let allows = |hosts: &FullTextHosts, url: &str| hosts.allow(&Url::parse(url).expect("a literal"));
        let of_base = of("http://x.example:8080/oai");
        for (url, expected) in [
            ("http://x.example:8080/1.pdf", true),
            ("http://x.example/1.pdf", true),
            ("https://x.example/1.pdf", true),
            ("https://x.example:22/1.pdf", false),
            ("https://sub.x.example/1.pdf", false),
        ] {
            assert_eq!(allows(&of_base, url), expected, "{url}");
        }
        assert_eq!(of_base.text(), "x.example x.example:8080");
    }

    #[test]
    fn jats_says_which_link_is_a_pdf() {
        let record = document(
            "<article xmlns:xlink=\"http://www.w3.org/1999/xlink\"><front><article-meta>\
             <self-uri content-type=\"text/html\" xlink:href=\"https://x.example/view/1\"/>\
             <self-uri content-type=\"application/pdf\" xlink:href=\"https://x.example/view/1/2\"/>\
             </article-meta></front></article>",
        );
        assert_eq!(found(&hosts(&["x.example"]), &record), ["https://x.example/view/1/2"]);
    }

    #[test]
    fn hosts_are_read_strictly() {
        for text in ["", "a/b", "http://a", "a b", "u@a", "a:99999", "a?b"] {
            assert!(AllowedHost::read(text).is_err(), "{text}");
        }
        for (text, expected) in
            [("A.example", "a.example"), ("a:80", "a:80"), ("[::1]:8080", "[::1]:8080"), ("[::1]", "[::1]")]
        {
            assert_eq!(AllowedHost::read(text).expect(text).text(), expected);
        }
    }
}
