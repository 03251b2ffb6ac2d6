//! The links from a page to other requests, and to the pages of records.

use super::super::super::oai_page::RequestAddress;
use super::super::super::record::RecordAddress;
use oaimend_html::Site;
use oaimend_oai::{Argument, Request};
use oaimend_record::Text;

/// The format that every repository has.
pub(super) const COMMON_FORMAT: &str = "oai_dc";

/// The links from the page of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestLinks<'a> {
    pub(super) site: &'a Site,
    pub(super) address: &'a RequestAddress,
    /// `None` if it is not valid.
    pub(super) request: Option<&'a Request>,
    /// The id of the repository; `None` for the view of all repositories.
    pub(super) repository: Option<&'a str>,
    pub(super) has_record_pages: bool,
}

impl RequestLinks<'_> {
    /// The URL of another request to the repository.
    pub(super) fn url_of(&self, request: &Request) -> String {
        self.address.other(self.site.base_path(), request)
    }

    /// The format of the request, or the common one.
    pub(super) fn format(&self) -> &str {
        self.request.and_then(|request| request.argument(Argument::MetadataPrefix)).unwrap_or(COMMON_FORMAT)
    }

    /// The URL of a record: its page if there is one, or the request for it. `None` if the identifier is not known as
    /// a whole.
    pub(super) fn record_url(&self, identifier: &Text) -> Option<String> {
        let name = Some(identifier).filter(|text| text.left_out_bytes == 0 && !text.value.is_empty())?;
        Some(match self.repository {
            Some(repository) if self.has_record_pages => {
                let address = RecordAddress { repository, identifier: &name.value, format: None };
                address.page(self.site.base_path())
            }
            _ => self.url_of(&Request::get_record(&name.value, self.format())),
        })
    }

    /// The URL of the records of a set.
    pub(super) fn set_url(&self, spec: &Text) -> Option<String> {
        let is_whole = spec.left_out_bytes == 0 && !spec.value.is_empty();
        is_whole.then(|| self.url_of(&Request::list_records(self.format(), Some(&spec.value), None, None)))
    }
}
