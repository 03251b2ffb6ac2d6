//! Keeps web pages out: a browser of an operator sends requests of any page that it shows.
//!
//! A page of a foreign name can point this name at the admin listener (DNS rebinding), and then reads what it answers.
//! The name stays in `Host`. Requests that change something carry the origin of their page in `Origin`.

use crate::serve::routes::Access;
use http::{Method, header};
use pingora_http::RequestHeader;
use std::net::{IpAddr, Ipv6Addr};

/// The host names by which clients may address the admin listener: `localhost`, all IP addresses, and these.
pub(crate) struct AllowedHosts(pub(crate) Vec<String>);

impl AllowedHosts {
    /// Why a request is refused; `None` if no web page of a foreign name can have sent it. What everyone may have contains
    /// nothing that such a page could use.
    pub(super) fn refusal(&self, request: &RequestHeader, access: Access) -> Option<&'static str> {
        if access != Access::Everyone && !self.contains(&host_of(request)) {
            return Some(
                "this host name is not allowed; use an IP address in the URL, or add the name to admin.hosts in \
                 oaimend.toml",
            );
        }
        let only_reads = matches!(request.method, Method::GET | Method::HEAD);
        (!only_reads && request.headers.contains_key(header::ORIGIN))
            .then_some("requests of web pages are refused")
    }

    /// Whether a host, with or without a port, is allowed. An IP address cannot be pointed elsewhere.
    fn contains(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        if inner.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()) || name.parse::<IpAddr>().is_ok() {
            return true;
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_named = |allowed: &str| allowed.trim_end_matches('.').eq_ignore_ascii_case(name);
        is_named("localhost") || self.0.iter().any(|allowed| is_named(allowed))
    }
}

fn host_of(request: &RequestHeader) -> String {
    match (request.uri.authority(), request.headers.get(header::HOST)) {
        (Some(authority), _) => authority.as_str().to_owned(),
        (None, Some(host)) => String::from_utf8_lossy(host.as_bytes()).into_owned(),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_allowed_by_list_and_addresses_always() {
        let allowed = AllowedHosts(vec!["oai.example.org".to_owned(), "node".to_owned()]);
        for host in [
            "localhost",
            "LOCALHOST:8081",
            "localhost.:1",
            "127.0.0.1:8081",
            "10.0.0.7",
            "192.0.2.1:80",
            "[::1]:8081",
            "[fd00::7]",
            "oai.example.org",
            "OAI.Example.org:8081",
            "oai.example.org.",
            "node:8081",
        ] {
            assert!(allowed.contains(host), "{host}");
        }
        for host in [
            "",
            ":8081",
            "evil.example",
            "evil.example:8081",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "x.oai.example.org",
            "oai.example.org.evil.example",
            "oai.example.org@evil.example",
            "evil.example/oai.example.org",
            "[127.0.0.1]x",
            "[evil.example]",
        ] {
            assert!(!allowed.contains(host), "{host}");
        }
    }
}
