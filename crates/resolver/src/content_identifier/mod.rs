//! Identifiers in metadata, in one form for all spellings. Pure.

use oaimend_oai::named_enum;
use oaimend_record::{Link, LinkKind, read_isbn};
use oaimend_store::IdentifierKey;
use percent_encoding::percent_decode_str;
use url::Url;

named_enum! {
    /// The kind of an identifier in metadata.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum IdentifierKind {
        /// A DOI in lower case, because the DOI Handbook (2.4) lets its case have no meaning.
        Doi = "doi",
        /// A Handle in lower case. One with a prefix of DOIs is a DOI.
        Handle = "handle",
        /// A URN, with its namespace in lower case (RFC 8141, 3.1); `urn:nbn` and `urn:uuid` in lower case as a whole.
        Urn = "urn",
        /// An identifier of arXiv without version and subject class, such as `0704.0001` or `math/0309136`.
        Arxiv = "arxiv",
        /// A number of PubMed.
        Pmid = "pmid",
        /// An ISBN with 13 digits.
        Isbn = "isbn",
        /// Another URL without its scheme, its fragment and a slash at its end.
        Url = "url",
    }
}

/// An identifier in metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentIdentifier {
    /// The kind.
    pub kind: IdentifierKind,
    /// The normalised text, without the name of the kind.
    pub value: String,
}

/// Longest text that is read as an identifier, in bytes.
const TEXT_BYTES_MAX: usize = 2_048;
/// Maximum number of words of a text in which identifiers are searched.
const WORDS_MAX: usize = 200;

/// What OpenAIRE writes before the scheme and the value of an identifier in `relation`.
const OPENAIRE: &str = "info:eu-repo/semantics/altIdentifier/";

impl ContentIdentifier {
    /// The identifiers that a whole text is. It is more than one for a DOI of arXiv.
    pub fn read(text: &str) -> Vec<Self> {
        Self::read_as(text, Certainty::InRecord)
    }

    /// The identifiers that a person means with a text. It may lack its scheme where a record must name it: an ISBN with ten
    /// digits alone, a Handle, or an identifier of arXiv.
    pub fn read_request(text: &str) -> Vec<Self> {
        Self::read_as(text, Certainty::InRequest)
    }

    /// The identifiers that a text is, or contains between blanks.
    pub fn read_all(text: &str) -> Vec<Self> {
        let whole = Self::read(text);
        if !whole.is_empty() || !text.trim().contains(char::is_whitespace) {
            return whole;
        }
        let words = text.split_whitespace().take(WORDS_MAX);
        // A label such as `doi:` may be a word of its own.
        let bare = words.map(|word| word.trim_matches(|c| ".,;:()[]<>\"'".contains(c)));
        bare.filter(|word| is_certain_word(word)).flat_map(Self::read).collect()
    }

    /// Its key in the table of identifiers.
    pub fn key(&self) -> IdentifierKey {
        IdentifierKey::new(self.kind.name(), &self.value)
    }

    fn read_as(text: &str, certainty: Certainty) -> Vec<Self> {
        let text = text.trim();
        if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.contains(char::is_control) {
            return Vec::new();
        }
        let text = &of_openaire(text);
        let mut found = Vec::new();
        let mut add = |kind, value: Option<String>| {
            let Some(value) = value else { return false };
            found.push(Self { kind, value });
            true
        };
        let doi = read_doi(text);
        let of_arxiv = doi.as_deref().and_then(|doi| arxiv_number(doi.strip_prefix("10.48550/arxiv.")?));
        let arxiv = of_arxiv.or_else(|| read_arxiv(text, certainty));
        let is_doi = add(IdentifierKind::Doi, doi);
        let is_known = add(IdentifierKind::Arxiv, arxiv) || is_doi;
        let is_known = is_known
            || add(IdentifierKind::Handle, read_handle(text, certainty))
            || add(IdentifierKind::Pmid, read_pmid(text))
            || add(IdentifierKind::Isbn, read_isbn_13(text, certainty))
            || add(IdentifierKind::Urn, read_urn(text));
        if !is_known {
            add(IdentifierKind::Url, read_url(text));
        }
        found
    }
}

/// Whether a text without a scheme is an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    InRecord,
    InRequest,
}

/// A request with the second slash of a URL, which some reverse proxies remove from paths.
pub fn repaired_request(text: &str) -> String {
    for scheme in ["http:/", "https:/"] {
        if let Some(rest) = without_prefix(text, scheme)
            && !rest.starts_with('/')
        {
            return format!("{scheme}/{rest}");
        }
    }
    text.to_owned()
}

/// A word that is an identifier wherever it is. Numbers and Handles are not.
fn is_certain_word(word: &str) -> bool {
    let starts = ["10.", "doi:", "http://", "https://", "urn:", "arxiv:", "hdl:", "info:"];
    starts.iter().any(|start| without_prefix(word, start).is_some())
}

/// An identifier as OpenAIRE writes it, with its scheme before it as usual.
fn of_openaire(text: &str) -> String {
    match without_prefix(text, OPENAIRE).and_then(|rest| rest.split_once('/')) {
        Some((scheme, value)) if without_prefix(value, &format!("{scheme}:")).is_none() => {
            format!("{scheme}:{value}")
        }
        Some((_, value)) => value.to_owned(),
        None => text.to_owned(),
    }
}

/// The rest of a text after one of these labels in any case, and after colons and blanks.
fn labelled<'t>(text: &'t str, labels: &[&str]) -> Option<&'t str> {
    let rest = labels.iter().find_map(|label| without_prefix(text, label))?;
    let value = rest.trim_start_matches([':', ' ', '=']);
    // `doi` is no label of `doing`.
    let is_separate = value.len() < rest.len() || labels.iter().all(|label| label.ends_with([':', '/']));
    (is_separate && !value.is_empty()).then_some(value)
}

fn read_doi(text: &str) -> Option<String> {
    let name = match labelled(text, &["doi"]).or_else(|| labelled(text, &["urn:doi:", "info:doi/"])) {
        Some(rest) => repaired_request(rest),
        None => text.to_owned(),
    };
    let name = match ["doi.org/", "dx.doi.org/", "www.doi.org/"]
        .iter()
        .find(|host| without_prefix(&name, host).is_some())
    {
        Some(_) => format!("https://{name}"),
        None => name,
    };
    let link = Link::read(&name)?;
    match link.kind {
        LinkKind::Doi => Some(link.name.to_ascii_lowercase()),
        // Each DOI is a Handle.
        LinkKind::Handle => read_doi_name(&link.name),
        LinkKind::Urn | LinkKind::Url => None,
    }
}

fn read_doi_name(handle: &str) -> Option<String> {
    let link = Link::read(handle).filter(|link| link.kind == LinkKind::Doi)?;
    Some(link.name.to_ascii_lowercase())
}

fn read_handle(text: &str, certainty: Certainty) -> Option<String> {
    let read = |text: &str| Link::read(text).filter(|link| link.kind == LinkKind::Handle);
    let link = match labelled(text, &["handle", "hdl"]) {
        Some(rest) => read(&format!("hdl:{rest}")).or_else(|| read(rest)),
        None if without_prefix(text, "hdl.handle.net/").is_some() => read(&format!("https://{text}")),
        None if certainty == Certainty::InRequest => read(text).or_else(|| read(&format!("hdl:{text}"))),
        None => read(text),
    };
    link.map(|link| link.name.to_ascii_lowercase())
}

/// The URN that a text is, or that the URL of a resolver ends with.
fn read_urn(text: &str) -> Option<String> {
    let urn = match without_prefix(text, "urn:") {
        Some(_) => text,
        None => {
            let url = Link::read(text).filter(|link| matches!(link.kind, LinkKind::Url))?;
            let lower = url.name.to_ascii_lowercase();
            let start = ["/urn:nbn:", "=urn:nbn:"].iter().find_map(|start| lower.find(start))? + 1;
            let rest = text.get(start..)?;
            return read_urn(&percent_decode_str(rest.split('&').next()?).decode_utf8().ok()?);
        }
    };
    // The components after the name identify nothing (RFC 8141, 2.3).
    let name = urn.split(['#']).next()?;
    let name = ["?+", "?="].iter().find_map(|start| name.split_once(start)).map_or(name, |(name, _)| name);
    let (namespace, specific) = name.get(4..)?.split_once(':')?;
    let namespace = namespace.to_ascii_lowercase();
    let is_namespace = (2..=32).contains(&namespace.len())
        && namespace.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_legal = is_namespace && !specific.is_empty() && !specific.contains(char::is_whitespace);
    match namespace.as_str() {
        _ if !is_legal => None,
        "isbn" | "issn" | "doi" => None,
        "nbn" | "uuid" => Some(format!("urn:{namespace}:{}", specific.to_ascii_lowercase())),
        _ => Some(format!("urn:{namespace}:{specific}")),
    }
}

fn read_arxiv(text: &str, certainty: Certainty) -> Option<String> {
    if let Some(rest) =
        labelled(text, &["arxiv"]).or_else(|| labelled(text, &["oai:arxiv.org:", "info:arxiv/"]))
    {
        // A subject class may follow, such as `[cs.DL]`.
        return arxiv_number(rest.split_whitespace().next()?);
    }
    if let Some(url) = web_url(text) {
        let is_arxiv = url.host_str().is_some_and(|host| host == "arxiv.org" || host.ends_with(".arxiv.org"));
        let path =
            ["/abs/", "/pdf/", "/html/", "/ps/"].iter().find_map(|start| url.path().strip_prefix(start))?;
        return if is_arxiv { arxiv_number(path) } else { None };
    }
    if certainty == Certainty::InRequest { arxiv_number(text) } else { None }
}

/// An identifier of arXiv without its version and its subject class: `YYMM.number` since April 2007, and before
/// `archive/YYMMnumber`.
fn arxiv_number(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let text = text.trim_end_matches('/');
    let text = text.strip_suffix(".pdf").unwrap_or(text);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = match text.rsplit_once('v') {
        Some((number, version)) if is_number(version) => number,
        _ => text,
    };
    let is_month = |month: &str| matches!(month.parse(), Ok(1..=12));
    if let Some((archive, number)) = number.split_once('/') {
        let archive = archive.split('.').next()?;
        let is_archive =
            archive.len() >= 2 && archive.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        let is_old = number.len() == 7 && is_number(number) && number.get(2..4).is_some_and(is_month);
        return (is_archive && is_old).then(|| format!("{archive}/{number}"));
    }
    let (date, rest) = number.split_once('.')?;
    let is_new = date.len() == 4 && is_number(date) && date.get(2..).is_some_and(is_month);
    (is_new && matches!(rest.len(), 4 | 5) && is_number(rest)).then(|| number.to_owned())
}

fn read_pmid(text: &str) -> Option<String> {
    let number = match labelled(text, &["pmid"]).or_else(|| labelled(text, &["info:pmid/", "urn:pmid:"])) {
        Some(rest) => rest.to_owned(),
        None => {
            let url = web_url(text)?;
            let path = url.path().trim_end_matches('/');
            match url.host_str()? {
                "pubmed.ncbi.nlm.nih.gov" | "pubmed.gov" | "www.pubmed.gov" => path.strip_prefix('/')?,
                "www.ncbi.nlm.nih.gov" | "ncbi.nlm.nih.gov" => path.strip_prefix("/pubmed/")?,
                _ => return None,
            }
            .to_owned()
        }
    };
    let is_number = (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.trim_start_matches('0');
    (is_number && !number.is_empty()).then(|| number.to_owned())
}

/// An ISBN with 13 digits. One with ten digits gets the prefix 978 and another check digit (ISBN Users' Manual, 5.4).
fn read_isbn_13(text: &str, certainty: Certainty) -> Option<String> {
    let read = read_isbn(text).or_else(|| match certainty {
        Certainty::InRequest => read_isbn(&format!("isbn:{text}")),
        Certainty::InRecord => None,
    })?;
    if read.len() == 13 {
        return Some(read);
    }
    let digits = format!("978{}", read.get(..9)?);
    let weighted =
        digits.bytes().zip([1, 3].iter().cycle()).map(|(digit, weight)| u32::from(digit - b'0') * weight);
    let check = (10 - weighted.sum::<u32>() % 10) % 10;
    Some(format!("{digits}{check}"))
}

fn read_url(text: &str) -> Option<String> {
    let url = web_url(text)?;
    let host = url.host_str()?.trim_end_matches('.');
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = plain(url.path());
    match url.query() {
        Some(query) => Some(format!("{host}{port}{path}?{}", plain(query))),
        None => Some(format!("{host}{port}{}", path.trim_end_matches('/'))),
    }
}

/// The text with percent-encoding in upper case, and without that of unreserved characters (RFC 3986, 6.2.2).
fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                plain.push(char::from(byte))
            }
            Some(byte) => plain.push_str(&format!("%{byte:02X}")),
            None => plain.push('%'),
        }
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    plain.push_str(rest);
    plain
}

/// The `http` or `https` URL that a text is.
fn web_url(text: &str) -> Option<Url> {
    let is_web = ["http://", "https://"].iter().any(|scheme| without_prefix(text, scheme).is_some());
    let link = if is_web { Link::read(text) } else { None };
    Url::parse(&link.filter(|link| link.kind != LinkKind::Doi && link.kind != LinkKind::Handle)?.url).ok()
}

/// The rest of a text after a prefix in any case.
fn without_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests;
