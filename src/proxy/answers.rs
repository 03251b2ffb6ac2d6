//! How a request for a page is answered: from the cache, with a page under way, or past both.
//!
//! pingora has read the request and writes the response; nothing of the page goes through its own cache or
//! upstreams. `cache` finds or begins the page, and this file reads it out. See docs/explanation/request-path.md.
//!
//! Must stay true: the page is filled at the speed of its source, also while its harvester does not read; a
//! harvester that leaves ends nothing that others read or that is kept; a page that breaks off has no end.

use super::cache::{Errand, Found, KeptPage, Over, Reader};
use super::{Front, Passage, complete_head, heads};
use crate::upstream::{self, Account, DetachedTask, Event, Failure, Job};
use http::{HeaderValue, Method, header};
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use std::sync::{Arc, Mutex, PoisonError};

/// What becomes of a job, for who has to log it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticket(Arc<Mutex<Option<Ended>>>);

/// What became of a job.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) account: Account,
    pub(super) failure: Option<Failure>,
}

impl Ticket {
    /// What became of the job, if it has ended.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(&self, account: Account, failure: Option<Failure>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Ended { account, failure });
    }
}

impl Front {
    /// Answers with a page that is kept, or is under way, or begins with this request.
    ///
    /// # Errors
    ///
    /// The harvester is gone, or the page broke off after what the harvester received.
    pub(super) async fn answer(&self, session: &mut Session, passage: &mut Passage, job: Job) -> Result<()> {
        let ticket = Ticket::default();
        let Some(errand) = &mut passage.errand else {
            passage.ticket = Some(ticket.clone());
            return self.answer_past_the_cache(session, &ticket, job).await;
        };
        let found = {
            let ticket = ticket.clone();
            errand.find(job, move |account, failure| ticket.end(account, failure)).await
        };
        let (mut reader, mut filling, old) = match found {
            Found::Kept(page) => return self.send_kept(session, errand, page).await,
            Found::UnderWay(reader, filling, old) => (reader, filling, old),
        };
        if errand.shared.is_none() {
            passage.ticket = Some(ticket);
        }
        let fill = Arc::clone(&reader.fill);
        let answered = self.read_out(session, errand, &mut reader, &mut filling, old).await;
        if answered.is_err() {
            // The page goes on while others read it or if it is kept, and to its head for a harvester that asks
            // again; as long as that takes, its request is in flight and has its place in the quotas.
            drop(reader);
            filling.until(|| fill.ended().is_some()).await;
        }
        answered
    }

    /// Sends the page as it comes; or the `old` one, if the source fails before the page begins.
    async fn read_out(
        &self,
        session: &mut Session,
        errand: &mut Errand,
        reader: &mut Reader,
        filling: &mut DetachedTask,
        old: Option<KeptPage>,
    ) -> Result<()> {
        let fill = Arc::clone(&reader.fill);
        let head = async {
            filling.until(|| fill.begun().is_some()).await;
            if fill.is_written() {
                // All of it is there, and on its way to the disk: then it leaves in one go.
                filling.until(|| fill.ended().is_some()).await;
            }
            fill.head().await
        };
        let mut head = Box::new(unless_gone(session, head).await?.map_err(over)?.clone());
        if let Some(old) = old.filter(|_| head.status.is_server_error()) {
            errand.stands_in();
            return self.send_kept(session, errand, old).await;
        }
        if errand.shared.is_some() {
            head.insert_header(header::AGE, fill.age_secs())?;
        }
        complete_head(&mut head, session, errand, fill.whole_bytes())?;
        filling.beside(self.write_head(session, head, false)).await?;
        loop {
            let piece = async {
                filling.until(|| reader.has_more()).await;
                // A piece that lies in a file is waited for.
                filling.beside(reader.next()).await
            };
            match unless_gone(session, piece).await?.map_err(over)? {
                Some(piece) => filling.beside(session.write_response_body(Some(piece), false)).await?,
                None => return session.write_response_body(None, true).await,
            }
        }
    }

    /// Sends a page that is kept.
    async fn send_kept(&self, session: &mut Session, errand: &Errand, mut page: KeptPage) -> Result<()> {
        let mut head = Box::new(heads::page()?);
        head.insert_header(header::AGE, page.age_secs())?;
        complete_head(&mut head, session, errand, Some(page.bytes))?;
        self.write_head(session, head, false).await?;
        while let Some(piece) = unless_gone(session, page.next()).await?.map_err(over)? {
            session.write_response_body(Some(piece), false).await?;
        }
        session.write_response_body(None, true).await
    }

    /// Sends what the source says to this one request.
    async fn answer_past_the_cache(&self, session: &mut Session, ticket: &Ticket, job: Job) -> Result<()> {
        let head_only = session.req_header().method == Method::HEAD;
        let mut conversing = upstream::answer(job);
        let head = match unless_gone(session, conversing.next()).await? {
            Some(Event::Head(answer)) => heads::whole(answer, "bypass")?,
            Some(Event::Failed(failure, account)) => {
                let (head, text) = heads::failed(&failure)?;
                ticket.end(*account, Some(failure));
                self.write_head(session, Box::new(head), head_only).await?;
                return match head_only {
                    true => Ok(()),
                    false => session.write_response_body(Some(text), true).await,
                };
            }
            Some(Event::Body(_) | Event::End(_)) | None => return Err(stopped()),
        };
        conversing.beside(self.write_head(session, Box::new(head), head_only)).await?;
        if head_only {
            ticket.end(Account::default(), None);
            return Ok(());
        }
        loop {
            match unless_gone(session, conversing.next()).await? {
                Some(Event::Body(piece)) => {
                    conversing.beside(session.write_response_body(Some(piece), false)).await?;
                }
                Some(Event::End(account)) => {
                    ticket.end(*account, None);
                    return session.write_response_body(None, true).await;
                }
                Some(Event::Failed(failure, account)) => {
                    let error = Error::explain(ErrorType::ConnectionClosed, failure.details.clone());
                    ticket.end(*account, Some(failure));
                    return Err(error);
                }
                Some(Event::Head(_)) | None => return Err(stopped()),
            }
        }
    }

    /// Writes the head of an answer; `end` says that it has no body.
    async fn write_head(
        &self,
        session: &mut Session,
        mut head: Box<ResponseHeader>,
        end: bool,
    ) -> Result<()> {
        head.insert_header(header::VIA, self.0.via.clone())?;
        if !end && !head.headers.contains_key(header::CONTENT_LENGTH) {
            // pingora says so itself only of what comes through its upstream; not in HTTP/2.
            head.insert_header(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"))?;
        }
        session.write_response_header(head, end).await
    }
}

/// Waits for something of a page, as long as its harvester is there.
async fn unless_gone<T>(session: &mut Session, awaited: impl Future<Output = T>) -> Result<T> {
    tokio::select! {
        biased;
        done = awaited => Ok(done),
        left = session.as_downstream_mut().read_body_or_idle(true) => {
            Err(left.err().unwrap_or_else(|| Error::new(ErrorType::ConnectionClosed)).into_down())
        }
    }
}

fn over(over: Over) -> Box<Error> {
    Error::because(ErrorType::ConnectionClosed, "the page ended early", over)
}

fn stopped() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "the conversation with the source stopped")
}
