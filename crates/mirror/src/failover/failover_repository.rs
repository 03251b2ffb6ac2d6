//! The repository that asks the source, and the mirror if the source fails.

use super::answer;
use super::list_token::SourceList;
use super::source_view::SourceView;
use crate::spans::{SpanKind, Spans};
use crate::view::{MirroredSource, ViewOptions, ViewStores, response};
use oaimend_oai::datestamp::{Granularity, from_secs, to_last_second, to_secs};
use oaimend_oai::{Argument, Request, UnixSecs};
use oaimend_repository::lists::ListHistories;
use oaimend_repository::{
    Event, EventStream, Failure, ListAge, Reason, Repository, RepositoryRequest, ResponseSummary,
    ResponseWriter, Stop,
};
use oaimend_store::MirrorError;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A repository with a mirror that answers in its place. Cheap to clone.
#[derive(Clone)]
pub struct FailoverRepository(Arc<Failover>);

struct Failover {
    live: Box<dyn Repository>,
    mirror: SourceView,
    spans: Arc<Spans>,
    spool_bytes_max: usize,
}

/// Events that wait for their receiver.
const EVENTS_HELD: usize = 4;

/// How the source answered before the mirror did.
#[derive(Default)]
struct SourceEnd {
    summary: Box<ResponseSummary>,
    /// `None` if it was not asked.
    failure: Option<Failure>,
}

impl FailoverRepository {
    /// The live repository, and its mirror in these stores. `histories` finds the lists that the source has begun.
    pub fn new(
        live: Box<dyn Repository>,
        stores: ViewStores,
        options: ViewOptions,
        source: MirroredSource,
        histories: ListHistories,
    ) -> Self {
        let spans = stores.spans.of(&source.id, SpanKind::Source);
        let mirror = SourceView::new(stores, options, source, histories, Arc::clone(&spans));
        Self(Arc::new(Failover { live, mirror, spans, spool_bytes_max: options.spool_bytes_max }))
    }
}

impl Repository for FailoverRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let (sender, events) = mpsc::channel(EVENTS_HELD);
        let shared = Arc::clone(&self.0);
        let session = async move { shared.run(request, sender).await };
        EventStream::new(events, Box::pin(session))
    }
}

impl Failover {
    async fn run(&self, request: RepositoryRequest, events: mpsc::Sender<Event>) {
        let token = request.request.argument(Argument::ResumptionToken);
        if let Some(list) = token.and_then(|token| SourceList::read(token, self.mirror.token_key())) {
            let answer = answer::continue_list(&self.mirror, &request, list).await;
            return self.send(&request, answer, SourceEnd::default(), events).await;
        }
        if let Some(identifier) = request.request.argument(Argument::Identifier) {
            // The source would say that the identifier does not exist, and harvesters would delete the record.
            let is_suffixed = self.mirror.is_suffixed(identifier).await;
            if !matches!(is_suffixed, Ok(false)) {
                let answer = match is_suffixed {
                    Ok(_) => answer::answer(&self.mirror, &request).await,
                    Err(failure) => Err(failure),
                };
                return self.send(&request, answer, SourceEnd::default(), events).await;
            }
        }
        // The receiver may be dropped; ignore.
        let _ = match self.widened(&request.request).await {
            Ok(widened) => self.ask(RepositoryRequest { request: widened, ..request }, events).await,
            Err(error) => events.send(Event::Failed(error.into(), Box::default())).await,
        };
    }

    /// The request to the source and to the mirror, from the state of the last list on.
    async fn widened(&self, request: &Request) -> Result<Request, MirrorError> {
        let from = if request.verb().is_harvest() { request.argument(Argument::From) } else { None };
        let Some((from, from_secs_old)) = from.and_then(|from| Some((from, to_secs(from)?))) else {
            return Ok(request.clone());
        };
        let until_secs = request.argument(Argument::Until).and_then(to_last_second);
        let wide_secs = self.spans.widen(from_secs_old, until_secs).await?;
        let is_day = from.len() == Granularity::Day.name().len();
        let granularity = if is_day { Granularity::Day } else { Granularity::Second };
        let wide = from_secs(wide_secs, granularity);
        let wider = (wide.as_str() < from).then(|| request.starting_from(&wide)).flatten();
        Ok(wider.unwrap_or_else(|| request.clone()))
    }

    /// Asks the source, and passes its events on; asks the mirror if the source fails before its response begins.
    async fn ask(
        &self,
        request: RepositoryRequest,
        events: mpsc::Sender<Event>,
    ) -> Result<(), mpsc::error::SendError<Event>> {
        let mut live = self.live.answer(request.clone());
        let (mut has_begun, mut age) = (false, None);
        while let Some(event) = live.next().await {
            let event = match event {
                Event::Head(head) => {
                    (has_begun, age) = (true, head.list);
                    match self.record(age, None).await {
                        Ok(()) => Event::Head(head),
                        Err(error) => return events.send(Event::Failed(error.into(), Box::default())).await,
                    }
                }
                Event::End(summary) => {
                    // Some harvesters continue from the highest datestamp.
                    let latest = summary.page.latest_datestamp.as_deref().and_then(to_secs);
                    match self.record(age, latest).await {
                        Ok(()) => Event::End(summary),
                        Err(error) => Event::Failed(error.into(), summary),
                    }
                }
                Event::Failed(failure, summary) if !has_begun && fails_over(&failure) => {
                    let answer = answer::answer(&self.mirror, &request).await;
                    self.send(&request, answer, SourceEnd { summary, failure: Some(failure) }, events).await;
                    return Ok(());
                }
                other => other,
            };
            live.beside(events.send(event)).await?;
        }
        Ok(())
    }

    /// Records the times of a page of the source before the harvester has it.
    ///
    /// # Errors
    ///
    /// They are not stored, and the page must fail.
    async fn record(&self, age: Option<ListAge>, latest_secs: Option<UnixSecs>) -> Result<(), MirrorError> {
        let Some(ListAge { state_secs, response_date_secs }) = age else { return Ok(()) };
        let latest_secs = latest_secs.map_or(response_date_secs, |latest| latest.max(response_date_secs));
        self.spans.record(state_secs, latest_secs, self.mirror.now_secs()).await
    }

    /// Sends the response of the mirror; or the failure of the source, if the mirror cannot answer.
    async fn send(
        &self,
        request: &RepositoryRequest,
        answer: Result<response::Answer, Failure>,
        of_source: SourceEnd,
        events: mpsc::Sender<Event>,
    ) {
        let SourceEnd { mut summary, failure } = of_source;
        let in_one_piece = request.in_one_piece.then_some(self.spool_bytes_max);
        let writer = ResponseWriter::new(events.clone(), in_one_piece);
        let sent = match answer {
            Ok(answer) => {
                summary.end.failed_over.clone_from(&failure);
                response::send(request, answer, failure.map(Box::new), writer, &mut summary).await
            }
            Err(of_mirror) => Err(Stop::Failed(match failure {
                Some(of_source) => of_source.with_details_of(&of_mirror),
                None => of_mirror,
            })),
        };
        // The receiver may be dropped; ignore.
        let _ = match sent {
            Ok(()) => events.send(Event::End(summary)).await,
            Err(Stop::Failed(failure)) => events.send(Event::Failed(failure, summary)).await,
            Err(Stop::Gone) => Ok(()),
        };
    }
}

/// Whether the mirror may answer in place of a source with this failure. An operator who wants pages with broken
/// records to fail gets no page without these records either.
fn fails_over(failure: &Failure) -> bool {
    match failure.reason {
        Reason::Unrepairable | Reason::Quarantine => false,
        Reason::Dns
        | Reason::AddressRefused
        | Reason::ConnectionRefused
        | Reason::ConnectionTimeout
        | Reason::ConnectionLost
        | Reason::TlsCertificate
        | Reason::TlsProtocol
        | Reason::HttpProtocol
        | Reason::ResponseTimeout
        | Reason::Incomplete
        | Reason::NotResumable
        | Reason::Busy
        | Reason::CircuitOpen
        | Reason::ContentCoding
        | Reason::TooLarge
        | Reason::Redirect
        | Reason::Status
        | Reason::Ledger
        | Reason::TakenOver
        | Reason::SpoolFull
        | Reason::StaticFile
        | Reason::TapeFile
        | Reason::Configuration
        | Reason::MirrorIncomplete
        | Reason::Mirror
        | Reason::SearchBusy
        | Reason::Search
        | Reason::NotOai(_) => true,
    }
}
