//! Pages that are shared by those who ask for them together, and never kept.
//!
//! The first page of a list is another one each time that it is asked for, so
//! pingora's cache has nothing to look for, and such a page does not take the way through it
//! and its upstream: who asks first begins the page in the spool, who comes
//! while it is under way reads it there. See docs/explanation/request-path.md.
//!
//! Must stay true: the page is filled at the speed of its source, also while
//! its harvester does not read; one that leaves ends nothing that others read.

use super::cache::{Errand, Over, Reader};
use super::upstream::Ticket;
use super::{Front, Passage, complete_head};
use crate::upstream::{DetachedTask, Job};
use http::{HeaderValue, header};
use pingora_error::{Error, ErrorType, Result};
use pingora_proxy::Session;
use std::sync::Arc;

impl Front {
    /// Answers with the page that is under way, or that begins with this request.
    ///
    /// # Errors
    ///
    /// The harvester is gone, or the page broke off behind what it got.
    pub(super) async fn answer_together(
        &self,
        session: &mut Session,
        passage: &mut Passage,
        job: Job,
    ) -> Result<()> {
        let Some(errand) = &mut passage.errand else { return Ok(()) };
        let ticket = Ticket::begun();
        let (mut reader, mut filling) = {
            let ticket = ticket.clone();
            errand.join(job, move |account, failure| ticket.end(account, failure))
        };
        if errand.shared.is_none() {
            passage.ticket = Some(ticket);
        }
        let fill = Arc::clone(&reader.fill);
        let answered = self.read_out(session, errand, &mut reader, &mut filling).await;
        if answered.is_err() {
            // The page goes on while others read it, and to its head for a harvester that asks again; as
            // long as that takes, its request is in flight and has its place in the quotas.
            drop(reader);
            filling.until(|| fill.ended().is_some()).await;
        }
        answered
    }

    /// Sends the page as it comes.
    async fn read_out(
        &self,
        session: &mut Session,
        errand: &Errand,
        reader: &mut Reader,
        filling: &mut DetachedTask,
    ) -> Result<()> {
        let fill = Arc::clone(&reader.fill);
        let head = async {
            filling.until(|| fill.begun().is_some()).await;
            fill.head().await
        };
        let mut head = Box::new(unless_gone(session, head).await?.map_err(over)?.clone());
        head.insert_header(header::VIA, self.0.via.clone())?;
        complete_head(&mut head, session, errand, fill.whole_bytes())?;
        if errand.shared.is_some() {
            head.insert_header(header::AGE, fill.age_secs())?;
        }
        if !head.headers.contains_key(header::CONTENT_LENGTH) {
            // pingora says so itself only of what comes through its upstream; not in HTTP/2.
            head.insert_header(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"))?;
        }
        filling.beside(session.write_response_header(head, false)).await?;
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
