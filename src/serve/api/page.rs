//! Makes the document of the API from the response of a repository.

use super::records_json::{PAGE_BYTES_MAX, RecordsJson, RecordsJsonCache, RecordsXml};
use crate::serve::pages::answered_request::{AnsweredRequest, ResponseBody};
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::rendering::{RenderMemory, RenderingFailed};
use crate::serve::problem::problem;
use crate::serve::response::{RESPONSE_SECURITY_POLICY, Response};
use crate::serve::validators::Validators;
use bytes::Bytes;
use http::HeaderMap;
use oaimend_api::{
    DocumentBudget, DocumentTooLong, FormatDocument, FormatList, LIMIT_MAX, ListCursor, ListPosition,
    OaiError, OaiItem, OaiList, OaiResponse, Operation, RecordFields, RecordPage, RepositoryDocument,
    SetDocument, SetPage, TextFields, UnreadableResponse, divide_list, items_digest, to_json,
};
use oaimend_html::fingerprint;
use oaimend_oai::ErrorCode;
use oaimend_pages::html::NoResponseReason;
use oaimend_store::{TokenKey, TokenUse};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// A request to the API that a repository answers: what is made of the response.
#[derive(Debug)]
pub(crate) struct ApiPageRequest {
    operation: Operation,
    repository: String,
    /// The kind of the repository, for its description.
    pub(crate) kind: &'static str,
    /// The selected parts of records; `None`: the common ones.
    pub(super) fields: Option<Vec<String>>,
    /// Maximum number of items in the page.
    pub(crate) limit: usize,
    /// The digest of the list, for its cursors.
    pub(super) list: u64,
    pub(super) resumed: ResumedPage,
    /// The headers of the request.
    headers: HeaderMap,
    key: TokenKey,
}

/// A page of OAI-PMH of which items were delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResumedPage {
    /// Its resumptionToken; `None` for the first page.
    pub(super) token: Option<String>,
    /// The number of its items that were delivered.
    pub(super) delivered: usize,
    /// The digest of these.
    pub(super) digest: u64,
}

/// A list of records as its response divides it.
#[derive(Debug)]
struct DividedList {
    around: AroundRecords<'static>,
    records: RecordsXml,
}

/// What a response says beside its records.
#[derive(Debug)]
struct AroundRecords<'x> {
    response_date: Cow<'x, str>,
    token: Option<String>,
    complete_list_size: Option<u64>,
}

/// When to try again if the response broke off or no memory is free, in seconds.
const RETRY_SECS: u64 = 5;

/// Why there is no document.
type Refusal = Response;

impl ApiPageRequest {
    pub(super) fn new(operation: Operation, repository: &str, headers: HeaderMap, key: TokenKey) -> Self {
        Self {
            operation,
            repository: repository.to_owned(),
            kind: "",
            fields: None,
            limit: 1,
            list: 0,
            resumed: ResumedPage::default(),
            headers,
            key,
        }
    }

    /// A document whose version is known, or 304 if the client has it.
    pub(super) fn versioned(document: Vec<u8>, version: &str, headers: &HeaderMap) -> Response {
        let validators = Validators { tag: version.to_owned(), modified_secs: None };
        let is_known = validators.are_known(headers);
        let (status, document) = if is_known { (304, Vec::new()) } else { (200, document) };
        validators.add_to(json(status, document))
    }

    /// The document of a response.
    pub(crate) async fn render(self, gateway: &Gateway, answered: AnsweredRequest) -> Response {
        let AnsweredRequest { status, headers, body, memory } = answered;
        let retry = |page: Response| page.with("Retry-After", RETRY_SECS.to_string());
        let page = match body {
            ResponseBody::Whole(xml) if status == 200 => {
                self.document(gateway, xml.into(), memory).await.unwrap_or_else(|refusal| refusal)
            }
            ResponseBody::Whole(text) => problem(status, String::from_utf8_lossy(&text).trim()),
            ResponseBody::BrokenOff(_) => retry(problem(
                503,
                "the response of the repository broke off, so that records are missing; send the same request again",
            )),
            ResponseBody::NotShown(NoResponseReason::Busy) => {
                retry(problem(503, "too many other responses are being read; send the same request again"))
            }
            ResponseBody::NotShown(_) => problem(
                502,
                "a page of this repository is longer than 8 MiB, the longest that the API reads; harvest it by OAI-PMH",
            ),
        };
        let kept = headers.into_iter().filter(|(name, _)| *name != "Cache-Control");
        kept.fold(page, |page, (name, value)| page.with(name, value))
    }

    async fn document(
        self,
        gateway: &Gateway,
        xml: Bytes,
        memory: RenderMemory,
    ) -> Result<Response, Refusal> {
        let list = self.divided(&xml);
        let known = list.as_ref().and_then(|list| self.known(&gateway.records_json, list));
        if let Some(page) = known {
            return page;
        }
        let (length, kept) = (xml.len(), Arc::clone(&gateway.records_json));
        let render = move || {
            let _held = memory;
            self.read(&xml, list.map(|list| (list.records, &*kept)))
        };
        let rendered = gateway.rendering.run(length, render).await;
        rendered
            .unwrap_or_else(|RenderingFailed| Err(problem(502, "oaimend itself failed; its log says why")))
    }

    /// The page of a list whose records are known.
    fn known(&self, kept: &RecordsJsonCache, list: &DividedList) -> Option<Result<Response, Refusal>> {
        let records = kept.find(&list.records).filter(|records| records.count <= self.limit)?;
        let next = self.sealed(next_page(list.around.token.as_ref()));
        Some(next.and_then(|next| self.page(&list.around, &records, next)))
    }

    /// The list of which nothing was delivered; `None` if its response must be read as a whole.
    fn divided(&self, xml: &Bytes) -> Option<DividedList> {
        if self.operation != Operation::Records || self.resumed.delivered > 0 || xml.len() > PAGE_BYTES_MAX {
            return None;
        }
        let (frame, records) = divide_list(xml)?;
        let read = OaiResponse::read(&frame).ok()?;
        if !read.errors.is_empty() || !read.records.items.is_empty() {
            return None;
        }
        let records =
            RecordsXml { xml: xml.slice(records), scopes: read.scopes, fields: self.fields.clone() };
        let around = AroundRecords {
            response_date: read.response_date.into_owned().into(),
            token: read.records.token,
            complete_list_size: read.records.complete_list_size,
        };
        Some(DividedList { around, records })
    }

    fn read(
        &self,
        xml: &[u8],
        written: Option<(RecordsXml, &RecordsJsonCache)>,
    ) -> Result<Response, Refusal> {
        let mut response = OaiResponse::read(xml).map_err(unreadable)?;
        if let Some(error) = response.errors.iter().find(|error| !self.is_empty_list(error)) {
            return Err(self.refusal(error));
        }
        match self.operation {
            Operation::Records => self.records(response, written),
            Operation::Sets => self.sets(&response),
            Operation::Record => {
                let record = response.records.items.pop();
                let record = record.ok_or_else(|| problem(502, "the response has no record"))?;
                let record = record.document(self.selected(), &mut DocumentBudget::default());
                let json = record.and_then(|record| to_json(&record)).map_err(too_long)?;
                Ok(self.unchanging(json))
            }
            Operation::Formats => {
                let formats = response.described.items.iter().map(|format| FormatDocument {
                    prefix: format.first("metadataPrefix").into_owned(),
                    schema: format.first("schema").into_owned(),
                    namespace: format.first("metadataNamespace").into_owned(),
                });
                Ok(self.whole(&FormatList { formats: formats.collect() }))
            }
            _ => Ok(self.whole(&self.description(&response.identify))),
        }
    }

    fn selected(&self) -> RecordFields<'_> {
        RecordFields::of(self.fields.as_deref())
    }

    fn records(
        &self,
        response: OaiResponse<'_>,
        kept: Option<(RecordsXml, &RecordsJsonCache)>,
    ) -> Result<Response, Refusal> {
        let OaiResponse { response_date, records: list, .. } = response;
        let name = |item: &OaiItem<'_>| (item.identifier().into_owned(), item.datestamp().into_owned());
        let (shown, next) = self.shown(&list, name)?;
        let mut left = DocumentBudget::default();
        let records = shown.iter().map(|item| item.document(self.selected(), &mut left));
        let records = records.collect::<Result<Vec<_>, _>>().map_err(too_long)?;
        let json = to_json(&records).map_err(too_long)?.into();
        let written = RecordsJson { json, count: list.items.len() };
        if let Some((xml, kept)) = kept
            && shown.len() == list.items.len()
        {
            kept.keep(&xml, &written);
        }
        let around =
            AroundRecords { response_date, token: list.token, complete_list_size: list.complete_list_size };
        self.page(&around, &written, next)
    }

    fn page(
        &self,
        around: &AroundRecords<'_>,
        records: &RecordsJson,
        next: Option<String>,
    ) -> Result<Response, Refusal> {
        let is_whole = around.token.is_none() && self.resumed == ResumedPage::default();
        let page = RecordPage {
            response_date: around.response_date.clone(),
            complete_list_size: around.complete_list_size.or(is_whole.then_some(records.count as u64)),
            records: Vec::new(),
            next,
        };
        // The responseDate makes each response another one, as in OAI-PMH.
        Ok(json(200, page.to_json_with(&records.json).map_err(too_long)?))
    }

    fn sets(&self, response: &OaiResponse<'_>) -> Result<Response, Refusal> {
        let name = |set: &TextFields<'_>| (set.first("setSpec").into_owned(), String::new());
        let (shown, next) = self.shown(&response.described, name)?;
        let sets = shown.iter().map(|set| SetDocument {
            spec: set.first("setSpec").into_owned(),
            name: set.first("setName").into_owned(),
        });
        Ok(self.whole(&SetPage { sets: sets.collect(), next }))
    }

    /// The items of a page of OAI-PMH that this page shows, and the cursor of the next one.
    ///
    /// # Errors
    ///
    /// The page is no longer the one of which items were delivered, so that others would be left out or repeated.
    fn shown<'l, T>(
        &self,
        list: &'l OaiList<T>,
        name: impl Fn(&T) -> (String, String),
    ) -> Result<(&'l [T], Option<String>), Refusal> {
        let digest = |items: &[T]| {
            let names: Vec<_> = items.iter().map(&name).collect();
            items_digest(names.iter().map(|(name, datestamp)| (name.as_str(), datestamp.as_str())))
        };
        let ResumedPage { token, delivered, .. } = &self.resumed;
        let before = list
            .items
            .get(..*delivered)
            .filter(|before| before.is_empty() || digest(before) == self.resumed.digest);
        if before.is_none() {
            return Err(problem(
                409,
                &format!(
                    "the source has changed this page of its list since the last request; begin the list again, with a limit \
                     of {LIMIT_MAX} so that fewer of its pages are divided, or harvest this repository by OAI-PMH"
                ),
            ));
        }
        let end = delivered.saturating_add(self.limit);
        let (items, position) = match list.items.get(..end) {
            Some(before) if end < list.items.len() => {
                let position =
                    ListPosition::Page { token: token.clone(), delivered: end, digest: digest(before) };
                (&list.items[*delivered..end], Some(position))
            }
            _ => (&list.items[*delivered..], next_page(list.token.as_ref())),
        };
        Ok((items, self.sealed(position)?))
    }

    /// The cursor of a place in this list.
    fn sealed(&self, position: Option<ListPosition>) -> Result<Option<String>, Refusal> {
        let Some(position) = position else { return Ok(None) };
        let cursor = self.key.seal(TokenUse::Api, &ListCursor { list: self.list, position });
        cursor.map(Some).ok_or_else(|| {
            problem(
                502,
                "the resumptionToken of the source is too long for a cursor; harvest this repository by OAI-PMH",
            )
        })
    }

    fn description(&self, identify: &TextFields<'_>) -> RepositoryDocument {
        let text = |name| identify.first(name).into_owned();
        RepositoryDocument {
            id: self.repository.clone(),
            kind: self.kind,
            base_url: text("baseURL"),
            name: text("repositoryName"),
            admin_emails: identify.all("adminEmail").map(|email| email.clone().into_owned()).collect(),
            earliest_datestamp: text("earliestDatestamp"),
            deleted_record: text("deletedRecord"),
            granularity: text("granularity"),
        }
    }

    /// A document that changes only with what it describes.
    fn whole(&self, document: &impl Serialize) -> Response {
        self.unchanging(serde_json::to_vec(document).expect("a document is JSON"))
    }

    /// The same as JSON.
    fn unchanging(&self, text: Vec<u8>) -> Response {
        let version = fingerprint([text.as_slice()]);
        Self::versioned(text, &version, &self.headers)
    }

    /// Whether an error means that there are no items.
    fn is_empty_list(&self, error: &OaiError) -> bool {
        let is_first = self.resumed == ResumedPage::default();
        match (self.operation, ErrorCode::from_name(&error.code)) {
            (Operation::Records, Some(ErrorCode::NoRecordsMatch)) => is_first,
            (Operation::Sets, Some(ErrorCode::NoSetHierarchy)) => is_first,
            (Operation::Formats, Some(ErrorCode::NoMetadataFormats)) => true,
            _ => false,
        }
    }

    fn refusal(&self, error: &OaiError) -> Refusal {
        let detail = format!("{}: {}", error.code, error.text);
        let code = ErrorCode::from_name(&error.code);
        if code == Some(ErrorCode::BadResumptionToken) && self.resumed.token.is_some() {
            let text = format!(
                "this cursor has expired: the repository does not continue its list any more; begin the list again without \
                 cursor ({detail})"
            );
            return problem(410, &text);
        }
        let status = match code {
            Some(ErrorCode::IdDoesNotExist | ErrorCode::CannotDisseminateFormat) => 404,
            Some(ErrorCode::BadArgument | ErrorCode::BadResumptionToken) => 400,
            Some(ErrorCode::NoRecordsMatch | ErrorCode::NoSetHierarchy) => 409,
            _ => 502,
        };
        problem(status, &detail)
    }
}

/// The page of OAI-PMH with this token.
fn next_page(token: Option<&String>) -> Option<ListPosition> {
    Some(ListPosition::Page { token: Some(token?.clone()), delivered: 0, digest: 0 })
}

fn unreadable(error: UnreadableResponse) -> Refusal {
    problem(502, &error.to_string())
}

fn too_long(error: DocumentTooLong) -> Refusal {
    problem(502, &error.to_string())
}

/// A response with a document. Browsers must not execute the XML in it.
fn json(status: u16, document: Vec<u8>) -> Response {
    Response::new(status, "application/json", document)
        .with("Content-Security-Policy", RESPONSE_SECURITY_POLICY.to_owned())
        .with("Cache-Control", "no-cache".to_owned())
        .compressible()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::response::Body;

    #[test]
    fn records_are_read_once() {
        let (kept, key) = (RecordsJsonCache::default(), TokenKey::new([1; 32]));
        let mut request = ApiPageRequest::new(Operation::Records, "x", HeaderMap::new(), key);
        request.limit = 3;
        let respond = |request: &ApiPageRequest, records: &str, token: &str| {
            let xml = format!(
                "<OAI-PMH xmlns:p='u'><responseDate>{token}</responseDate><ListRecords>{records}\
                 <resumptionToken>{token}</resumptionToken></ListRecords></OAI-PMH>"
            );
            let xml = Bytes::from(xml);
            let list = request.divided(&xml);
            let known = list.as_ref().and_then(|list| request.known(&kept, list));
            let (is_known, kept) = (known.is_some(), list.map(|list| (list.records, &kept)));
            let page = known.unwrap_or_else(|| request.read(&xml, kept)).unwrap_or_else(|refusal| refusal);
            let Body::Bytes(json) = page.body else { panic!("a stream") };
            let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
            assert_eq!(json["responseDate"], token, "{json}");
            let next = json["next"].as_str().expect("a cursor").to_owned();
            (is_known, json["records"].clone(), next)
        };
        let header =
            |name: &str| format!("<header status='deleted'><identifier>{name}</identifier></header>");
        let record = |name: &str| format!("<record>{}</record>", header(name));
        let with_namespace = |name: &str| format!("<record xmlns:q='u'>{}</record >", header(name));
        for (first, last) in [(record("a"), record("z")), (with_namespace("b"), with_namespace("y"))] {
            let records = format!("{first}<!-- c -->{last}");
            let (is_known, read, next) = respond(&request, &records, "1");
            assert!(!is_known && read.as_array().map(Vec::len) == Some(2), "{read}");
            let (is_known, again, other_next) = respond(&request, &records, "2");
            assert!(is_known && again == read && other_next != next, "{again}");
            // Lists that begin or end with the same records are others.
            for other in [with_namespace("c"), record("d")] {
                for records in [format!("{other}{last}"), format!("{first}{other}")] {
                    let (is_known, others, _) = respond(&request, &records, "1");
                    assert!(!is_known && others != read, "{records}");
                }
            }
            request.fields = Some(vec!["identifier".to_owned()]);
            assert!(!respond(&request, &records, "1").0, "a selection has its own JSON");
            (request.fields, request.limit) = (None, 1);
            let (is_known, short, _) = respond(&request, &records, "1");
            assert!(!is_known && short.as_array().map(Vec::len) == Some(1), "{short}");
            request.limit = 3;
        }
    }

    #[test]
    fn a_list_is_empty_only_if_all_errors_say_so() {
        let request = ApiPageRequest::new(Operation::Records, "x", HeaderMap::new(), TokenKey::new([1; 32]));
        let status = |errors: &str| {
            let xml = format!("<OAI-PMH>{errors}</OAI-PMH>");
            let read = request.read(xml.as_bytes(), None);
            read.unwrap_or_else(|refusal| refusal).status
        };
        let (none, wrong) = ("<error code='noRecordsMatch'/>", "<error code='badArgument'>no</error>");
        assert_eq!(status(none), 200);
        assert_eq!(status(&format!("{none}{none}")), 200);
        assert_eq!(status(&format!("{none}{wrong}")), 400);
        assert_eq!(status(&format!("{wrong}{none}")), 400);
    }
}
