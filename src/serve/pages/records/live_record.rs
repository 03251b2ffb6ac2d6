//! The page of a record of a repository that is not mirrored: from the response of its source to `GetRecord`.
//!
//! The request goes through the proxy and its cache, as that of a harvester does. This module says what is requested,
//! and makes the page of the response.

use super::collection::{COMMON_FORMAT, SourceFacts};
use super::item::ItemRecords;
use super::record::{FoundRecord, RecordOrigin, Rendering, notice};
use crate::config::Mapping;
use crate::serve::pages::answer::form_of;
use crate::serve::pages::answered_request::{AnsweredRequest, ResponseBody};
use crate::serve::pages::rendering::RenderLimits;
use crate::serve::pages::repositories::description::{cached_formats, known_name};
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_oai::datestamp::{Granularity, to_secs};
use oaimend_oai::{ErrorCode, Request, UnixSecs};
use oaimend_pages::RecordForm;
use oaimend_pages::html::{DeletedRecordPage, FormatTab, NoRecordPage, NoRecordReason, UnknownRecordPage};
use oaimend_pages::oai_page::{OaiContent, OaiPage};
use oaimend_pages::record::RecordAddress;
use oaimend_pages::record::Related;
use oaimend_pages::route::RecordTarget;
use oaimend_pages::texts::plain;
use oaimend_record::RecordDocument;
use oaimend_store::{RecordRepairs, RecordStatus, StoredRecord};
use std::sync::Arc;

/// A request for the page of a record that is not mirrored.
#[derive(Debug)]
pub(crate) struct LiveRecordRequest {
    gateway: Arc<GatewayState>,
    mapping: Arc<Mapping>,
    target: RecordTarget,
    form: RecordForm,
    /// The headers of the request.
    headers: HeaderMap,
    /// The name of the repository, or its id if the name is not known.
    repository_name: String,
    /// The formats of the repository, as far as they are known.
    formats: Vec<String>,
}

/// The errors of a source that has no such record.
const UNKNOWN_RECORD: [ErrorCode; 4] = [
    ErrorCode::IdDoesNotExist,
    ErrorCode::CannotDisseminateFormat,
    ErrorCode::NoRecordsMatch,
    ErrorCode::BadArgument,
];

impl LiveRecordRequest {
    /// The request for this page. Reads what is known of the repository, and sends nothing.
    pub(crate) async fn new(
        served: &ServedRepositories,
        gateway: Arc<GatewayState>,
        mapping: Arc<Mapping>,
        target: RecordTarget,
        headers: &HeaderMap,
    ) -> Self {
        // Without them the page has the id in place of the name, and fewer formats.
        let name = known_name(served, &mapping).await.unwrap_or_default();
        let formats = cached_formats(served, &mapping).await;
        Self {
            repository_name: name.unwrap_or_else(|| mapping.id().to_owned()),
            formats: formats.unwrap_or_default().into_iter().map(|format| format.prefix).collect(),
            form: form_of(&target, headers),
            headers: headers.clone(),
            gateway,
            mapping,
            target,
        }
    }

    /// The request to the source. `None` if no record can have this identifier or format.
    pub(crate) fn request(&self) -> Option<Request> {
        let request = Request::get_record(&self.target.identifier, self.prefix());
        Request::parse(request.query().as_bytes()).ok()
    }

    fn prefix(&self) -> &str {
        self.target.format.as_deref().unwrap_or(COMMON_FORMAT)
    }

    /// The page of the response to the request.
    pub(crate) async fn render(self, limits: &RenderLimits, answered: AnsweredRequest) -> Response {
        let AnsweredRequest { status, headers, body, memory: _held } = answered;
        let page = match body {
            ResponseBody::Whole(body) if status == 200 => match OaiPage::read(&body) {
                Ok(page) => self.page_of(limits, page.content).await,
                Err(_) => self.failed(502),
            },
            ResponseBody::Whole(_) => self.failed(status),
            ResponseBody::BrokenOff(_) | ResponseBody::NotShown(_) => self.failed(502),
        };
        let kept = headers.into_iter().filter(|(name, _)| *name != "Cache-Control");
        kept.fold(page, |page, (name, value)| page.with(name, value))
    }

    async fn page_of(self, limits: &RenderLimits, content: OaiContent) -> Response {
        match content {
            OaiContent::Record { xml, document: Some(document) } if document.is_deleted => {
                drop(xml);
                self.deleted(&document.datestamp)
            }
            OaiContent::Record { xml, document: Some(document) } => self.show(limits, xml, document).await,
            OaiContent::Errors(errors) if errors.iter().any(|error| is_unknown_record(&error.code)) => {
                self.unknown()
            }
            _ => self.failed(502),
        }
    }

    async fn show(self, limits: &RenderLimits, xml: String, document: RecordDocument) -> Response {
        let prefix = self.prefix().to_owned();
        let others = self.formats.iter().filter(|format| **format != prefix && *format != COMMON_FORMAT);
        let mut prefixes = vec![COMMON_FORMAT.to_owned()];
        prefixes.extend((prefix != COMMON_FORMAT).then(|| prefix.clone()));
        prefixes.extend(others.cloned());
        let tab = |other: String| FormatTab {
            is_default: other == COMMON_FORMAT,
            is_current: other == prefix,
            prefix: other,
        };
        let is_day = document.datestamp.len() == "2020-01-01".len();
        let datestamp_secs = to_secs(&document.datestamp).unwrap_or(UnixSecs(0));
        let record = StoredRecord {
            identifier: document.identifier,
            datestamp_secs,
            stamp_secs: datestamp_secs,
            sequence: 0,
            set_specs: document.set_specs.into(),
            status: RecordStatus::Live,
            bytes: xml.into(),
            layout: None,
        };
        let found = FoundRecord {
            // The source was asked for this record alone.
            item: ItemRecords { best: record.clone(), common: None },
            record,
            formats: prefixes.into_iter().map(tab).collect(),
            repairs: RecordRepairs::default(),
            origin: RecordOrigin::Source,
            related: Related::None,
        };
        let rendering = Rendering {
            gateway: Arc::clone(&self.gateway),
            mapping: Arc::clone(&self.mapping),
            target: self.target.clone(),
            form: self.form,
            found,
            facts: SourceFacts {
                name: self.repository_name.clone(),
                granularity: if is_day { Granularity::Day } else { Granularity::Second },
            },
        };
        if let Some(unchanged) = rendering.unchanged(&self.headers) {
            return unchanged;
        }
        let rendered = limits.run(rendering.xml_bytes(), move || rendering.render()).await;
        rendered.ok().and_then(Result::ok).unwrap_or_else(|| self.failed(502))
    }

    fn address(&self) -> RecordAddress<'_> {
        RecordAddress { repository: self.mapping.id(), identifier: &self.target.identifier, format: None }
    }

    /// The response if no such record exists.
    pub(crate) fn unknown(&self) -> Response {
        let (site, repository_name, address) = (&self.gateway.site, &*self.repository_name, self.address());
        notice(404, self.form, plain::UNKNOWN_RECORD, || {
            UnknownRecordPage { site, repository_name, address }.render()
        })
    }

    fn deleted(&self, deleted_at: &str) -> Response {
        let (site, repository_name, address) = (&self.gateway.site, &*self.repository_name, self.address());
        notice(410, self.form, plain::RECORD_DELETED, || {
            DeletedRecordPage { site, repository_name, address, deleted_at }.render()
        })
    }

    /// The response to a crawler, or to a request for links, for which the source is not asked.
    pub(crate) fn refusal(&self, refuses_crawler: bool) -> Option<Response> {
        if refuses_crawler {
            return Some(self.not_shown(403, NoRecordReason::ForPeopleOnly));
        }
        let is_of_links = self.form == RecordForm::LinksJson;
        is_of_links.then(|| self.not_shown(404, NoRecordReason::LinksNotKnown))
    }

    /// The response if the source fails.
    fn failed(&self, status: u16) -> Response {
        self.not_shown(status, NoRecordReason::SourceFailed)
    }

    fn not_shown(&self, status: u16, reason: NoRecordReason) -> Response {
        let (site, repository_name, address) = (&self.gateway.site, &*self.repository_name, self.address());
        notice(status, self.form, reason.title(), || {
            NoRecordPage { site, repository_name, address, reason }.render()
        })
    }
}

fn is_unknown_record(code: &str) -> bool {
    UNKNOWN_RECORD.iter().any(|unknown| unknown.name() == code)
}
