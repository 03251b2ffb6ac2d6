//! What a page says around its items: the head, an error, Identify, the resumptionToken.

use crate::xml::envelope_tags::EnvelopeTags;
use crate::xml::text::unescape_text;
use oaimend_oai::ErrorCode;
use oaimend_repair::{EnvelopeFacts, IdentifyFacts, Repair, RepairId, TokenFacts};
use oaimend_repository::IdentifyFields;

/// The head of a page, and what is in place of a list.
#[derive(Debug, Default)]
pub(crate) struct PageHead {
    response_date: String,
    /// The tags around the items, once the list has begun.
    envelope: Option<EnvelopeTags>,
    /// The place of the list's start tag in the whole output, in bytes.
    list_tag_at: usize,
    /// The first error, if the response is an error.
    error: Option<ErrorCode>,
    /// Whether the source wrote `badArgument`, and the engine another code: a bad token is the only argument that a
    /// request to continue a list can have.
    is_bad_argument: bool,
    identify: Option<IdentifyFields>,
}

/// The resumptionToken of a page.
#[derive(Debug, Default)]
pub(crate) struct PageToken {
    /// As written in the XML.
    written: Option<Vec<u8>>,
    expires: Option<String>,
    progress: (Option<u64>, Option<u64>),
    total_elements: Option<u64>,
}

impl PageHead {
    pub(super) fn note_envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
        self.response_date = unescape_text(envelope.response_date);
        if let Some(list) = &envelope.list {
            self.envelope = Some(EnvelopeTags::new(envelope.root_tag, list));
            self.list_tag_at = list.verb_tag_at;
        }
    }

    pub(super) fn note_error(&mut self, code: ErrorCode) {
        self.error.get_or_insert(code);
    }

    pub(super) fn note_identify(&mut self, identify: &IdentifyFacts<'_>) {
        self.identify = Some(IdentifyFields {
            earliest_datestamp: unescape_text(identify.earliest_datestamp),
            deleted_record: unescape_text(identify.deleted_record),
            granularity: unescape_text(identify.granularity),
        });
    }

    pub(super) fn note_repair(&mut self, repair: &Repair<'_>) {
        self.is_bad_argument |= repair.id == RepairId::ErrorCode
            && repair.original.eq_ignore_ascii_case(ErrorCode::BadArgument.name().as_bytes());
    }

    /// `responseDate` of the response; empty if it has none.
    pub(crate) fn response_date(&self) -> &str {
        &self.response_date
    }

    /// The tags around the items, once the list has begun.
    pub(crate) fn envelope(&self) -> Option<&EnvelopeTags> {
        self.envelope.as_ref()
    }

    /// The first error, if the response is an error.
    pub(crate) fn error(&self) -> Option<ErrorCode> {
        self.error
    }

    /// The first error, as the source meant it if it takes more arguments than the specification allows.
    pub(crate) fn refusal(&self) -> Option<ErrorCode> {
        if self.is_bad_argument { Some(ErrorCode::BadArgument) } else { self.error }
    }

    /// Takes the fields of an Identify response, so that they are noted once.
    pub(crate) fn take_identify(&mut self) -> Option<IdentifyFields> {
        self.identify.take()
    }

    /// The fields of an Identify response.
    pub(crate) fn identify(&self) -> Option<&IdentifyFields> {
        self.identify.as_ref()
    }

    /// Makes a list of headers of a list of records, also in `text`, which is everything before the first item.
    pub(crate) fn rename_to_headers(&mut self, text: &mut Vec<u8>) {
        let Some(tags) = &mut self.envelope else { return };
        let (before, after) = tags.rename_to_headers();
        let at = self.list_tag_at;
        if text.get(at..).is_some_and(|list| list.starts_with(before.as_bytes())) {
            text.splice(at..at + before.len(), after.into_bytes());
        }
    }
}

impl PageToken {
    pub(super) fn note(&mut self, token: &TokenFacts<'_>) {
        let expires = String::from_utf8_lossy(token.expiration_date).into_owned();
        *self = Self {
            written: Some(token.token.to_vec()),
            expires: Some(expires).filter(|expires| !expires.is_empty()),
            progress: (token.cursor, token.complete_list_size),
            total_elements: token.total_elements,
        };
    }

    /// Notes that the token was removed.
    pub(super) fn clear(&mut self) {
        (self.written, self.expires) = (None, None);
    }

    /// The token as written in the XML; empty at the end of a list, `None` without such an element.
    pub(crate) fn as_written(&self) -> Option<&[u8]> {
        self.written.as_deref()
    }

    /// The token, if the list continues.
    pub(crate) fn value(&self) -> Option<String> {
        self.written.as_deref().map(unescape_text).filter(|token| !token.is_empty())
    }

    /// Its `expirationDate`, as written in the XML.
    pub(crate) fn expires(&self) -> Option<&str> {
        self.expires.as_deref()
    }

    /// Its `cursor` and `completeListSize`.
    pub(crate) fn progress(&self) -> (Option<u64>, Option<u64>) {
        self.progress
    }

    /// Its `totalElements`.
    pub(crate) fn total_elements(&self) -> Option<u64> {
        self.total_elements
    }
}
