//! Explains why an exchange failed, and what to do.

use crate::http::address::{Refused, Unresolved};
use crate::http::deadline::TimedOut;
use crate::http::proxy::{ProxyFailed, Unsupported};
use crate::settings::SourceMapping;
use hyper_util::client::legacy;
use oaimend_repository::{Failure, Reason, for_operators};
use rustls::{AlertDescription, CertificateError};
use std::error::Error;
use std::io::ErrorKind;
use url::Url;

/// The failure that an error of the client library means for a request to `url`.
pub(crate) fn explain_error(
    mapping: &SourceMapping,
    name: &str,
    error: &(dyn Error + 'static),
    url: &Url,
) -> Failure {
    let host = &host_of(url);
    if let Some(refused) = cause::<Refused>(error) {
        return refused_address(name, refused, 0);
    }
    if let Some(unsupported) = cause::<Unsupported>(error) {
        let remedy = "set the variable, or proxy in the mapping, to one";
        return Failure::new(
            Reason::Configuration,
            format!("{name}: {}; {remedy}", for_operators(unsupported, "its proxy cannot be used")),
        );
    }
    if let Some(failed) = cause::<ProxyFailed>(error) {
        return explain_proxy(name, failed, error, host);
    }
    if let Some(unresolved) = cause::<Unresolved>(error) {
        let host = for_operators(format_args!("the name {}", url.host_str().unwrap_or_default()), "its name");
        let details = format!("{name}: {host} cannot be resolved ({unresolved}); check base_url");
        return Failure::new(Reason::Dns, details);
    }
    if let Some(tls) = cause::<rustls::Error>(error) {
        let (reason, remedy) = match tls {
            rustls::Error::InvalidCertificate(_) => (
                Reason::TlsCertificate,
                "tell its operator, or set tls.ca_file, or tls.verify = false if it must be trusted",
            ),
            rustls::Error::AlertReceived(alert) if is_about_client(*alert) => (
                Reason::TlsProtocol,
                "it refuses the client certificate, or requires one; check tls.client_certificate",
            ),
            _ => (Reason::TlsProtocol, "it may support only TLS 1.0 or 1.1, which oaimend does not support"),
        };
        let why = match tls {
            // These quote the name of the source.
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidForNameContext { .. } | CertificateError::Other(_),
            ) => for_operators(tls, "invalid peer certificate"),
            _ => tls.to_string(),
        };
        return Failure::new(reason, format!("{name}: TLS with {host} fails: {why}; {remedy}"));
    }
    if cause::<std::io::Error>(error).is_some_and(|error| error.kind() == ErrorKind::TimedOut) {
        let limit = mapping.timeouts.connect;
        let details = format!("{name}: no connection to {host} within {limit:?} (connect_timeout_secs)");
        return Failure::new(Reason::ConnectionTimeout, details);
    }
    let (reason, what) = kind_of(error);
    let cause = for_operators(format_args!(" ({})", innermost(error)), "");
    Failure::new(reason, format!("{name}: {host} {what}{cause}"))
}

fn explain_proxy(name: &str, failed: &ProxyFailed, error: &(dyn Error + 'static), host: &str) -> Failure {
    let reason = match cause::<Unresolved>(failed) {
        Some(_) => Reason::Dns,
        None => kind_of(error).0,
    };
    let (proxy, cause) = (failed.proxy(), innermost(failed));
    let remedy = if cause.contains("authorization required") {
        "set user and password in the URL of the proxy"
    } else {
        "check proxy in the mapping, and the rules of the proxy"
    };
    let proxy = for_operators(format_args!("the proxy {proxy}"), "its proxy");
    let cause = for_operators(format_args!(" ({cause})"), "");
    Failure::new(reason, format!("{name}: {proxy} makes no connection to {host}{cause}; {remedy}"))
}

/// Whether an alert of the source is about our certificate.
fn is_about_client(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied
    )
}

/// The failure of a request to an address that is not allowed.
pub(crate) fn refused_address(name: &str, refused: &Refused, redirects: usize) -> Failure {
    let how = if redirects > 0 { "redirects to an address that is not followed" } else { "is not requested" };
    Failure::new(
        Reason::AddressRefused,
        format!("{name} {how}: {}", for_operators(refused, "it is not public")),
    )
}

/// The failure of a response that was not received in time.
pub(crate) fn timed_out(mapping: &SourceMapping, name: &str, timed_out: TimedOut, url: &Url) -> Failure {
    let host = host_of(url);
    let details = match timed_out {
        TimedOut::Step => {
            let limit = mapping.timeouts.read;
            format!("{name}: {host} was silent for {limit:?} (read_timeout_secs)")
        }
        TimedOut::Deadline => {
            let limit = mapping.limits.first_record_timeout;
            format!("{name} sent no record within {limit:?} (first_record_timeout_secs)")
        }
    };
    Failure::new(Reason::ResponseTimeout, details)
}

/// The host of a URL. Harvesters do not learn its name.
fn host_of(url: &Url) -> String {
    for_operators(url.host_str().unwrap_or_default(), "its server")
}

/// The first error of that type in the chain of causes.
pub(crate) fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<T>() {
            return Some(found);
        }
        // An error inside an io::Error is not its source.
        next = match cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    None
}

/// The text of the first cause.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

fn kind_of(error: &(dyn Error + 'static)) -> (Reason, &'static str) {
    match cause::<std::io::Error>(error).map(std::io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => {
            return (
                Reason::ConnectionRefused,
                "refuses the connection; check base_url, or wait until it is up",
            );
        }
        Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) => {
            return (Reason::ConnectionLost, "closed the connection");
        }
        _ => {}
    }
    if error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect) {
        return (Reason::ConnectionRefused, "cannot be reached");
    }
    match cause::<hyper::Error>(error) {
        Some(http) if http.is_parse() => (Reason::HttpProtocol, "does not speak HTTP"),
        Some(http) if http.is_incomplete_message() => {
            (Reason::Incomplete, "closed the connection before the response was complete")
        }
        // The client wraps errors that happen before the header.
        _ if error.is::<hyper::Error>() => (Reason::Incomplete, "aborted its response"),
        _ => (Reason::ConnectionLost, "closed the connection"),
    }
}
