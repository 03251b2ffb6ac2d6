//! What exists without a gateway: the list of repositories for people and for programs, and the rules for crawlers.

use crate::config::{Mapping, Robots};
use crate::serve::response::Response;
use oaimend_api::Operation;
use oaimend_pages::resolver::RESOLVER_PATH;
use oaimend_pages::texts::start as texts;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

type Mappings = BTreeMap<String, Arc<Mapping>>;

/// The page at `/` without a gateway, or the page for an unknown path then.
pub(crate) fn repository_list(status: u16, public_url: &str, mappings: &Mappings) -> Response {
    let mut html = String::from(concat!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n",
        "<title>oaimend</title>\n<style>",
        "body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}",
        "code{word-break:break-all}",
        "</style>\n</head>\n<body>\n",
    ));
    let (title, introduction) = match status {
        404 => (texts::UNKNOWN_TITLE, texts::UNKNOWN),
        _ => ("oaimend", texts::INTRODUCTION),
    };
    let _ = writeln!(html, "<h1>{title}</h1>\n<p>{introduction}</p>");
    if mappings.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", texts::NONE);
    } else {
        html.push_str("<ul>\n");
        for id in mappings.keys() {
            let url = format!("{public_url}/{id}");
            let url = quick_xml::escape::escape(&url);
            let _ = writeln!(html, "<li><a href=\"{url}?verb=Identify\"><code>{url}</code></a></li>");
        }
        html.push_str("</ul>\n");
    }
    let programs = texts::FOR_PROGRAMS;
    let _ = writeln!(html, "<p>{programs}<a href=\"/friends.xml\">friends.xml</a></p>\n</body>\n</html>");
    Response::new(status, "text/html; charset=UTF-8", html)
        .with("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'".to_owned())
}

/// The repositories as ListFriends XML.
pub(crate) fn friends(public_url: &str, mappings: &Mappings) -> Response {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<BaseURLs>\n");
    for id in mappings.keys() {
        let url = format!("{public_url}/{id}");
        let url = quick_xml::escape::escape(&url);
        let _ = writeln!(xml, "  <baseURL id=\"{}\">{url}</baseURL>", quick_xml::escape::escape(id));
    }
    xml.push_str("</BaseURLs>\n");
    Response::new(200, "text/xml; charset=UTF-8", xml)
}

/// The rules for crawlers. Harvesting is always allowed; some harvesters obey the rules. `sitemap` is the URL of the
/// sitemap index. With search, crawlers are kept from its results: their facets lead to ever more of them, and every
/// record is in the lists. They are always kept from the resolver and from what programs read: the JSON API, dumps, the feed
/// of changes, SRU and OpenURL.
pub(crate) fn robots(robots: Robots, sitemap: Option<&str>, has_search: bool) -> Response {
    // The longest rule that fits wins (RFC 9309, 2.2.2).
    let rules = match robots {
        Robots::Allow if has_search => {
            "Allow: /_search?verb=\nAllow: /_recent?verb=\n\
             Disallow: /_search?\nDisallow: /_search.\nDisallow: /_recent\nDisallow: /*/browse/\n"
        }
        Robots::Allow => "",
        Robots::Deny => "Allow: /*?verb=\nDisallow: /\n",
    };
    let mut text = format!("User-agent: *\n{rules}");
    if robots == Robots::Allow {
        for path in [Operation::FOLDER, "/_dump", "/_changes", "/_sru", "/_openurl", RESOLVER_PATH] {
            text.push_str(&format!("Disallow: {path}\n"));
        }
    }
    if let Some(sitemap) = sitemap {
        text.push_str(&format!("\nSitemap: {sitemap}\n"));
    }
    Response::new(200, "text/plain; charset=UTF-8", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::response::Body;
    use oaimend_upstream::settings::Limits;

    #[test]
    fn crawlers_are_kept_from_results_and_harvesters_are_not() {
        let text_of = |robots_of: Robots, has_search| {
            let Body::Bytes(body) = robots(robots_of, None, has_search).body else {
                panic!("a page in one piece")
            };
            String::from_utf8_lossy(&body).into_owned()
        };
        let without = text_of(Robots::Allow, false);
        assert!(without.contains("Disallow: /_dump\n") && !without.contains("_search"), "{without}");
        let text = text_of(Robots::Allow, true);
        let path_of = |line: &str, rule: &str| line.strip_prefix(rule).map(str::to_owned);
        let is_allowed = |url: &str| {
            let rules = text.lines().filter_map(|line| {
                let allowed = path_of(line, "Allow: ").map(|path| (path, true));
                allowed.or_else(|| path_of(line, "Disallow: ").map(|path| (path, false)))
            });
            let fitting = rules.filter(|(path, _)| url.starts_with(path.as_str()));
            fitting.max_by_key(|(path, _)| path.len()).is_none_or(|(_, is_allowed)| is_allowed)
        };
        for url in ["/_search", "/_search?verb=Identify", "/_recent?verb=ListRecords&x", "/x/records/"] {
            assert!(is_allowed(url), "{url}: {text}");
        }
        for url in [
            "/_search?q=a",
            "/_search.json?q=a",
            "/_recent",
            "/_recent?page=2",
            "/_recent.atom",
            "/_api/v1/records?repository=x",
            "/_dump?repository=x",
            "/_dump/manifest?repository=x",
            "/_changes?since=now",
            "/_resolve?identifier=x",
        ] {
            assert!(!is_allowed(url), "{url}: {text}");
        }
    }

    #[test]
    fn values_of_a_mapping_are_escaped_on_the_pages() {
        let mut mapping = Mapping::new("x", "http://source.example/oai?a='\"<b>&c", &Limits::default())
            .expect("a legal base URL");
        mapping.source_mut().base_url.set_path("/<script>");
        let mappings = BTreeMap::from([("x".to_owned(), Arc::new(mapping))]);
        for page in [
            repository_list(200, "http://p.example/\"><script>", &mappings),
            friends("http://p.example/\"><script>", &mappings),
        ] {
            let Body::Bytes(body) = page.body else { panic!("a page in one piece") };
            let text = String::from_utf8_lossy(&body).into_owned();
            assert!(!text.contains("<script"), "{text}");
            assert!(text.contains("http://p.example/&quot;&gt;&lt;script&gt;/x"), "{text}");
        }
    }
}
