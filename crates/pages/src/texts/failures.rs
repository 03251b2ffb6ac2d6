//! Explains failures of a source to everyone, without what the source has sent.

use oaimend_oai::ErrorCode;
use oaimend_repair::NotOai;
use oaimend_repository::Reason;

/// What a failure with the name of a `Reason` or of an `ErrorCode` means. The reasons are those of
/// docs/reference/errors.md.
pub(crate) fn explain_failure(name: &str) -> &'static str {
    if name == ErrorCode::BadResumptionToken.name() {
        return "A list ended early, because the source refused the resumptionToken of its next page.";
    }
    // An earlier version may have stored another name.
    let Some(reason) = Reason::from_name(name) else { return NO_USABLE_RESPONSE };
    match reason {
        Reason::Dns => "The host name of the source cannot be resolved.",
        Reason::ConnectionRefused => "The server of the source refuses connections.",
        Reason::ConnectionTimeout => "The server of the source cannot be reached in time.",
        Reason::ConnectionLost => "The source closed the connection before it answered.",
        Reason::TlsCertificate => "The certificate of the source is not valid.",
        Reason::TlsProtocol => "The source has no TLS version or cipher in common with this server.",
        Reason::HttpProtocol => "The response of the source is not HTTP.",
        Reason::ResponseTimeout => "The source answered too slowly.",
        Reason::Incomplete => "The response of the source was truncated.",
        Reason::NotResumable => {
            "The response of the source was truncated, and a repeated request returned another page."
        }
        Reason::CircuitOpen => "The source failed often and gets no requests for a while.",
        Reason::ContentCoding => "The compression of the response is broken.",
        Reason::TooLarge => "The response of the source was too long.",
        Reason::Redirect => "The source redirected the request to a place that is not followed.",
        Reason::Status => "The source answered with an HTTP error.",
        Reason::Unrepairable => "A record of the page could not be repaired.",
        Reason::StaticFile => "The file of the static repository cannot be used.",
        Reason::NotOai(NotOai::Empty) => "The source sent an empty response.",
        Reason::NotOai(NotOai::Html) => "The source sent an HTML page in place of OAI-PMH.",
        Reason::NotOai(NotOai::BotWall) => "The source sent a challenge for browsers or a login page.",
        Reason::NotOai(NotOai::Json) => "The source sent JSON in place of OAI-PMH.",
        Reason::NotOai(NotOai::Foreign | NotOai::MissingEnvelope) => {
            "The source sent a document that is not OAI-PMH."
        }
        Reason::NotOai(NotOai::Version1) => {
            "The source sent a response of OAI-PMH 1.x that cannot be converted."
        }
        Reason::NotOai(NotOai::StaticRepository) => "The source is a static repository, and not a server.",
        Reason::NotOai(NotOai::UnknownError) => "The source sent an error that OAI-PMH does not define.",
        Reason::NotOai(NotOai::NothingKept | NotOai::BrokenEnvelope) => {
            "The response of the source was too damaged to repair."
        }
        // The source has not failed.
        Reason::AddressRefused
        | Reason::Busy
        | Reason::Quarantine
        | Reason::Ledger
        | Reason::TakenOver
        | Reason::SpoolFull
        | Reason::TapeFile
        | Reason::Configuration
        | Reason::MirrorIncomplete
        | Reason::Mirror
        | Reason::SearchBusy
        | Reason::Search
        | Reason::NotOai(_) => NO_USABLE_RESPONSE,
    }
}

const NO_USABLE_RESPONSE: &str = "The source sent no usable response.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_sources_have_a_text() {
        for reason in Reason::ALL {
            let is_explained = explain_failure(reason.name()) != NO_USABLE_RESPONSE;
            assert_eq!(is_explained, reason.is_of_source(), "{}", reason.name());
        }
        assert_ne!(explain_failure("badResumptionToken"), NO_USABLE_RESPONSE);
        assert_eq!(explain_failure(""), NO_USABLE_RESPONSE);
    }
}
