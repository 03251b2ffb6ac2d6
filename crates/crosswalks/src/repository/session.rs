//! Answers a request that concerns a format of a crosswalk.

use super::converted_page::{Converted, Converter};
use super::formats::{read_formats, with_formats};
use super::list_token::ListToken;
use super::quarantine::{QuarantinedFrom, QuarantinedOf};
use super::response_date::ResponseDate;
use super::shared::{Shared, Task};
use crate::table::Crosswalk;
use crate::unconverted::Unconverted;
use bytes::Bytes;
use oaimend_base::clock::utc_datetime;
use oaimend_oai::{Argument, ErrorCode, Request, Verb, error_response, escape, response_head};
use oaimend_repository::{
    AnsweredBy, DeliveredRecord, Event, EventStream, Failure, Reason, Repository, RepositoryRequest,
    ResponseSummary, ResponseWriter, Stop,
};
use oaimend_store::{ListedFormat, QuarantinedRecord};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Maximum number of bytes of a response without records that is held.
const HELD_BYTES_MAX: usize = 4 << 20;
/// Longest response that may be an error, in bytes.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// The blanks and the line break around a record of a page, in bytes.
const MARGIN_BYTES: usize = 5;
/// Maximum number of pages of the wrapped repository that are read for one page, if no record of them can be converted.
const PAGES_MAX: usize = 10;

/// A request while it is answered.
pub(super) struct Session<'s> {
    shared: &'s Shared,
    request: &'s RepositoryRequest,
    events: mpsc::Sender<Event>,
    writer: ResponseWriter,
    summary: Box<ResponseSummary>,
}

/// A list, or one record, in a format that a crosswalk makes.
struct DerivedList<'l> {
    crosswalk: &'l Crosswalk,
    source_prefix: &'l str,
    /// The repository with the datestamps of this collection; `None` if they are those of the wrapped one.
    repository: Option<Box<dyn Repository>>,
    /// The version of the collection, until it is certain that the response shows no older one.
    unproven_version: Option<String>,
}

/// A response of the wrapped repository that was held.
struct HeldResponse {
    body: Vec<u8>,
    answered_by: AnsweredBy,
    summary: Box<ResponseSummary>,
}

/// A page that is written.
struct Page {
    /// The responseDate of the wrapped repository.
    date: ResponseDate,
    answered_by: AnsweredBy,
    /// The bytes of a response that contains no record yet, because it may be an error.
    held: Vec<u8>,
    /// The records that wait for the head of the response.
    waiting: Vec<DeliveredRecord>,
    /// The records that were sent or wait.
    records: u64,
    /// The records that were quarantined.
    quarantined: u64,
}

impl<'s> Session<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        request: &'s RepositoryRequest,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let in_one_piece = request.in_one_piece.then_some(shared.settings.spool_bytes_max);
        let writer = ResponseWriter::new(events.clone(), in_one_piece);
        Self { shared, request, events, writer, summary: Box::default() }
    }

    pub(super) async fn run(mut self, task: Task) {
        let answered = match task {
            Task::ListFormats => self.list_formats().await,
            Task::Begin(crosswalk) => self.begin(&crosswalk).await,
            Task::Continue(token) => self.continue_list(&token).await,
        };
        // The receiver may be dropped; ignore.
        let _ = match answered {
            Ok(true) => self.events.send(Event::End(self.summary)).await,
            // The events of the wrapped repository were passed on.
            Ok(false) => Ok(()),
            Err(Stop::Failed(failure)) => self.events.send(Event::Failed(failure, self.summary)).await,
            Err(Stop::Gone) => Ok(()),
        };
    }

    /// Adds the formats of the crosswalks to those of the wrapped repository, or of one item of it. An item has them if it
    /// has the format that is read.
    async fn list_formats(&mut self) -> Result<bool, Stop> {
        let held = self.hold(self.request.clone()).await?;
        let response = String::from_utf8_lossy(&held.body).into_owned();
        let mut of_item = None;
        let formats: Arc<[ListedFormat]> = match self.request.request.argument(Argument::Identifier) {
            None => self.note_formats(&response),
            Some(_) if held.summary.page.error.is_some() => Arc::from([]),
            Some(_) => {
                of_item = Some(read_formats(&response));
                self.formats().await?
            }
        };
        let is_of_item = |source: &ListedFormat| {
            of_item.as_ref().is_none_or(|formats| formats.iter().any(|format| format.prefix == source.prefix))
        };
        let derived = self.shared.derived(&formats).filter(|(_, source)| is_of_item(source));
        let added: Vec<&Crosswalk> = derived.map(|(crosswalk, _)| crosswalk).collect();
        let body = if added.is_empty() { held.body } else { with_formats(&response, &added).into_bytes() };
        self.summary = held.summary;
        self.writer.send(body.into(), held.answered_by).await?;
        self.writer.finish().await?;
        Ok(true)
    }

    /// The formats of the wrapped repository.
    async fn formats(&mut self) -> Result<Arc<[ListedFormat]>, Stop> {
        let settings = &self.shared.settings;
        let known = settings.known_formats.as_ref();
        let now_secs = settings.clock.now_secs();
        if let Some(formats) = known.and_then(|known| known.find(&settings.repository, now_secs)) {
            return Ok(formats);
        }
        let request = Request::list_metadata_formats(None);
        let echo = Arc::new(request.to_echo(&self.request.echo.base_url));
        let held = self.hold(RepositoryRequest { request, echo, ..self.request.clone() }).await?;
        Ok(self.note_formats(&String::from_utf8_lossy(&held.body)))
    }

    fn note_formats(&self, response: &str) -> Arc<[ListedFormat]> {
        let settings = &self.shared.settings;
        let formats: Arc<[ListedFormat]> = read_formats(response).into();
        if let Some(known) = &settings.known_formats
            && !formats.is_empty()
        {
            known.note(&settings.repository, Arc::clone(&formats), settings.clock.now_secs());
        }
        formats
    }

    /// The whole response to a request that asks for no records.
    async fn hold(&mut self, request: RepositoryRequest) -> Result<HeldResponse, Stop> {
        let request = RepositoryRequest { in_one_piece: false, reports_records: false, ..request };
        let mut events = self.shared.inner.answer(request);
        let (mut body, mut answered_by) = (Vec::new(), AnsweredBy::Source(200));
        while let Some(event) = events.next().await {
            match event {
                Event::Head(head) => answered_by = head.answered_by,
                Event::Body(bytes) => hold_bytes(&mut body, &bytes)?,
                Event::End(summary) => return Ok(HeldResponse { body, answered_by, summary }),
                Event::Failed(failure, summary) => {
                    self.summary = summary;
                    return Err(failure.into());
                }
                Event::Records(_) | Event::Quarantined(_) => {}
            }
        }
        Err(stopped().into())
    }

    /// Begins a list or requests a record in a format that a crosswalk can make.
    async fn begin(&mut self, crosswalk: &Crosswalk) -> Result<bool, Stop> {
        let formats = match self.formats().await {
            Ok(formats) => formats,
            Err(Stop::Failed(failure)) => return self.pass_on_unless_lacking(failure).await,
            Err(Stop::Gone) => return Err(Stop::Gone),
        };
        let source = self.shared.derived(&formats).find(|(derived, _)| derived.prefix == crosswalk.prefix);
        let Some((_, source)) = source else {
            // The repository has the format, or nothing that the crosswalk reads.
            if let Some(collections) = &self.shared.settings.collections {
                collections.note_native(&crosswalk.prefix).await?;
            }
            pass_on(self.shared.inner.answer(self.request.clone()), &self.events).await;
            return Ok(false);
        };
        let version = format!("{} of {}", crosswalk.version, source.prefix);
        let repository = match &self.shared.settings.collections {
            Some(collections) => Some(collections.begin(&crosswalk.prefix, &version).await?),
            None => None,
        };
        let unproven_version = repository.is_some().then_some(version);
        let list = DerivedList { crosswalk, source_prefix: &source.prefix, repository, unproven_version };
        let first = self.request.request.in_format(list.source_prefix);
        self.convert(list, first).await
    }

    /// Passes the request on although the formats of the wrapped repository are not known, because it may have the format
    /// itself. If it has not, the response is the failure of the request for the formats.
    async fn pass_on_unless_lacking(&mut self, of_formats: Failure) -> Result<bool, Stop> {
        let mut events = self.shared.inner.answer(self.request.clone());
        let (mut held, mut held_bytes) = (Vec::new(), 0);
        while let Some(event) = events.next().await {
            match &event {
                Event::Body(bytes) => held_bytes += bytes.len(),
                Event::End(summary) if summary.page.error == Some(ErrorCode::CannotDisseminateFormat) => {
                    return Err(of_formats.into());
                }
                _ => {}
            }
            let is_last = matches!(event, Event::End(_) | Event::Failed(..));
            held.push(event);
            // An error is shorter.
            if is_last || held_bytes > ERROR_BYTES_MAX {
                for event in held.drain(..) {
                    self.events.send(event).await.map_err(|_| Stop::Gone)?;
                }
                pass_on(events, &self.events).await;
                return Ok(false);
            }
        }
        Err(stopped().into())
    }

    async fn continue_list(&mut self, token: &ListToken) -> Result<bool, Stop> {
        let verb = self.request.request.verb();
        let is_of_request = token.repository == self.shared.settings.repository
            && verb.is_harvest()
            && token.with_metadata == (verb == Verb::ListRecords);
        if !is_of_request {
            return self.refuse_token("this resumptionToken belongs to another list").await;
        }
        let crosswalk = self.shared.crosswalk(&token.prefix);
        let Some(crosswalk) = crosswalk.filter(|crosswalk| crosswalk.version == token.version) else {
            let text = format!(
                "the crosswalk to {} has changed since the resumptionToken was sent; start the list again",
                token.prefix
            );
            return self.refuse_token(&text).await;
        };
        let repository = match &self.shared.settings.collections {
            Some(collections) => Some(collections.continue_list(&token.prefix).await?),
            None => None,
        };
        let source_prefix = &token.source_prefix;
        let list = DerivedList { crosswalk, source_prefix, repository, unproven_version: None };
        self.convert(list, self.request.request.with_token(token.inner.clone())).await
    }

    async fn refuse_token(&mut self, text: &str) -> Result<bool, Stop> {
        let date = utc_datetime(self.shared.settings.clock.now());
        self.summary.page.error = Some(ErrorCode::BadResumptionToken);
        self.summary.page.response_date = Some(date.clone());
        let body = error_response(&self.request.echo, &date, ErrorCode::BadResumptionToken, text);
        let answered_by = match self.shared.settings.collections {
            Some(_) => AnsweredBy::Mirror(None),
            None => AnsweredBy::Source(200),
        };
        self.writer.send(body.into_bytes().into(), answered_by).await?;
        self.writer.finish().await?;
        Ok(true)
    }

    /// Writes the response to a request of the wrapped repository again. A page of which no record can be converted is
    /// followed by the next one, because a page must have records.
    async fn convert(&mut self, mut list: DerivedList<'_>, first: Request) -> Result<bool, Stop> {
        let mut page = Page {
            date: ResponseDate::default(),
            answered_by: AnsweredBy::Source(200),
            held: Vec::new(),
            waiting: Vec::new(),
            records: 0,
            quarantined: 0,
        };
        let mut request = first;
        for pages in 1.. {
            self.read_page(&mut list, request, &mut page).await?;
            let is_wanting = page.records == 0 && page.quarantined > 0 && pages < PAGES_MAX;
            match &self.summary.page.token {
                Some(next) if is_wanting => request = self.request.request.with_token(next.clone()),
                _ => break,
            }
        }
        self.finish_page(&list, page).await?;
        Ok(true)
    }

    /// Reads a page of the wrapped repository, and sends its records converted.
    async fn read_page(
        &mut self,
        list: &mut DerivedList<'_>,
        request: Request,
        page: &mut Page,
    ) -> Result<(), Stop> {
        page.held.clear();
        let request =
            RepositoryRequest { request, in_one_piece: false, reports_records: true, ..self.request.clone() };
        let repository = list.repository.as_deref().unwrap_or(&*self.shared.inner);
        let mut events = repository.answer(request);
        while let Some(event) = events.next().await {
            match event {
                Event::Head(head) => {
                    page.answered_by = head.answered_by;
                    if let Some(age) = head.list {
                        self.writer.set_list_age(age);
                    }
                }
                Event::Records(records) => self.convert_records(list, records, page).await?,
                Event::Quarantined(records) => {
                    page.quarantined += records.len() as u64;
                    if self.request.reports_records {
                        self.writer.report(Event::Quarantined(records)).await?;
                    }
                }
                Event::Body(bytes) => {
                    // The responseDate of the list is fixed now.
                    self.prove_version(list).await?;
                    page.date.read(&bytes);
                    if page.records == 0 && page.quarantined == 0 {
                        hold_bytes(&mut page.held, &bytes)?;
                    }
                    self.send_waiting(page).await?;
                }
                Event::End(summary) => {
                    self.summary = summary;
                    return self.quarantine_unreported(list, page).await;
                }
                Event::Failed(failure, summary) => {
                    self.summary = summary;
                    return Err(failure.into());
                }
            }
        }
        Err(stopped().into())
    }

    /// Checks once that the response shows the current version of its collection. A list that read an older one could have
    /// a responseDate after the change, and its harvester would miss it.
    async fn prove_version(&self, list: &mut DerivedList<'_>) -> Result<(), Failure> {
        let Some((collections, version)) =
            self.shared.settings.collections.as_ref().zip(list.unproven_version.take())
        else {
            return Ok(());
        };
        if collections.is_current(&list.crosswalk.prefix, &version).await? {
            return Ok(());
        }
        let details = format!("the format {} has just changed; request it again", list.crosswalk.prefix);
        Err(Failure::new(Reason::MirrorIncomplete, details))
    }

    async fn convert_records(
        &mut self,
        list: &DerivedList<'_>,
        records: Vec<DeliveredRecord>,
        page: &mut Page,
    ) -> Result<(), Stop> {
        let settings = &self.shared.settings;
        let converted = if self.request.request.verb() == Verb::ListIdentifiers {
            Converted { records, ..Converted::default() }
        } else {
            let converter =
                Converter { settings, crosswalk: list.crosswalk, source_prefix: list.source_prefix };
            let converted = converter.convert(records).await?;
            settings.quarantine.resolve(self.from(list), &*settings.clock, &converted.records).await;
            converted
        };
        self.quarantine(list, converted.quarantined, page).await?;
        page.records += converted.records.len() as u64;
        page.waiting.extend(converted.records);
        Ok(())
    }

    /// Quarantines an entry for each record that was too long to be reported. Its bytes are not known, but it must not be
    /// missing silently.
    async fn quarantine_unreported(&mut self, list: &DerivedList<'_>, page: &mut Page) -> Result<(), Stop> {
        let count = self.summary.items.oversized();
        if self.request.request.verb() == Verb::ListIdentifiers || count == 0 {
            return Ok(());
        }
        let raw = format!("a record in {} is too long to be converted", list.source_prefix);
        let record = QuarantinedRecord {
            identifier: None,
            why: Unconverted::TooLong.name(),
            offset: 0,
            raw: raw.into_bytes(),
        };
        let repository = self.shared.settings.repository.clone();
        self.quarantine(list, vec![QuarantinedOf { repository, record }; count as usize], page).await
    }

    async fn quarantine(
        &mut self,
        list: &DerivedList<'_>,
        records: Vec<QuarantinedOf>,
        page: &mut Page,
    ) -> Result<(), Stop> {
        if records.is_empty() {
            return Ok(());
        }
        page.quarantined += records.len() as u64;
        let settings = &self.shared.settings;
        settings.quarantine.put(self.from(list), &*settings.clock, records.clone()).await?;
        if self.request.reports_records {
            let records = records.into_iter().map(|of| of.record).collect();
            self.writer.report(Event::Quarantined(records)).await?;
        }
        Ok(())
    }

    fn from<'l>(&'l self, list: &'l DerivedList<'_>) -> QuarantinedFrom<'l> {
        QuarantinedFrom {
            repository: &self.shared.settings.repository,
            prefix: &list.crosswalk.prefix,
            query: self.request.request.query(),
        }
    }

    /// Sends the records that wait, after the head of the response. They wait until the responseDate is known.
    async fn send_waiting(&mut self, page: &mut Page) -> Result<(), Stop> {
        let Some(date) = page.date.date() else { return Ok(()) };
        if page.waiting.is_empty() {
            return Ok(());
        }
        let mut xml = if self.writer.has_begun() { String::new() } else { self.head(date) };
        xml.reserve(page.waiting.iter().map(|record| record.xml.len() + MARGIN_BYTES).sum());
        for record in &page.waiting {
            xml.push_str("    ");
            xml.push_str(&record.xml);
            xml.push('\n');
        }
        let records = std::mem::take(&mut page.waiting);
        if self.request.reports_records {
            self.writer.report(Event::Records(records)).await?;
        }
        self.writer.send(xml.into_bytes().into(), page.answered_by.clone()).await
    }

    /// The beginning of a response, up to its first item.
    fn head(&self, date: &str) -> String {
        let mut xml = response_head(&self.request.echo, date, true);
        xml.push_str(&format!("  <{}>\n", self.request.request.verb().name()));
        xml
    }

    /// Sends the end of the response.
    async fn finish_page(&mut self, list: &DerivedList<'_>, mut page: Page) -> Result<(), Stop> {
        let error = if page.records == 0 { self.summary.page.error } else { None };
        if error.is_some_and(|code| page.quarantined > 0 && code != ErrorCode::NoRecordsMatch) {
            // Pages without a converted record came before it. The list has not ended.
            return self
                .refuse_token("the source does not know its resumptionToken any more")
                .await
                .map(drop);
        }
        if error.is_some() && page.quarantined == 0 {
            let held = std::mem::take(&mut page.held);
            self.writer.send(held.into(), page.answered_by).await?;
            return self.writer.finish().await;
        }
        let token = match self.summary.page.token.take() {
            Some(inner) => Some(self.wrap_token(list, inner)?),
            None => None,
        };
        self.summary.page.token.clone_from(&token);
        self.count(&page);
        let is_list = self.request.request.verb().is_harvest();
        if page.records == 0 && !(is_list && self.request.request.is_resumption()) {
            self.summary.end.has_only_quarantined = page.quarantined > 0;
            return Err(nothing_converted(list).into());
        }
        let now = utc_datetime(self.shared.settings.clock.now());
        page.date.read(format!("<responseDate>{now}</responseDate>").as_bytes());
        self.send_waiting(&mut page).await?;
        let mut end = String::new();
        if !self.writer.has_begun() {
            end = self.head(page.date.date().unwrap_or(&now));
        }
        self.write_token(token.as_deref(), &mut end);
        end.push_str(&format!("  </{}>\n</OAI-PMH>\n", self.request.request.verb().name()));
        self.writer.send(end.into_bytes().into(), page.answered_by).await?;
        self.writer.finish().await
    }

    /// Counts the records of the page in its summary.
    fn count(&mut self, page: &Page) {
        let items = &mut self.summary.items;
        items.set_sent(page.records);
        let known = items.quarantined();
        items.add_quarantined(page.quarantined.saturating_sub(known));
    }

    fn wrap_token(&self, list: &DerivedList<'_>, inner: String) -> Result<String, Failure> {
        let settings = &self.shared.settings;
        let token = ListToken {
            repository: settings.repository.clone(),
            prefix: list.crosswalk.prefix.clone(),
            source_prefix: list.source_prefix.to_owned(),
            version: list.crosswalk.version.clone(),
            with_metadata: self.request.request.verb() == Verb::ListRecords,
            inner,
        };
        token.write(&settings.token_key).ok_or_else(|| {
            let details = format!(
                "the resumptionToken of the source is too long for a list in {}; request another format",
                list.crosswalk.prefix
            );
            Failure::new(Reason::NotResumable, details)
        })
    }

    /// Writes the resumptionToken with the attributes of the wrapped repository. The last page of a list in several pages
    /// has an empty one (OAI-PMH 2.0, section 3.5).
    fn write_token(&self, token: Option<&str>, xml: &mut String) {
        if !self.request.request.verb().is_harvest()
            || token.is_none() && !self.request.request.is_resumption()
        {
            return;
        }
        let page = &self.summary.page;
        let (cursor, size) = page.progress;
        xml.push_str("    <resumptionToken");
        for (name, value) in [
            ("expirationDate", page.token_expires.clone()),
            ("completeListSize", size.map(|size| size.to_string())),
            ("cursor", cursor.map(|cursor| cursor.to_string())),
        ] {
            if let Some(value) = value {
                xml.push_str(&format!(" {name}=\""));
                escape(&value, xml);
                xml.push('"');
            }
        }
        xml.push('>');
        escape(token.unwrap_or_default(), xml);
        xml.push_str("</resumptionToken>\n");
    }
}

/// Sends all events of a response. Stops if the receiver is gone.
async fn pass_on(mut events: EventStream, receiver: &mpsc::Sender<Event>) {
    while let Some(event) = events.next().await {
        if receiver.send(event).await.is_err() {
            return;
        }
    }
}

fn hold_bytes(held: &mut Vec<u8>, bytes: &Bytes) -> Result<(), Failure> {
    if held.len() + bytes.len() > HELD_BYTES_MAX {
        let details = format!("a response without records is longer than {HELD_BYTES_MAX} bytes");
        return Err(Failure::new(Reason::TooLarge, details));
    }
    held.extend_from_slice(bytes);
    Ok(())
}

fn nothing_converted(list: &DerivedList<'_>) -> Failure {
    let details = format!(
        "no record of the response in {} can be converted into {}; see the quarantine",
        list.source_prefix, list.crosswalk.prefix
    );
    Failure::new(Reason::Unrepairable, details)
}

fn stopped() -> Failure {
    Failure::new(Reason::Incomplete, "the response of the wrapped repository stopped")
}
