//! Responses that need no source: the start page, the list of repositories, health and refusals.

use crate::config::{Mapping, Robots};
use bytes::Bytes;
use futures::stream::BoxStream;
use oaimend_base::clock;
use oaimend_repository::Failure;
use oaimend_store::MirrorError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A response that needs no source.
#[derive(Debug)]
pub(crate) struct OwnPage {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body, if it is not a stream.
    pub(crate) body: Bytes,
    /// A body of any length in place of `body`.
    pub(crate) stream: Option<BodyStream>,
    /// Whether it is answered without a quota: a health check.
    pub(crate) is_health: bool,
    /// Whether it is sent with gzip to clients that accept it.
    pub(crate) may_compress: bool,
}

/// A body of any length. One piece is held at a time. If one fails, the response is truncated.
pub(crate) struct BodyStream(pub(crate) BoxStream<'static, Result<Bytes, MirrorError>>);

impl std::fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BodyStream")
    }
}

/// A response of the admin listener.
pub(crate) enum AdminResponse {
    Page(OwnPage),
    /// A response of any length. One piece is held at a time. If one fails, the response is truncated.
    Stream {
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, MirrorError>>,
    },
}

impl From<OwnPage> for AdminResponse {
    fn from(page: OwnPage) -> Self {
        Self::Page(page)
    }
}

type Mappings = BTreeMap<String, Arc<Mapping>>;

/// The Content-Security-Policy of responses of repositories. A browser would execute XHTML script in their records.
pub(crate) const RESPONSE_SECURITY_POLICY: &str = "default-src 'none'; sandbox";
/// The `Vary` field of responses of repositories.
pub(crate) const RESPONSE_VARY: &str = "Accept-Encoding, Sec-Fetch-Dest";

impl OwnPage {
    /// A plain text.
    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self::new(status, "text/plain; charset=UTF-8", format!("{text}\n"))
    }

    /// A temporary failure with `Retry-After`.
    pub(crate) fn unavailable(retry_after_secs: u64, proxy_status: String, text: &str) -> Self {
        Self::text(503, text)
            .with("Retry-After", retry_after_secs.to_string())
            .with("Proxy-Status", proxy_status)
    }

    /// A request that fails before a request is sent to the source.
    pub(crate) fn failed(failure: &Failure) -> Self {
        let page = Self::new(failure.status(), "text/plain; charset=UTF-8", failure.text())
            .with("Proxy-Status", failure.proxy_status())
            .of_repository();
        match failure.retry_after() {
            Some(secs) => page.with("Retry-After", secs.to_string()),
            None => page,
        }
    }

    /// The request target is too long.
    pub(crate) fn uri_too_long(max: usize) -> Self {
        let text =
            format!("the request target is longer than {max} bytes, the longest that is read; send a POST");
        Self::text(414, &text)
    }

    /// The health of the server.
    pub(crate) fn health(status: u16, text: &str) -> Self {
        Self { is_health: true, ..Self::text(status, text) }
    }

    /// Refuses a client that exceeds a limit. `Proxy-Status` is absent, since the source has not failed.
    pub(crate) fn refused(retry_after_secs: u64, text: &str) -> Self {
        Self::text(503, text)
            .with("Retry-After", retry_after_secs.to_string())
            .with("Cache-Control", "no-store".to_owned())
    }

    /// An OAI-PMH response.
    pub(crate) fn oai(xml: String) -> Self {
        Self::new(200, "text/xml; charset=UTF-8", xml).of_repository()
    }

    /// The page with the headers of all responses of repositories.
    fn of_repository(self) -> Self {
        self.with("Content-Security-Policy", RESPONSE_SECURITY_POLICY.to_owned())
            .with("Vary", RESPONSE_VARY.to_owned())
    }

    /// The page at `/` without a gateway, or the page for an unknown repository then.
    pub(crate) fn repositories(status: u16, public_url: &str, mappings: &Mappings) -> Self {
        let mut html = String::from(concat!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n",
            "<title>oaimend</title>\n<style>",
            "body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}",
            "code{word-break:break-all}",
            "</style>\n</head>\n<body>\n",
        ));
        html.push_str(if status == 404 {
            "<h1>No such repository</h1>\n<p>This server has these repositories:</p>\n"
        } else {
            "<h1>oaimend</h1>\n<p>A repair proxy for OAI-PMH. Point a harvester at one of these base \
             URLs; it gets the records of the source, whole and valid.</p>\n"
        });
        if mappings.is_empty() {
            html.push_str(
                "<p>None yet. Put a file into the mappings folder, or start with --map ID=URL.</p>\n",
            );
        } else {
            html.push_str("<ul>\n");
            for id in mappings.keys() {
                let url = format!("{public_url}/{id}");
                let url = quick_xml::escape::escape(&url);
                let _ = writeln!(html, "<li><a href=\"{url}?verb=Identify\"><code>{url}</code></a></li>");
            }
            html.push_str("</ul>\n");
        }
        html.push_str("<p>For programs: <a href=\"/friends.xml\">friends.xml</a></p>\n</body>\n</html>\n");
        Self::new(status, "text/html; charset=UTF-8", html)
            .with("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'".to_owned())
    }

    /// The repositories as ListFriends XML.
    pub(crate) fn friends(public_url: &str, mappings: &Mappings) -> Self {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<BaseURLs>\n");
        for id in mappings.keys() {
            let url = format!("{public_url}/{id}");
            let url = quick_xml::escape::escape(&url);
            let _ = writeln!(xml, "  <baseURL id=\"{}\">{url}</baseURL>", quick_xml::escape::escape(id));
        }
        xml.push_str("</BaseURLs>\n");
        Self::new(200, "text/xml; charset=UTF-8", xml)
    }

    /// The rules for crawlers. Harvesting is always allowed; some harvesters obey the rules. `sitemap` is the URL of the
    /// sitemap index.
    pub(crate) fn robots(robots: Robots, sitemap: Option<&str>) -> Self {
        let rules = match robots {
            Robots::Allow => "Disallow:",
            Robots::Deny => "Allow: /*?verb=\nDisallow: /",
        };
        let mut text = format!("User-agent: *\n{rules}\n");
        if let Some(sitemap) = sitemap {
            text.push_str(&format!("\nSitemap: {sitemap}\n"));
        }
        Self::new(200, "text/plain; charset=UTF-8", text)
    }

    pub(crate) fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::new(status, "application/json", format!("{value:#}\n"))
    }

    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let headers =
            vec![("Content-Type", content_type.to_owned()), ("X-Content-Type-Options", "nosniff".to_owned())];
        Self { status, headers, body: body.into(), stream: None, is_health: false, may_compress: false }
    }

    /// A response with status 200 whose body is made while it is sent. It is sent without further compression.
    pub(crate) fn stream(
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, MirrorError>>,
    ) -> Self {
        Self { stream: Some(BodyStream(pieces)), ..Self::new(200, content_type, "") }
    }

    /// The complete HTTP/1.1 response, after which the connection is closed.
    pub(crate) fn on_the_wire(&self, instance: &str) -> Vec<u8> {
        let status = http::StatusCode::from_u16(self.status).unwrap_or_default();
        let date = httpdate::fmt_http_date(clock::now());
        let length = self.body.len();
        let mut head = format!("HTTP/1.1 {status}\r\nDate: {date}\r\nVia: 1.1 {instance}\r\n");
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(head, "Content-Length: {length}\r\nConnection: close\r\n\r\n");
        [head.as_bytes(), &self.body].concat()
    }

    /// The page with gzip for clients that accept it.
    #[must_use]
    pub(crate) fn compressible(self) -> Self {
        Self { may_compress: true, ..self }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_upstream::settings::Limits;

    #[test]
    fn values_of_a_mapping_are_escaped_on_the_pages() {
        let mut mapping = Mapping::new("x", "http://source.example/oai?a='\"<b>&c", &Limits::default())
            .expect("a legal base URL");
        mapping.source_mut().base_url.set_path("/<script>");
        let mappings = BTreeMap::from([("x".to_owned(), Arc::new(mapping))]);
        for page in [
            OwnPage::repositories(200, "http://p.example/\"><script>", &mappings),
            OwnPage::friends("http://p.example/\"><script>", &mappings),
        ] {
            let text = String::from_utf8_lossy(&page.body).into_owned();
            assert!(!text.contains("<script"), "{text}");
            assert!(text.contains("http://p.example/&quot;&gt;&lt;script&gt;/x"), "{text}");
        }
    }
}
