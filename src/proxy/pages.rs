//! What we answer ourselves: the page for people, the list for machines, health.

use crate::clock;
use crate::config::Mapping;
use crate::upstream::Failure;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A whole answer of our own.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
    /// Answered however much its client has asked: who asks that is asking after us.
    pub(super) is_health: bool,
}

type Mappings = BTreeMap<String, Arc<Mapping>>;

impl Page {
    /// A text for people and programs.
    pub(super) fn text(status: u16, text: &str) -> Self {
        Self::new(status, "text/plain; charset=UTF-8", format!("{text}\n"))
    }

    /// A text that asks to come again.
    pub(super) fn unavailable(retry_after_secs: u64, proxy_status: String, text: &str) -> Self {
        Self::text(503, text)
            .with("Retry-After", retry_after_secs.to_string())
            .with("Proxy-Status", proxy_status)
    }

    /// A request that fails before the source is asked.
    pub(super) fn failed(failure: &Failure) -> Self {
        let page = Self::new(failure.status(), "text/plain; charset=UTF-8", failure.text())
            .with("Proxy-Status", failure.proxy_status());
        match failure.retry_after() {
            Some(secs) => page.with("Retry-After", secs.to_string()),
            None => page,
        }
    }

    /// Whether we are well.
    pub(super) fn health(status: u16, text: &str) -> Self {
        Self { is_health: true, ..Self::text(status, text) }
    }

    /// Sends a client away that asks too much. No failure of the source, so
    /// nothing is said of one.
    pub(super) fn refused(retry_after_secs: u64, text: &str) -> Self {
        Self::text(503, text)
            .with("Retry-After", retry_after_secs.to_string())
            .with("Cache-Control", "no-store".to_owned())
    }

    /// An OAI-PMH response.
    pub(super) fn oai(xml: String) -> Self {
        Self::new(200, "text/xml; charset=UTF-8", xml)
    }

    /// The page at `/`, or the one that says that there is no such repository.
    pub(super) fn repositories(status: u16, public_url: &str, mappings: &Mappings) -> Self {
        let mut html = String::from(concat!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n",
            "<title>oaimend</title>\n<style>",
            "body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}",
            "td,th{text-align:left;padding:.2em 1em .2em 0;vertical-align:top}code{word-break:break-all}",
            "</style>\n</head>\n<body>\n",
        ));
        html.push_str(if status == 404 {
            "<h1>No such repository</h1>\n<p>These are the ones that are known here:</p>\n"
        } else {
            "<h1>oaimend</h1>\n<p>A repair proxy for OAI-PMH. Point a harvester at one of these base \
             URLs; it gets the records of the source, whole and valid.</p>\n"
        });
        if mappings.is_empty() {
            html.push_str(
                "<p>None yet. Put a file into the mappings folder, or start with --map ID=URL.</p>\n",
            );
        } else {
            html.push_str("<table>\n<tr><th>Base URL</th><th>Source</th></tr>\n");
            for (id, mapping) in mappings {
                let url = escaped(&format!("{public_url}/{id}"));
                let source = match &mapping.static_file {
                    // Where it lies on this machine is nobody's business who harvests.
                    Some(file) if file.path.is_some() => "a static repository file".to_owned(),
                    _ => escaped(mapping.base_url.as_str()),
                };
                let _ = writeln!(
                    html,
                    "<tr><td><a href=\"{url}?verb=Identify\"><code>{url}</code></a></td><td><code>{source}</code></td></tr>"
                );
            }
            html.push_str("</table>\n");
        }
        html.push_str("<p>For programs: <a href=\"/friends.xml\">friends.xml</a></p>\n</body>\n</html>\n");
        Self::new(status, "text/html; charset=UTF-8", html)
            .with("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'".to_owned())
    }

    /// The repositories as ListFriends XML.
    pub(super) fn friends(public_url: &str, mappings: &Mappings) -> Self {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<BaseURLs>\n");
        for id in mappings.keys() {
            let url = escaped(&format!("{public_url}/{id}"));
            let _ = writeln!(xml, "  <baseURL id=\"{}\">{url}</baseURL>", escaped(id));
        }
        xml.push_str("</BaseURLs>\n");
        Self::new(200, "text/xml; charset=UTF-8", xml)
    }

    /// Harvesting is what all of this is for; some harvesters obey.
    pub(super) fn robots() -> Self {
        Self::new(200, "text/plain; charset=UTF-8", "User-agent: *\nDisallow:\n".to_owned())
    }

    pub(super) fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::new(status, "application/json", format!("{value:#}\n"))
    }

    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let headers =
            vec![("Content-Type", content_type.to_owned()), ("X-Content-Type-Options", "nosniff".to_owned())];
        Self { status, headers, body: body.into(), is_health: false }
    }

    /// The whole answer in HTTP/1.1, after which the connection is closed.
    pub(super) fn on_the_wire(&self, instance: &str) -> Vec<u8> {
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

    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    #[test]
    fn whatever_a_mapping_says_is_text_on_the_pages() {
        let mut mapping = Mapping::new("x", "http://source.example/oai?a='\"<b>&c", &Limits::default())
            .expect("a legal base URL");
        mapping.base_url.set_path("/<script>");
        let mappings = BTreeMap::from([("x".to_owned(), Arc::new(mapping))]);
        for page in [
            Page::repositories(200, "http://p.example/\"><script>", &mappings),
            Page::friends("http://p.example/\"><script>", &mappings),
        ] {
            let text = String::from_utf8_lossy(&page.body).into_owned();
            assert!(!text.contains("<script"), "{text}");
            assert!(text.contains("http://p.example/&quot;&gt;&lt;script&gt;/x"), "{text}");
        }
    }
}
