//! The links of a record: DOI, Handle, URN and URL.
//!
//! Only absolute `http` and `https` URLs become links. The URL of a link is written by the WHATWG parser, so it is
//! ASCII, and contains no blank, no quotation mark and no angle bracket.

use crate::dublin_core::DublinCore;
use crate::limits::{LINK_BYTES_MAX, LINKS_MAX};
use crate::text::Text;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use url::Url;

/// The kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A DOI, resolved by doi.org.
    Doi,
    /// A Handle, resolved by hdl.handle.net.
    Handle,
    /// A national bibliography number (`urn:nbn:`), resolved by the resolver of its country.
    Urn,
    /// Another URL.
    Url,
}

/// A text of a record that is a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The kind.
    pub kind: LinkKind,
    /// The identifier without its scheme or resolver, such as `10.1000/182`; for a URL the text as written.
    pub name: String,
    /// The URL: `http` or `https`, absolute, ASCII, at most 2,048 bytes.
    pub url: String,
}

/// The links of a record, without repetition, at most 50.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordLinks {
    /// The links that identify the work, in the order of the record.
    pub identifying: Vec<Link>,
    /// The number of [`RecordLinks::identifying`] that are in `identifier`. The others are in `relation`.
    in_identifier: usize,
    /// Links to related works.
    pub related: Vec<Link>,
    /// Links to the full text: files of text, and what the format calls full text.
    pub full_texts: Vec<Link>,
    /// The URL of the licence.
    pub license: Option<Link>,
}

/// Files of text, by the ending of their names, with their media types.
const TEXT_FILES: &[(&str, &str)] = &[
    ("pdf", "application/pdf"),
    ("epub", "application/epub+zip"),
    ("ps", "application/postscript"),
    ("djvu", "image/vnd.djvu"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("rtf", "application/rtf"),
    ("txt", "text/plain"),
];

/// The endings of the names of other files.
const OTHER_FILES: &[&str] = &[
    "zip", "gz", "tgz", "bz2", "xz", "tar", "7z", "rar", "jpg", "jpeg", "png", "gif", "tif", "tiff", "jp2",
    "svg", "webp", "bmp", "mp3", "mp4", "m4a", "m4v", "wav", "flac", "ogg", "avi", "mov", "mpg", "mpeg",
    "webm", "csv", "tsv", "xls", "xlsx", "ods", "ppt", "pptx", "odp", "xml", "json", "nc", "h5", "rdf",
    "bib", "ris", "mobi",
];

/// The characters of a DOI or Handle that a URL cannot contain in its path.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// What OpenAIRE writes before an identifier in `relation` that identifies the work itself.
const ALTERNATIVE: &str = "info:eu-repo/semantics/altIdentifier/";

impl Link {
    /// The link that a whole text is, without surrounding blanks. `None` for any other text, and for a URL with a user
    /// name, which can look like the address of another host.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_illegal = |character: char| character.is_whitespace() || character.is_control();
        if text.len() > LINK_BYTES_MAX || text.contains(is_illegal) {
            return None;
        }
        let link = Self::read_doi(text).or_else(|| Self::read_handle(text)).or_else(|| Self::read_urn(text));
        link.or_else(|| Self::read_url(text)).filter(|link| link.url.len() <= LINK_BYTES_MAX)
    }

    fn new(kind: LinkKind, name: String, url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        let has_user = !url.username().is_empty() || url.password().is_some();
        (is_web && !has_user).then(|| Self { kind, name, url: url.into() })
    }

    fn read_doi(text: &str) -> Option<Self> {
        let forms = [
            "https://doi.org/",
            "http://doi.org/",
            "https://dx.doi.org/",
            "http://dx.doi.org/",
            "https://www.doi.org/",
            "http://www.doi.org/",
        ];
        let name = match forms.iter().find_map(|form| without_prefix(text, form)) {
            Some(path) => decoded(path)?,
            None => ["doi:", "info:doi/", "info:eu-repo/semantics/altIdentifier/doi/"]
                .iter()
                .find_map(|form| without_prefix(text, form))
                .unwrap_or(text)
                .into(),
        };
        let (prefix, suffix) = name.split_once('/')?;
        let registrant = prefix.strip_prefix("10.")?;
        if !is_dotted_number(registrant) || registrant.len() < 4 || !is_path(suffix) {
            return None;
        }
        let url = format!("https://doi.org/{}", utf8_percent_encode(&name, PATH));
        Self::new(LinkKind::Doi, name.into_owned(), &url)
    }

    fn read_handle(text: &str) -> Option<Self> {
        let resolvers = ["https://hdl.handle.net/", "http://hdl.handle.net/"];
        let name = match resolvers.iter().find_map(|form| without_prefix(text, form)) {
            Some(path) => decoded(path)?,
            None => ["hdl:", "info:hdl/", "info:eu-repo/semantics/altIdentifier/hdl/"]
                .iter()
                .find_map(|form| without_prefix(text, form))?
                .into(),
        };
        let (prefix, suffix) = name.split_once('/')?;
        if !is_dotted_number(prefix) || !is_path(suffix) {
            return None;
        }
        let url = format!("https://hdl.handle.net/{}", utf8_percent_encode(&name, PATH));
        Self::new(LinkKind::Handle, name.into_owned(), &url)
    }

    fn read_urn(text: &str) -> Option<Self> {
        let name = without_prefix(text, "info:eu-repo/semantics/altIdentifier/urn/").unwrap_or(text);
        let number = without_prefix(name, "urn:nbn:")?;
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:+()/,=@;$!*'~".contains(&byte);
        let country = number.get(..2).unwrap_or_default().to_ascii_lowercase();
        let resolver = match country.as_str() {
            "fi" => "https://urn.fi/",
            "no" => "https://urn.nb.no/",
            "se" => "https://urn.kb.se/resolve?urn=",
            _ => "https://nbn-resolving.org/",
        };
        if number.is_empty() || !number.bytes().all(is_legal) {
            return None;
        }
        Self::new(LinkKind::Urn, name.to_owned(), &format!("{resolver}{name}"))
    }

    fn read_url(text: &str) -> Option<Self> {
        let is_url = ["http://", "https://"].iter().any(|scheme| without_prefix(text, scheme).is_some());
        if is_url { Self::new(LinkKind::Url, text.to_owned(), text) } else { None }
    }

    /// The ending of the name of the file in the path of a URL, in lower case; `None` if there is none.
    fn file_ending(&self) -> Option<String> {
        if self.kind != LinkKind::Url {
            return None;
        }
        // The parser wrote the URL, so its path begins after the host.
        let (_, rest) = self.url.split_once("://")?;
        let path = rest.get(rest.find('/')?..)?.split(['?', '#']).next()?;
        let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
        Some(ending.to_ascii_lowercase())
    }

    /// The media type of a file of text, by its name. `None` for other links.
    pub fn text_media_type(&self) -> Option<&'static str> {
        let ending = self.file_ending()?;
        TEXT_FILES.iter().find(|(known, _)| *known == ending).map(|(_, media_type)| *media_type)
    }

    /// Whether the link is a file and not a page, by its name.
    fn is_file(&self) -> bool {
        let is_other = |ending: String| OTHER_FILES.contains(&ending.as_str());
        self.text_media_type().is_some() || self.file_ending().is_some_and(is_other)
    }

    fn is_pdf(&self) -> bool {
        self.text_media_type() == Some("application/pdf")
    }

    /// Whether a URL looks like the page of one record, and not like the home page of a journal. Its path or query contains
    /// a digit, or the last part of the identifier of the record.
    fn names_one_record(&self, identifier: &str) -> bool {
        let Ok(url) = Url::parse(&self.url) else { return false };
        let rest = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let name = identifier.rsplit([':', '/']).next().unwrap_or_default();
        rest.contains(|character: char| character.is_ascii_digit())
            || (name.len() >= NAME_BYTES_MIN && rest.contains(name))
    }
}

/// Shortest last part of an identifier that a URL cannot contain by chance, in bytes.
const NAME_BYTES_MIN: usize = 4;

impl RecordLinks {
    /// The links in `identifier`, `relation` and `rights`. `full_texts` are the URLs that the format calls full text.
    pub(crate) fn of(core: &DublinCore, full_texts: &[String]) -> Self {
        let mut links = Self::identifying(core);
        for link in core.relations.iter().filter_map(|text| Link::read(&text.value)) {
            if links.identifying.iter().all(|known| known.url != link.url) {
                links.related.push_new(link, links.identifying.len());
            }
        }
        for link in full_texts.iter().filter_map(|url| Link::read(url)) {
            links.full_texts.push_new(link, 0);
        }
        let files = |links: &[Link]| -> Vec<Link> {
            links.iter().filter(|link| link.text_media_type().is_some()).cloned().collect()
        };
        for file in files(&links.identifying) {
            links.full_texts.push_new(file, 0);
        }
        // Journals write the files of an article into `relation`.
        if links.full_texts.is_empty() {
            links.full_texts = files(&links.related);
        }
        let mut rights = core.rights.iter().filter_map(|text| Link::read(&text.value));
        links.license = rights.find(|link| !link.url.contains("/coar/access_right/"));
        links
    }

    /// The links that identify the work. The others are left empty.
    pub fn identifying(core: &DublinCore) -> Self {
        let mut links = Self::default();
        let names_itself = |text: &&Text| without_prefix(&text.value, ALTERNATIVE).is_some();
        for link in core.identifiers.iter().filter_map(|text| Link::read(&text.value)) {
            links.identifying.push_new(link, 0);
        }
        links.in_identifier = links.identifying.len();
        for link in core.relations.iter().filter(names_itself).filter_map(|text| Link::read(&text.value)) {
            links.identifying.push_new(link, 0);
        }
        links
    }

    /// Adds what another record of the work links to.
    pub(crate) fn add(&mut self, other: Self) {
        let (in_identifier, others): (Vec<_>, Vec<_>) =
            other.identifying.into_iter().enumerate().partition(|(place, _)| *place < other.in_identifier);
        let mut rest = self.identifying.split_off(self.in_identifier);
        rest.extend(others.into_iter().map(|(_, link)| link));
        for (_, link) in in_identifier {
            self.identifying.push_new(link, 0);
        }
        self.in_identifier = self.identifying.len();
        for link in rest {
            self.identifying.push_new(link, 0);
        }
        self.related.retain(|link| self.identifying.iter().all(|known| known.url != link.url));
        if self.full_texts.is_empty() {
            self.full_texts = other.full_texts;
        }
    }

    fn identifying_of(&self, kind: LinkKind) -> Option<&Link> {
        self.identifying.iter().find(|link| link.kind == kind)
    }

    /// The DOI of the work.
    pub fn doi(&self) -> Option<&str> {
        self.identifying_of(LinkKind::Doi).map(|link| link.name.as_str())
    }

    /// The page of the work at its source: the first URL that is no file, else the DOI, else the Handle.
    pub fn landing_page(&self) -> Option<&Link> {
        let page = self.identifying.iter().find(|link| link.kind == LinkKind::Url && !link.is_file());
        page.or_else(|| self.identifying_of(LinkKind::Doi)).or_else(|| self.identifying_of(LinkKind::Handle))
    }

    /// The URL outside of this server that search engines should show for the work: the DOI in `identifier`, else the
    /// Handle, else the first URL that looks like the page of one record. `None` if there is none of them, so that our own
    /// page is the one to show.
    ///
    /// A URL that many records share would make search engines drop all of them but one. Which URLs are shared is not
    /// known here, so a URL without a digit and without the last part of `identifier`, the identifier of the record, is not
    /// used.
    pub fn canonical(&self, identifier: &str) -> Option<&Link> {
        let links = || self.identifying.iter().take(self.in_identifier);
        let of_kind = |kind| links().find(|link| link.kind == kind);
        let is_page =
            |link: &&Link| link.kind == LinkKind::Url && !link.is_file() && link.names_one_record(identifier);
        of_kind(LinkKind::Doi).or_else(|| of_kind(LinkKind::Handle)).or_else(|| links().find(is_page))
    }

    /// The link to cite: the DOI, else the Handle, else the URN.
    pub fn persistent(&self) -> Option<&Link> {
        let kinds = [LinkKind::Doi, LinkKind::Handle, LinkKind::Urn];
        kinds.into_iter().find_map(|kind| self.identifying_of(kind))
    }

    /// The full text as PDF: the first URL whose path ends with `.pdf`.
    pub fn pdf(&self) -> Option<&Link> {
        self.identifying.iter().chain(&self.related).find(|link| link.is_pdf())
    }
}

/// A list without repeated URLs.
trait PushNew {
    /// Adds a link, unless its URL is in the list, or the record has 50 links with `others`.
    fn push_new(&mut self, link: Link, others: usize);
}

impl PushNew for Vec<Link> {
    fn push_new(&mut self, link: Link, others: usize) {
        let is_new = self.iter().all(|other| other.url != link.url);
        if is_new && self.len() + others < LINKS_MAX {
            self.push(link);
        }
    }
}

/// The rest of a text after a prefix in any case.
fn without_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The path of a resolver's URL as the identifier that it names.
fn decoded(path: &str) -> Option<Cow<'_, str>> {
    let name = percent_decode_str(path).decode_utf8().ok()?;
    let is_legal = !name.contains(|character: char| character.is_whitespace() || character.is_control());
    is_legal.then_some(name)
}

/// Digits in groups with a point between them, such as `20.500.12345`.
fn is_dotted_number(text: &str) -> bool {
    text.split('.').all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a browser keeps the text as it is in a path: it has no segment that means a parent folder.
fn is_path(text: &str) -> bool {
    !text.is_empty() && text.split('/').all(|segment| segment != "." && segment != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(LinkKind, String, String)> {
        Link::read(text).map(|link| (link.kind, link.name, link.url))
    }

    #[test]
    fn identifiers_become_links_to_their_resolvers() {
        for (text, kind, name, url) in [
            ("10.1000/182", LinkKind::Doi, "10.1000/182", "https://doi.org/10.1000/182"),
            ("DOI:10.1000/a(b)c;d", LinkKind::Doi, "10.1000/a(b)c;d", "https://doi.org/10.1000/a(b)c;d"),
            (
                "HTTP://DX.doi.org/10.1000/a%3Cb%3E",
                LinkKind::Doi,
                "10.1000/a<b>",
                "https://doi.org/10.1000/a%3Cb%3E",
            ),
            (
                "info:eu-repo/semantics/altIdentifier/doi/10.1000.10/é#?%",
                LinkKind::Doi,
                "10.1000.10/é#?%",
                "https://doi.org/10.1000.10/%C3%A9%23%3F%25",
            ),
            ("hdl:1765/123", LinkKind::Handle, "1765/123", "https://hdl.handle.net/1765/123"),
            (
                "http://hdl.handle.net/20.500.12345/6 ",
                LinkKind::Handle,
                "20.500.12345/6",
                "https://hdl.handle.net/20.500.12345/6",
            ),
            (
                "urn:nbn:de:0070-pub-17",
                LinkKind::Urn,
                "urn:nbn:de:0070-pub-17",
                "https://nbn-resolving.org/urn:nbn:de:0070-pub-17",
            ),
            ("URN:NBN:fi-fe2018", LinkKind::Urn, "URN:NBN:fi-fe2018", "https://urn.fi/URN:NBN:fi-fe2018"),
            (
                "urn:nbn:se:uu:diva-1",
                LinkKind::Urn,
                "urn:nbn:se:uu:diva-1",
                "https://urn.kb.se/resolve?urn=urn:nbn:se:uu:diva-1",
            ),
            (
                "HTTPS://Example.org/a\"<b>é?q=<'",
                LinkKind::Url,
                "HTTPS://Example.org/a\"<b>é?q=<'",
                "https://example.org/a%22%3Cb%3E%C3%A9?q=%3C%27",
            ),
            (
                "http://bücher.example",
                LinkKind::Url,
                "http://bücher.example",
                "http://xn--bcher-kva.example/",
            ),
        ] {
            assert_eq!(read(text), Some((kind, name.to_owned(), url.to_owned())), "{text}");
        }
    }

    #[test]
    fn nothing_but_http_becomes_a_link() {
        for text in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "java\tscript:alert(1)",
            " javascript:alert(1)",
            "\u{1}javascript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "DATA:text/html;base64,PHNjcmlwdD4=",
            "vbscript:x",
            "file:///etc/passwd",
            "ftp://example.org/",
            "//example.org/",
            "/path",
            "http:",
            "http://",
            "http:example.org",
            "http:///example.org:x",
            "https://example.org/a b",
            "https://exa\tmple.org/",
            "https://example.org/\nx",
            "https://doi.org@example.org/10.1000/1",
            "https://user:password@example.org/",
            "10.1000/../../x",
            "10.1000/",
            "10.1/x",
            "10.abc/x",
            "hdl:1765",
            "hdl:a/b",
            "hdl:1765/..",
            "urn:nbn:",
            "urn:nbn:de:\"<x>",
            "urn:isbn:123",
            "1765/123",
            "",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(Link::new(LinkKind::Url, String::new(), "javascript://example.org/%0Aalert(1)"), None);
        assert_eq!(Link::read(&format!("https://example.org/{}", "x".repeat(LINK_BYTES_MAX))), None);
        assert_eq!(Link::read(&format!("https://example.org/{}", "é".repeat(LINK_BYTES_MAX / 3))), None);
    }

    fn texts(values: &[&str]) -> Vec<Text> {
        values.iter().map(|value| Text { value: (*value).to_owned(), ..Text::default() }).collect()
    }

    fn links(identifiers: &[&str], relations: &[&str]) -> RecordLinks {
        let core = DublinCore {
            identifiers: texts(identifiers),
            relations: texts(relations),
            ..DublinCore::default()
        };
        RecordLinks::of(&core, &[])
    }

    #[test]
    fn the_landing_page_is_a_url_then_a_doi_then_a_handle() {
        let page = |identifiers: &[&str]| links(identifiers, &[]).landing_page().map(|link| link.url.clone());
        let (pdf, url) = ("https://example.org/1.PDF?x", "https://example.org/1");
        let (doi, handle) = ("doi:10.1000/1", "hdl:1/2");
        assert_eq!(page(&[handle, pdf, doi, url]).as_deref(), Some(url));
        assert_eq!(page(&[handle, pdf, doi]).as_deref(), Some("https://doi.org/10.1000/1"));
        assert_eq!(page(&[pdf, handle]).as_deref(), Some("https://hdl.handle.net/1/2"));
        assert_eq!(page(&[pdf, "urn:nbn:de:1"]), None);
        assert_eq!(links(&[], &[url, doi]).landing_page(), None, "a relation is another work");
    }

    #[test]
    fn the_canonical_url_is_of_one_record_only() {
        let canonical = |identifiers: &[&str], relations: &[&str]| {
            links(identifiers, relations).canonical("oai:e.org:abcd").map(|link| link.url.clone())
        };
        let alternative = "info:eu-repo/semantics/altIdentifier/doi/10.1000/2";
        for (identifiers, url) in [
            (&["https://e.org/1", "hdl:1/2", "doi:10.1000/1"][..], Some("https://doi.org/10.1000/1")),
            (&["https://e.org/1", "hdl:1/2"], Some("https://hdl.handle.net/1/2")),
            (
                &["https://e.org/", "https://e.org/journal", "https://e.org/article/1"],
                Some("https://e.org/article/1"),
            ),
            (&["https://e.org/view?id=abcd"], Some("https://e.org/view?id=abcd")),
            (&["https://e.org/1.pdf", "https://e.org/1.ZIP", "https://e.org/1.jpg?x"], None),
            (&["https://e.org", "https://e2.org/", "https://e.org/index.php/journal"], None),
            (&[], None),
        ] {
            let url = url.map(str::to_owned);
            assert_eq!(canonical(identifiers, &[alternative, "doi:10.1000/3"]), url, "{identifiers:?}");
        }
    }

    #[test]
    fn full_texts_are_files_and_what_the_format_calls_so() {
        let urls = |links: RecordLinks| links.full_texts.into_iter().map(|link| link.url).collect::<Vec<_>>();
        let (file, page) = ("https://e.org/1.pdf", "https://e.org/full/1");
        assert_eq!(
            urls(links(&["https://e.org/1", file, "https://e.org/1.zip"], &["https://e.org/2.pdf"])),
            [file]
        );
        assert_eq!(urls(links(&["https://e.org/1"], &[file])), [file]);
        let core = DublinCore { identifiers: texts(&[page, file]), ..DublinCore::default() };
        let called = RecordLinks::of(&core, &[page.to_owned(), "javascript:x".to_owned()]);
        assert_eq!(urls(called), [page, file]);
    }

    #[test]
    fn the_links_of_a_record_have_roles() {
        let alternative = "info:eu-repo/semantics/altIdentifier/doi/10.1000/1";
        let related =
            ["https://example.org/2.pdf", "10.1000/1", "https://example.org/2.pdf", alternative, "10.1000/2"];
        let links = links(&["x", "urn:nbn:de:1", "https://example.org/1"], &related);
        let urls = |links: &[Link]| links.iter().map(|link| link.url.clone()).collect::<Vec<_>>();
        assert_eq!(
            urls(&links.identifying),
            ["https://nbn-resolving.org/urn:nbn:de:1", "https://example.org/1", "https://doi.org/10.1000/1"]
        );
        assert_eq!(urls(&links.related), ["https://example.org/2.pdf", "https://doi.org/10.1000/2"]);
        assert_eq!(
            (links.doi(), links.persistent().map(|link| link.kind)),
            (Some("10.1000/1"), Some(LinkKind::Doi))
        );
        assert_eq!(links.pdf().map(|link| link.url.as_str()), Some("https://example.org/2.pdf"));
    }

    #[test]
    fn the_number_of_links_is_limited() {
        let urls: Vec<String> = (0..LINKS_MAX).map(|number| format!("http://example.org/{number}")).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let links = links(&urls[..LINKS_MAX - 1], &["http://a/", "http://b/"]);
        assert_eq!((links.identifying.len(), links.related.len()), (LINKS_MAX - 1, 1));
    }
}
