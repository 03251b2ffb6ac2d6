//! Which redirects of a source are followed, and to which URL.

use crate::http::address::names_private_host;
use crate::settings::SourceMapping;
use http::{Response, header};
use hyper::body::Incoming;
use oaimend_repository::{Failure, Reason};
use url::Url;

/// Whether the status is a redirect.
pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The target of a redirect from a source, if it may be followed. `name` names the source in failures.
///
/// A private source leads to its own host and port only, and to those that the mapping lists. Otherwise it could make the
/// proxy request any service of the private network.
pub(crate) fn redirect_target(
    mapping: &SourceMapping,
    name: &str,
    from: &Url,
    response: &Response<Incoming>,
) -> Result<Url, Failure> {
    let fail = |what: &str, to: &str| {
        let details = format!("{name} {what}; set base_url to the new address");
        let failure = Failure::new(Reason::Redirect, details)
            .with_evidence(mapping.secrets().mask_text(&format!("Location: {to}")));
        failure.after_status(response.status().as_u16(), None)
    };
    let Some(location) = response.headers().get(header::LOCATION) else {
        return Err(fail("redirects without a Location", ""));
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let mut to =
        from.join(location.trim()).map_err(|_| fail("redirects to an address that is no URL", &location))?;
    to.set_fragment(None);
    // User and password of a redirect are not sent. Only a URL without a host refuses this.
    let _ = (to.set_username(""), to.set_password(None));
    if !matches!(to.scheme(), "http" | "https") {
        return Err(fail("redirects to an address that is not http or https", to.as_str()));
    }
    if names_private_host(&mapping.base_url) && !is_allowed(mapping, &to) {
        let what = "is private and redirects to another host, which is not followed (redirect_hosts)";
        return Err(fail(what, to.as_str()));
    }
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(fail("redirects from https to http, which is not followed", to.as_str()));
    }
    Ok(to)
}

/// The entry of `redirect_hosts` for all hosts.
const ANY_HOST: &str = "*";

/// Whether a private source may redirect to this URL.
fn is_allowed(mapping: &SourceMapping, to: &Url) -> bool {
    let (host, port) = (to.host_str().unwrap_or_default(), to.port_or_known_default());
    let is_own =
        mapping.base_url.host_str() == Some(host) && mapping.base_url.port_or_known_default() == port;
    is_own
        || mapping.access.redirect_hosts.iter().any(|listed| match listed.rsplit_once(':') {
            Some((name, number)) if !number.ends_with(']') => name == host && number.parse().ok() == port,
            _ => listed == host || listed == ANY_HOST,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;

    #[test]
    fn private_sources_redirect_to_themselves_and_to_listed_hosts() {
        let mut mapping = SourceMapping::new(
            "x",
            "http://10.0.0.1/oai".parse().expect("a literal URL"),
            &Limits::default(),
        );
        mapping.access.redirect_hosts =
            vec!["10.0.0.2:8080".to_owned(), "files.internal".to_owned(), "[fd00::1]".to_owned()];
        for (to, expected) in [
            ("http://10.0.0.1:80/other", true),
            ("https://10.0.0.1/", false),
            ("http://10.0.0.1:8080/", false),
            ("http://10.0.0.2:8080/", true),
            ("http://10.0.0.2/", false),
            ("http://files.internal:99/", true),
            ("http://[fd00::1]:7/", true),
            ("http://127.0.0.1:6379/", false),
            ("http://example.org/", false),
        ] {
            assert_eq!(is_allowed(&mapping, &Url::parse(to).expect("a literal")), expected, "{to}");
        }
        mapping.access.redirect_hosts = vec!["*".to_owned()];
        assert!(is_allowed(&mapping, &Url::parse("http://10.9.9.9:1/").expect("a literal")));
    }
}
