//! A source as pingora sees it: a custom upstream.
//!
//! pingora asks a session for a header and for pieces of a body; the session
//! takes them from the events of [`source`](crate::source). Where the cache has
//! a part in it, the body goes from there into the spool ([`Fill`]), which
//! everybody reads, and pingora is told here only that it has ended. Thin on
//! purpose: these traits change with each release of pingora.

use super::cache::{Errand, Fill, LINGER};
use super::heads;
use crate::upstream::{Account, DetachedTask, Event, EventStream, Failure, Job, answer};
use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use pingora_core::connectors::http::custom::{Connection, Connector};
use pingora_core::protocols::http::custom::client::Session;
use pingora_core::protocols::http::custom::{BodyWrite, CustomMessageWrite};
use pingora_core::protocols::l4::socket::SocketAddr;
use pingora_core::protocols::{Digest, UniqueIDType};
use pingora_core::upstreams::peer::Peer;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A job on its way to its session, and its outcome on the way back. Travels
/// in the extensions of the request header, the only thing that both sides see.
#[derive(Clone, Debug)]
pub(super) struct Ticket(Arc<Errands>);

#[derive(Debug)]
struct Errands {
    progress: Mutex<Progress>,
    /// The answer goes through the spool, and this is what the cache wants of it.
    errand: OnceLock<Errand>,
    /// The answer in the spool.
    fill: OnceLock<Arc<Fill>>,
    /// The harvester is gone; the answer may still be wanted.
    has_left: AtomicBool,
    left: Notify,
}

#[derive(Debug)]
enum Progress {
    Waiting(Box<Job>),
    Begun,
    Ended(Box<Ended>),
}

/// What became of a job.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) account: Account,
    pub(super) failure: Option<Failure>,
}

impl Ticket {
    pub(super) fn new(job: Job) -> Self {
        Self::of(Progress::Waiting(Box::new(job)))
    }

    /// For a conversation that does not go through pingora.
    pub(super) fn begun() -> Self {
        Self::of(Progress::Begun)
    }

    fn of(progress: Progress) -> Self {
        Self(Arc::new(Errands {
            progress: Mutex::new(progress),
            errand: OnceLock::new(),
            fill: OnceLock::new(),
            has_left: AtomicBool::new(false),
            left: Notify::new(),
        }))
    }

    /// Sends the answer through the spool.
    pub(super) fn through_spool(&self, errand: Errand) {
        // A second try of pingora would find the job taken.
        let _ = self.0.errand.set(errand);
    }

    /// The answer in the spool, once its head is there.
    pub(super) fn fill(&self) -> Option<&Arc<Fill>> {
        self.0.fill.get()
    }

    /// The harvester is gone, and pingora waits for the rest of the answer.
    pub(super) fn harvester_left(&self) {
        self.0.has_left.store(true, Ordering::Release);
        if let Some(fill) = self.fill() {
            fill.first_left();
        }
        self.0.left.notify_one();
    }

    /// What became of the job, if it has ended.
    pub(super) fn ended(&self) -> Option<Ended> {
        match &*self.0.progress.lock().unwrap_or_else(PoisonError::into_inner) {
            Progress::Ended(ended) => Some(Ended::clone(ended)),
            Progress::Waiting(_) | Progress::Begun => None,
        }
    }

    pub(super) fn end(&self, account: Account, failure: Option<Failure>) {
        self.replace(Progress::Ended(Box::new(Ended { account, failure })));
    }

    fn take(&self) -> Option<Job> {
        match self.replace(Progress::Begun) {
            Progress::Waiting(job) => Some(*job),
            Progress::Begun | Progress::Ended(_) => None,
        }
    }

    fn replace(&self, progress: Progress) -> Progress {
        std::mem::replace(&mut *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner), progress)
    }
}

/// Makes sessions.
pub(super) struct SourceConnector;

#[async_trait]
impl Connector for SourceConnector {
    type Session = SourceSession;

    async fn get_http_session<P: Peer + Send + Sync + 'static>(
        &self,
        _peer: &P,
    ) -> Result<(Connection<SourceSession>, bool)> {
        Ok((Connection::Session(SourceSession::default()), false))
    }

    async fn reused_http_session<P: Peer + Send + Sync + 'static>(&self, _peer: &P) -> Option<SourceSession> {
        None
    }

    async fn release_http_session<P: Peer + Send + Sync + 'static>(
        &self,
        _session: SourceSession,
        _peer: &P,
        _idle_timeout: Option<Duration>,
    ) {
    }
}

/// One request of a harvester, as an upstream session.
#[derive(Default)]
pub(super) struct SourceSession {
    ticket: Option<Ticket>,
    /// What is under way; a mutex only because pingora wants to share what it never shares.
    under_way: Mutex<UnderWay>,
    /// The body, where it goes through the spool.
    fill: Option<Arc<Fill>>,
    head_only: bool,
    head: Option<ResponseHeader>,
    /// The text of a failure, as body of its 503.
    text: Option<Bytes>,
    done: bool,
}

/// What a session has to drive, in the task of its harvester's connection.
#[derive(Default)]
enum UnderWay {
    #[default]
    Nothing,
    /// A conversation whose events it takes.
    EventStream(EventStream),
    /// A conversation that goes into the spool.
    Filling(DetachedTask),
}

impl SourceSession {
    fn under_way(&mut self) -> &mut UnderWay {
        self.under_way.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    async fn event(&mut self) -> Result<Event> {
        let stopped = || Error::explain(ErrorType::InternalError, "the conversation with the source stopped");
        match self.under_way() {
            UnderWay::EventStream(conversing) => conversing.next().await.ok_or_else(stopped),
            UnderWay::Nothing | UnderWay::Filling(_) => Err(stopped()),
        }
    }

    fn end(&mut self, account: Account, failure: Option<Failure>) {
        self.done = true;
        *self.under_way() = UnderWay::Nothing;
        if let Some(ticket) = &self.ticket {
            ticket.end(account, failure);
        }
    }

    /// Waits for the head of what is in the spool, or comes to be there.
    async fn spooled_head(&mut self, fill: Arc<Fill>) -> Result<()> {
        if let UnderWay::Filling(filling) = self.under_way() {
            filling.until(|| fill.begun().is_some()).await;
        }
        let head = fill.head().await;
        let head =
            head.map_err(|over| Error::because(ErrorType::InternalError, "a page without a head", over));
        self.head = Some(head?.clone());
        if let Some(ticket) = &self.ticket {
            let _ = ticket.0.fill.set(Arc::clone(&fill));
            if ticket.0.has_left.load(Ordering::Acquire) {
                // Those who waited for the head with it come now, and may want the rest.
                tokio::spawn(async move {
                    tokio::time::sleep(LINGER).await;
                    fill.first_left();
                });
            }
        }
        Ok(())
    }

    /// Waits for the end of what is in the spool.
    async fn spooled(&mut self, fill: &Fill) -> Result<Option<Bytes>> {
        if let UnderWay::Filling(filling) = self.under_way() {
            filling.until(|| fill.ended().is_some()).await;
        }
        if fill.ended() == Some(true) {
            self.done = true;
            return Ok(Some(Bytes::new()));
        }
        // The harvester is told by its own reader, when it has got all that came.
        if let Some(ticket) = &self.ticket {
            ticket.0.left.notified().await;
        }
        Error::e_explain(ErrorType::ConnectionClosed, "the page broke off, and the harvester is gone")
    }
}

impl Drop for SourceSession {
    fn drop(&mut self) {
        // What fills it goes on: others may want the page.
        if let Some(fill) = &self.fill {
            fill.first_left();
        }
    }
}

#[async_trait]
impl Session for SourceSession {
    async fn write_request_header(&mut self, request: Box<RequestHeader>, _end: bool) -> Result<()> {
        let ticket = request.extensions.get::<Ticket>().cloned();
        let job = ticket.as_ref().and_then(Ticket::take);
        let job = job.ok_or_else(|| Error::explain(ErrorType::InternalError, "a request without a job"))?;
        self.head_only = request.method == http::Method::HEAD;
        let under_way = if let Some(told) = ticket.clone()
            && let Some(errand) = told.0.errand.get().cloned()
        {
            let (fill, filling) = errand.begin(job, move |account, failure| told.end(account, failure));
            self.fill = Some(fill);
            UnderWay::Filling(filling)
        } else {
            UnderWay::EventStream(answer(job))
        };
        *self.under_way() = under_way;
        self.ticket = ticket;
        Ok(())
    }

    async fn read_response_header(&mut self) -> Result<()> {
        if let Some(fill) = self.fill.clone() {
            return self.spooled_head(fill).await;
        }
        match self.event().await? {
            Event::Head(answer) => {
                self.head = Some(heads::whole(answer, "bypass")?);
                if self.head_only {
                    self.end(Account::default(), None);
                }
                Ok(())
            }
            Event::Failed(failure, account) => {
                let (head, text) = heads::failed(&failure)?;
                self.head = Some(head);
                self.end(*account, Some(failure));
                self.text = (!self.head_only).then_some(text);
                self.done = self.head_only;
                Ok(())
            }
            Event::Body(_) | Event::End(_) => {
                Error::e_explain(ErrorType::InternalError, "a body without a head")
            }
        }
    }

    async fn read_response_body(&mut self) -> Result<Option<Bytes>> {
        if let Some(fill) = self.fill.clone() {
            return if self.done { Ok(None) } else { self.spooled(&fill).await };
        }
        if let Some(text) = self.text.take() {
            self.done = true;
            return Ok(Some(text));
        }
        if self.done {
            return Ok(None);
        }
        match self.event().await? {
            Event::Body(bytes) => Ok(Some(bytes)),
            Event::End(account) => {
                self.end(*account, None);
                Ok(Some(Bytes::new()))
            }
            Event::Failed(failure, account) => {
                let error = Error::explain(ErrorType::ConnectionClosed, failure.details.clone());
                self.end(*account, Some(failure));
                Err(error)
            }
            Event::Head(_) => Error::e_explain(ErrorType::InternalError, "a second head"),
        }
    }

    async fn check_response_end_or_error(&mut self, _headers: bool) -> Result<bool> {
        Ok(self.done)
    }

    fn response_header(&self) -> Option<&ResponseHeader> {
        self.head.as_ref()
    }

    fn response_finished(&self) -> bool {
        self.done
    }

    async fn shutdown(&mut self, _code: u32, _context: &str) {
        // What goes into the spool may be others' too.
        if let UnderWay::EventStream(_) = self.under_way() {
            *self.under_way() = UnderWay::Nothing;
        }
    }

    fn take_request_body_writer(&mut self) -> Option<Box<dyn BodyWrite>> {
        Some(Box::new(NoBody))
    }

    fn take_custom_message_reader(
        &mut self,
    ) -> Option<Box<dyn futures::Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>> {
        Some(Box::new(futures::stream::empty()))
    }

    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        Some(Box::new(()))
    }

    async fn write_request_body(&mut self, _data: Bytes, _end: bool) -> Result<()> {
        Ok(())
    }

    async fn finish_request_body(&mut self) -> Result<()> {
        Ok(())
    }

    async fn read_trailers(&mut self) -> Result<Option<HeaderMap>> {
        // The last that pingora asks for.
        if let Some(fill) = &self.fill {
            fill.set_piped();
        }
        Ok(None)
    }

    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }

    async fn drain_custom_messages(&mut self) -> Result<()> {
        Ok(())
    }

    fn set_read_timeout(&mut self, _timeout: Option<Duration>) {}

    fn set_write_timeout(&mut self, _timeout: Option<Duration>) {}

    fn was_upgraded(&self) -> bool {
        false
    }

    fn digest(&self) -> Option<&Digest> {
        None
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        None
    }

    fn server_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn client_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn fd(&self) -> UniqueIDType {
        -1
    }
}

/// The body of a GET: none.
struct NoBody;

#[async_trait]
impl BodyWrite for NoBody {
    async fn write_all_buf(&mut self, data: &mut Bytes) -> Result<()> {
        data.clear();
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    async fn cleanup(&mut self) -> Result<()> {
        Ok(())
    }

    fn upgrade_body_writer(&mut self) {}
}
