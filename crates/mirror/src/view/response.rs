//! Writes the envelope of a response, and sends it as events.

use bytes::Bytes;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{ErrorCode, UnixSecs, error_response, response_head};
use oaimend_repository::{
    AnsweredBy, ByteRope, DeliveredRecord, Event, EventStream, Failure, RepositoryRequest, ResponseSummary,
    ResponseWriter, Stop,
};
use std::future::Future;
use tokio::sync::mpsc;

/// The response to a request, before it is written.
pub(crate) struct Answer {
    /// The responseDate, in seconds since 1970.
    pub(crate) date_secs: UnixSecs,
    pub(crate) content: Content,
    /// The XML after the element of the verb or of the error.
    pub(crate) container: String,
}

/// The content of a response.
pub(crate) enum Content {
    Page(Page),
    Error(ErrorCode, String),
}

/// The content of the verb element.
#[derive(Default)]
pub(crate) struct Page {
    /// The XML of its items.
    pub(crate) xml: Bytes,
    /// The number of its items.
    pub(crate) items: u64,
    /// Its records, if the request wants them reported.
    pub(crate) records: Vec<DeliveredRecord>,
    /// The XML after its items: the element of the resumptionToken.
    pub(crate) end: String,
    /// Its resumptionToken, if the list continues.
    pub(crate) token: Option<String>,
    /// `cursor` and `completeListSize`.
    pub(crate) progress: (Option<u64>, Option<u64>),
}

impl Answer {
    pub(crate) fn page(date_secs: UnixSecs, page: Page) -> Self {
        Self { date_secs, content: Content::Page(page), container: String::new() }
    }

    pub(crate) fn error(date_secs: UnixSecs, code: ErrorCode, text: impl Into<String>) -> Self {
        Self { date_secs, content: Content::Error(code, text.into()), container: String::new() }
    }
}

/// The end of the document.
const END: &str = "</OAI-PMH>";

/// Events that wait for their receiver.
const EVENTS_HELD: usize = 4;

/// The events of a response.
pub(crate) fn stream(
    request: RepositoryRequest,
    spool_bytes_max: usize,
    answer: impl Future<Output = Result<Answer, Failure>> + Send + 'static,
) -> EventStream {
    let (sender, events) = mpsc::channel(EVENTS_HELD);
    let session = async move {
        let mut summary = Box::new(ResponseSummary::default());
        let writer = ResponseWriter::new(sender.clone(), request.in_one_piece.then_some(spool_bytes_max));
        let sent = match answer.await {
            Ok(answer) => send(&request, answer, None, writer, &mut summary).await,
            Err(failure) => Err(Stop::Failed(failure)),
        };
        // The receiver may be dropped; ignore.
        let _ = match sent {
            Ok(()) => sender.send(Event::End(summary)).await,
            Err(Stop::Failed(failure)) => sender.send(Event::Failed(failure, summary)).await,
            Err(Stop::Gone) => Ok(()),
        };
    };
    EventStream::new(events, Box::pin(session))
}

/// Sends a response. `failure` is that of the source, if the mirror answers in its place.
pub(crate) async fn send(
    request: &RepositoryRequest,
    answer: Answer,
    failure: Option<Box<Failure>>,
    mut writer: ResponseWriter,
    summary: &mut ResponseSummary,
) -> Result<(), Stop> {
    let date = from_secs(answer.date_secs, Granularity::Second);
    summary.page.version = Some("2.0");
    summary.page.response_date = Some(date.clone());
    let body = match answer.content {
        Content::Error(code, text) => {
            summary.page.error = Some(code);
            let mut body = error_response(&request.echo, &date, code, &text);
            if let Some(end) = body.rfind(END) {
                body.insert_str(end, &answer.container);
            }
            body.into_bytes().into()
        }
        Content::Page(page) => {
            summary.items.set_sent(page.items);
            (summary.page.token, summary.page.progress) = (page.token, page.progress);
            if !page.records.is_empty() {
                writer.report(Event::Records(page.records)).await?;
            }
            let verb = request.request.verb().name();
            let mut head = response_head(&request.echo, &date, true);
            head.push_str(&format!("  <{verb}>\n"));
            let mut body = ByteRope::from(head.into_bytes());
            body.push(page.xml);
            body.push(format!("{}  </{verb}>\n{}{END}\n", page.end, answer.container).into());
            body
        }
    };
    writer.send(body, AnsweredBy::Mirror(failure)).await?;
    writer.finish().await
}
