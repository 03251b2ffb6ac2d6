//! Explains failures of a source to everyone, without what the source has sent.

/// What a failure with this reason means. The reasons are those of docs/reference/errors.md.
pub(crate) fn explain_failure(reason: &str) -> &'static str {
    match reason {
        "badResumptionToken" => {
            "A list ended early, because the source refused the resumptionToken of its next page."
        }
        "dns" => "The host name of the source cannot be resolved.",
        "connection-refused" => "The server of the source refuses connections.",
        "connection-timeout" => "The server of the source cannot be reached in time.",
        "connection-lost" => "The source closed the connection before it answered.",
        "tls-certificate" => "The certificate of the source is not valid.",
        "tls-protocol" => "The source has no TLS version or cipher in common with this server.",
        "http-protocol" => "The response of the source is not HTTP.",
        "response-timeout" => "The source answered too slowly.",
        "incomplete" => "The response of the source was truncated.",
        "not-resumable" => {
            "The response of the source was truncated, and a repeated request returned another page."
        }
        "circuit-open" => "The source failed often and gets no requests for a while.",
        "content-coding" => "The compression of the response is broken.",
        "too-large" => "The response of the source was too long.",
        "redirect" => "The source redirected the request to a place that is not followed.",
        "status" => "The source answered with an HTTP error.",
        "unrepairable" => "A record of the page could not be repaired.",
        "static-file" => "The file of the static repository cannot be used.",
        "empty-body" => "The source sent an empty response.",
        "html-page" => "The source sent an HTML page in place of OAI-PMH.",
        "bot-wall" => "The source sent a challenge for browsers or a login page.",
        "json-body" => "The source sent JSON in place of OAI-PMH.",
        "no-oai-pmh" | "missing-envelope" => "The source sent a document that is not OAI-PMH.",
        "version-1" => "The source sent a response of OAI-PMH 1.x that cannot be converted.",
        "static-repository" => "The source is a static repository, and not a server.",
        "unknown-error" => "The source sent an error that OAI-PMH does not define.",
        "nothing-kept" | "broken-envelope" => "The response of the source was too damaged to repair.",
        _ => "The source sent no usable response.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_repair::NotOai;
    use oaimend_repository::Reason;

    #[test]
    fn reasons_of_sources_have_a_text() {
        let unknown = explain_failure("");
        for reason in [
            Reason::Dns,
            Reason::ConnectionRefused,
            Reason::ConnectionTimeout,
            Reason::ConnectionLost,
            Reason::TlsCertificate,
            Reason::TlsProtocol,
            Reason::HttpProtocol,
            Reason::ResponseTimeout,
            Reason::Incomplete,
            Reason::NotResumable,
            Reason::Resting,
            Reason::ContentCoding,
            Reason::TooLarge,
            Reason::Redirect,
            Reason::Status,
            Reason::QuarantineReason,
            Reason::StaticFile,
            Reason::NotOai(NotOai::Empty),
            Reason::NotOai(NotOai::Html),
            Reason::NotOai(NotOai::BotWall),
            Reason::NotOai(NotOai::Json),
            Reason::NotOai(NotOai::Foreign),
            Reason::NotOai(NotOai::Version1),
            Reason::NotOai(NotOai::MissingEnvelope),
            Reason::NotOai(NotOai::StaticRepository),
            Reason::NotOai(NotOai::UnknownError),
            Reason::NotOai(NotOai::NothingKept),
            Reason::NotOai(NotOai::BrokenEnvelope),
        ] {
            assert!(reason.is_of_source(), "{}", reason.name());
            assert_ne!(explain_failure(reason.name()), unknown, "{}", reason.name());
        }
    }
}
