//! The URLs of the resolver. An identifier contains any character, so it is decoded exactly once.

use crate::record::encoded_segment;
use percent_encoding::percent_decode;
use url::form_urlencoded;

/// The path of the resolver.
pub const RESOLVER_PATH: &str = "/_resolve";

/// What a request to the resolver names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverTarget {
    /// The identifier; empty for the form alone.
    pub identifier: String,
    /// Whether the response leads to the best record, as that of a Handle proxy does, and is not the page about it.
    pub leads_to_record: bool,
}

/// The URL of the page of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolverAddress<'a> {
    /// The identifier.
    pub identifier: &'a str,
}

/// The argument that leads to the best record.
const GO: &str = "go";
/// The argument that shows the page nevertheless, as in the proxy of the Handle System.
const NO_REDIRECT: &str = "noredirect";

impl ResolverTarget {
    /// Reads a request target, as received: the path of the resolver, with an identifier after it or in the argument
    /// `identifier`. Other arguments belong to an identifier that is a URL. `None` for another path, and for an identifier
    /// that is not in UTF-8.
    pub fn read(target: &[u8]) -> Option<Self> {
        let rest = target.strip_prefix(RESOLVER_PATH.as_bytes())?;
        let (path, query) = match rest.iter().position(|byte| *byte == b'?') {
            Some(at) => (rest.get(..at)?, rest.get(at + 1..)?),
            None => (rest, &b""[..]),
        };
        let mut others = Vec::new();
        let (mut has_go, mut has_no_redirect) = (false, false);
        for piece in query.split(|byte| *byte == b'&').filter(|piece| !piece.is_empty()) {
            match piece.split(|byte| *byte == b'=').next() {
                Some(name) if name == GO.as_bytes() => has_go = true,
                Some(name) if name == NO_REDIRECT.as_bytes() => has_no_redirect = true,
                _ => others.push(piece),
            }
        }
        let leads_to_record = has_go && !has_no_redirect;
        let written = match path {
            b"" | b"/" => {
                let mut arguments = form_urlencoded::parse(query);
                let identifier = arguments.find(|(name, _)| name == "identifier");
                let identifier = identifier.map(|(_, value)| value.trim().to_owned()).unwrap_or_default();
                return Some(Self { identifier, leads_to_record });
            }
            _ => path.strip_prefix(b"/")?,
        };
        let mut written = written.to_vec();
        if !others.is_empty() {
            written.push(b'?');
            written.extend(others.join(&b'&'));
        }
        let identifier = percent_decode(&written).decode_utf8().ok()?.into_owned();
        Some(Self { identifier, leads_to_record })
    }
}

impl ResolverAddress<'_> {
    /// The page. `base` is the public URL or its path, without a slash at its end.
    pub fn page(&self, base: &str) -> String {
        format!("{base}{RESOLVER_PATH}/{}", encoded_segment(self.identifier))
    }

    /// The same URL, which leads to the best record.
    pub fn best_record(&self, base: &str) -> String {
        format!("{}?{GO}", self.page(base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str) -> Option<(String, bool)> {
        ResolverTarget::read(target.as_bytes()).map(|target| (target.identifier, target.leads_to_record))
    }

    #[test]
    fn identifiers_are_decoded_once() {
        for (target, identifier) in [
            ("/_resolve", ""),
            ("/_resolve/", ""),
            ("/_resolve?identifier=+10.1000%2Fa%20b+&x=1", "10.1000/a b"),
            ("/_resolve/10.1000/xyz", "10.1000/xyz"),
            ("/_resolve/10.1000%2Fxyz", "10.1000/xyz"),
            ("/_resolve/oai:x:1", "oai:x:1"),
            ("/_resolve/https://doi.org/10.1000/xyz", "https://doi.org/10.1000/xyz"),
            ("/_resolve/http://x.example/view?id=1&a=b", "http://x.example/view?id=1&a=b"),
            ("/_resolve/http://x.example/view%3Fid=1", "http://x.example/view?id=1"),
            ("/_resolve/a%252Fb", "a%2Fb"),
            ("/_resolve/a+b", "a+b"),
            ("/_resolve/50%", "50%"),
            ("/_resolve/%0d%0aX:%00", "\r\nX:\0"),
        ] {
            assert_eq!(read(target), Some((identifier.to_owned(), false)), "{target}");
        }
        for target in ["/", "/_resolvex", "/_search", "/_resolve/%FF"] {
            assert_eq!(read(target), None, "{target}");
        }
        assert_eq!(ResolverTarget::read(b"/_resolve/\xFF"), None);
    }

    #[test]
    fn a_request_leads_to_the_record_unless_it_says_no() {
        for (target, identifier, leads) in [
            ("/_resolve/a?go", "a", true),
            ("/_resolve/a?go=1&", "a", true),
            ("/_resolve/a?noredirect", "a", false),
            ("/_resolve/a?go&noredirect", "a", false),
            ("/_resolve/http://x/?id=1&go", "http://x/?id=1", true),
            ("/_resolve/a?gone=1", "a?gone=1", false),
            ("/_resolve?identifier=a&go", "a", true),
        ] {
            assert_eq!(read(target), Some((identifier.to_owned(), leads)), "{target}");
        }
    }

    #[test]
    fn an_address_leads_to_its_identifier() {
        for identifier in ["10.1000/a b", "a?b#c%20&go", "../..//x", "\r\n", "é\"<'>"] {
            let address = ResolverAddress { identifier };
            let written = address.page("");
            assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{written}");
            assert_eq!(read(&written), Some((identifier.to_owned(), false)), "{written}");
            assert_eq!(read(&address.best_record("")), Some((identifier.to_owned(), true)));
        }
    }
}
