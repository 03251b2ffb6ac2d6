//! The conversation for one request of a harvester: an ordered stream of events.
//!
//! One exchange at present. Waiting, asking again and going on behind the last
//! record that was delivered have their place in `converse`: nobody outside
//! sees how often the source was asked.
//!
//! Invariants: the head is sent with the first bytes of the repaired answer,
//! so that every failure before them is clean; a record that was put
//! aside is on disk before any byte behind it is sent; after [`Event::Failed`]
//! nothing follows, and without [`Event::End`] the page is not whole.

use super::decoding::{Bounds, Decoder, Fault};
use super::failure::{Failure, Reason, printable};
use super::fetch::{Client, Exchange};
use crate::clock;
use crate::config::{Mapping, Unmended};
use crate::oai::Request;
use crate::repair::{
    Ending, NotOai, Outcome, OwnRequest, Quarantined, RecordFacts, Repair, RepairConfig, Repairer, Sink,
    Summary,
};
use crate::state::{PutAside, Quarantine};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::mpsc;

/// One request of a harvester.
#[derive(Debug)]
pub struct Job {
    /// The repository.
    pub mapping: Arc<Mapping>,
    /// What is asked.
    pub request: Request,
    /// The request as the answer is to say it.
    pub own: OwnRequest,
    /// The `Via` header for the source.
    pub via: String,
    /// Where records that cannot be mended go.
    pub quarantine: Quarantine,
    /// Connections to the source.
    pub client: Client,
    /// Hold the whole page back until it is whole, for a client that cannot
    /// see a page that breaks off.
    pub spool: bool,
}

/// What happens, in order.
#[derive(Debug)]
pub enum Event {
    /// The answer begins; a status of 200.
    Head(Answer),
    /// A piece of it.
    Body(Bytes),
    /// It was whole.
    End(Box<Account>),
    /// There is no answer or, behind a head, no whole one.
    Failed(Failure, Box<Account>),
}

/// What is known of an answer when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status the source answered with.
    pub received_status: u16,
    /// The length of the whole answer in bytes, where it was held back.
    pub length: Option<usize>,
}

/// What became of a page.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The engine's account; `None` when the source gave nothing to mend.
    pub summary: Option<Summary>,
    /// Items that left with repairs.
    pub repaired: u64,
    /// The last repairs.
    pub repairs: Vec<RepairMade>,
    /// A token of ours is on the page: it is never kept.
    pub own_token: bool,
}

/// One repair, for people to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairMade {
    /// Its name.
    pub name: &'static str,
    /// Where it was made, in bytes of the text.
    pub offset: u64,
    /// Identifier of the item.
    pub record: Option<String>,
    /// What stood there, cut.
    pub original: String,
    /// What stands there now, cut.
    pub replacement: String,
}

/// Answers a request: starts the conversation in a task of its own, which
/// ends when the receiver is dropped.
pub fn answer(job: Job) -> mpsc::Receiver<Event> {
    let (events, receiver) = mpsc::channel(EVENTS_HELD);
    tokio::spawn(converse(job, events));
    receiver
}

async fn converse(job: Job, events: mpsc::Sender<Event>) {
    let deadline = tokio::time::sleep(job.mapping.limits.first_record_timeout);
    tokio::pin!(deadline);
    let now = clock::now();
    let exchange = tokio::select! {
        exchange = job.client.exchange(&job.request, &job.via, now) => exchange,
        () = &mut deadline => Err(late(&job)),
    };
    let (end, account) = match exchange {
        Ok(exchange) => {
            let mut page = Page::new(&job, &exchange, clock::utc_datetime(now), events.clone());
            let end = page.run(Body::new(&job, exchange), deadline.as_mut()).await;
            (end, page.into_account())
        }
        Err(failure) => (Err(Stop::Failed(failure)), Account::default()),
    };
    // Whoever does not listen any more has nothing to be told.
    let _ = match end {
        Ok(()) => events.send(Event::End(Box::new(account))).await,
        Err(Stop::Failed(failure)) => events.send(Event::Failed(failure, Box::new(account))).await,
        Err(Stop::Gone) => Ok(()),
    };
}

/// Why a conversation is over before its end.
enum Stop {
    Failed(Failure),
    /// Nobody listens any more.
    Gone,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The answer in the making.
struct Page<'a> {
    job: &'a Job,
    status: u16,
    retry_after_secs: Option<u64>,
    now: String,
    events: mpsc::Sender<Event>,
    repairer: Option<Repairer>,
    summary: Option<Summary>,
    made: Made,
    begun: bool,
    spooled: Vec<u8>,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl<'a> Page<'a> {
    fn new(job: &'a Job, exchange: &Exchange, now: String, events: mpsc::Sender<Event>) -> Self {
        let config = RepairConfig {
            limits: job.mapping.limits.repair.clone(),
            off: job.mapping.off,
            guesses: job.mapping.guesses,
            request: Some(job.own.clone()),
            response_date: Some(now.clone()),
            charset: exchange.charset.clone(),
            ending: Ending::BreakOff,
        };
        Self {
            job,
            status: exchange.status,
            retry_after_secs: exchange.retry_after_secs,
            now,
            events,
            repairer: Some(Repairer::new(&config)),
            summary: None,
            made: Made::default(),
            begun: false,
            spooled: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
        }
    }

    async fn run(
        &mut self,
        mut body: Body<'_>,
        mut deadline: std::pin::Pin<&mut tokio::time::Sleep>,
    ) -> Result<(), Stop> {
        loop {
            let piece = tokio::select! {
                piece = body.next() => piece,
                () = &mut deadline, if !self.begun => Err(Broken { failure: late(self.job), forgivable: false }),
            };
            match piece {
                Ok(Some(piece)) => self.push(piece).await?,
                Ok(None) => return self.finish(None).await,
                Err(broken) => return self.finish(Some(broken)).await,
            }
            if self.repairer.as_ref().is_some_and(|repairer| repairer.verdict().is_some()) {
                return self.finish(None).await;
            }
        }
    }

    async fn push(&mut self, piece: &[u8]) -> Result<(), Stop> {
        let wanted = FIRST_BYTES_KEPT.saturating_sub(self.first.len());
        self.first.extend(piece.iter().take(wanted));
        self.last.extend(piece.iter().skip(piece.len().saturating_sub(LAST_BYTES_KEPT)));
        self.last.drain(..self.last.len().saturating_sub(LAST_BYTES_KEPT));
        if let Some(repairer) = &mut self.repairer {
            repairer.push(piece, &mut self.made);
        }
        self.flush().await
    }

    /// Ends the engine and judges the page. `broken` is what ended the body
    /// other than its end.
    async fn finish(&mut self, broken: Option<Broken>) -> Result<(), Stop> {
        let Some(repairer) = self.repairer.take() else { return Ok(()) };
        let summary = repairer.finish(&mut self.made);
        let outcome = summary.outcome;
        self.summary = Some(summary);
        if let Outcome::NotOai(why) = outcome {
            self.flush().await?;
            let failure = match broken {
                Some(broken) => self.with_status(broken.failure),
                None => self.no_answer(why),
            };
            return Err(failure.into());
        }
        self.flush().await?;
        match (outcome, broken) {
            (Outcome::Truncated, None) => return Err(self.truncated().into()),
            // A wrong Content-Length or a missing gzip trailer behind the end of the document
            // has cost nothing of it.
            (Outcome::Clean | Outcome::Repaired, Some(broken)) if broken.forgivable && self.saw_end() => {}
            (_, Some(broken)) => return Err(self.with_status(broken.failure).into()),
            (_, None) => {}
        }
        if !self.begun && self.spooled.is_empty() {
            // Without a byte there is no answer, whatever the verdict.
            return Err(self.no_answer(NotOai::Empty).into());
        }
        if self.job.spool {
            let body = Bytes::from(std::mem::take(&mut self.spooled));
            self.begin(Some(body.len())).await?;
            self.send(Event::Body(body)).await?;
        }
        Ok(())
    }

    /// Sends what the engine has made, once what it put aside is on disk.
    async fn flush(&mut self) -> Result<(), Stop> {
        if !self.made.aside.is_empty() {
            let records = std::mem::take(&mut self.made.aside);
            self.put_aside(records).await?;
            if self.job.mapping.unmendable == Unmended::Fail {
                let name = self.job.client.name();
                let details = format!(
                    "{name} sent a record that cannot be mended, and the mapping says unmendable = \"fail\"; see the quarantine"
                );
                return Err(Failure::new(Reason::Unmendable, details).into());
            }
        }
        let bytes = std::mem::take(&mut self.made.bytes);
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.job.spool {
            self.begin(None).await?;
            return self.send(Event::Body(bytes.into())).await;
        }
        let max = self.job.mapping.limits.spool_bytes_max;
        if self.spooled.len() + bytes.len() > max {
            let details = format!(
                "the page is longer than {max} bytes (spool_bytes_max) for HTTP/1.0; ask with HTTP/1.1"
            );
            return Err(Failure::new(Reason::SpoolFull, details).into());
        }
        self.spooled.extend_from_slice(&bytes);
        Ok(())
    }

    async fn put_aside(&self, records: Vec<PutAside>) -> Result<(), Failure> {
        let Job { mapping, quarantine, request, .. } = self.job;
        let (quarantine, id, query) = (quarantine.clone(), mapping.id.clone(), request.query());
        let (now, max) = (self.now.clone(), mapping.limits.quarantine_bytes_max);
        let put = tokio::task::spawn_blocking(move || quarantine.put(&id, &query, &now, max, &records));
        match put.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::new(Reason::Quarantine, error.to_string())),
            Err(error) => Err(Failure::new(Reason::Quarantine, format!("the quarantine stopped: {error}"))),
        }
    }

    async fn begin(&mut self, length: Option<usize>) -> Result<(), Stop> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.send(Event::Head(Answer { received_status: self.status, length })).await
    }

    async fn send(&self, event: Event) -> Result<(), Stop> {
        self.events.send(event).await.map_err(|_| Stop::Gone)
    }

    fn no_answer(&self, why: NotOai) -> Failure {
        let (name, status) = (self.job.client.name(), self.status);
        let began = match printable(&self.first, FIRST_CHARS_SHOWN) {
            text if text.is_empty() => String::new(),
            text => format!("; the answer began: {text}"),
        };
        let failure = if status >= 400 {
            let details = format!("{name} answered with status {status} and no OAI-PMH body{began}");
            Failure::new(Reason::Status, details)
        } else {
            Failure::new(Reason::NotOai(why), format!("{name}: {}{began}", why.message()))
        };
        self.with_status(failure)
    }

    fn truncated(&self) -> Failure {
        let name = self.job.client.name();
        self.with_status(Failure::new(Reason::Incomplete, format!("{name} sent a page that ends early")))
    }

    fn with_status(&self, failure: Failure) -> Failure {
        failure.after_status(self.status, self.retry_after_secs)
    }

    /// Whether the body ended with the end tag of the document element.
    fn saw_end(&self) -> bool {
        let last = self.last.trim_ascii_end();
        let tag = last.iter().rposition(|&byte| byte == b'<').and_then(|at| last.get(at..));
        let name = tag.and_then(|tag| tag.strip_prefix(b"</")).and_then(|tag| tag.strip_suffix(b">"));
        let local = name.and_then(|name| name.trim_ascii_end().rsplit(|&byte| byte == b':').next());
        local == Some(b"OAI-PMH".as_slice())
    }

    fn into_account(self) -> Account {
        let (repaired, repairs) = (self.made.repaired, self.made.repairs.into());
        Account { summary: self.summary, repaired, repairs, own_token: false }
    }
}

/// What the engine has made and was not sent yet, and the account so far.
#[derive(Default)]
struct Made {
    bytes: Vec<u8>,
    aside: Vec<PutAside>,
    repaired: u64,
    repairs: VecDeque<RepairMade>,
}

impl Sink for Made {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        if repair.id.is_rewrite() {
            return;
        }
        if self.repairs.len() == REPAIRS_KEPT {
            self.repairs.pop_front();
        }
        self.repairs.push_back(RepairMade {
            name: repair.id.name(),
            offset: repair.offset,
            record: repair.record.map(lossy),
            original: shown(repair.original),
            replacement: shown(repair.replacement),
        });
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, _bytes: &[u8]) {
        self.repaired += u64::from(facts.repairs > 0);
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.aside.push(PutAside {
            identifier: quarantined.identifier.map(lossy),
            why: quarantined.why.name(),
            offset: quarantined.offset,
            raw: quarantined.raw.to_vec(),
        });
    }
}

/// The decoded body of one exchange, piece by piece.
struct Body<'a> {
    job: &'a Job,
    exchange: Exchange,
    decoder: Decoder,
    piece: Vec<u8>,
    ended: bool,
}

/// A body that ended other than by its end.
struct Broken {
    failure: Failure,
    /// Whether the document may have been whole before.
    forgivable: bool,
}

impl<'a> Body<'a> {
    fn new(job: &'a Job, mut exchange: Exchange) -> Self {
        let limits = &job.mapping.limits;
        let bounds = Bounds { bytes_max: limits.response_bytes_max, ratio_max: limits.inflate_ratio_max };
        let decoder = Decoder::new(std::mem::take(&mut exchange.announced), bounds);
        Self { job, exchange, decoder, piece: vec![0; PIECE_BYTES], ended: false }
    }

    /// The next piece; `None` is the end of the body.
    async fn next(&mut self) -> Result<Option<&[u8]>, Broken> {
        loop {
            let count = self.decoder.pull(&mut self.piece).map_err(|fault| self.broken(fault))?;
            if count > 0 {
                return Ok(self.piece.get(..count));
            }
            if self.ended {
                return Ok(None);
            }
            match self.exchange.chunk().await {
                Ok(Some(chunk)) => self.decoder.push(&chunk),
                Ok(None) => {
                    self.ended = true;
                    self.decoder.end();
                }
                Err(error) => {
                    let failure = self.job.client.failure(&error, &self.exchange.url);
                    return Err(Broken { failure, forgivable: true });
                }
            }
        }
    }

    fn broken(&self, fault: Fault) -> Broken {
        let reason = match fault {
            Fault::Broken(_) => Reason::ContentCoding,
            Fault::EndedEarly(_) => Reason::Incomplete,
            Fault::TooLong(_) | Fault::TooDense(_) => Reason::TooLarge,
        };
        let failure = Failure::new(reason, format!("{}: {fault}", self.job.client.name()));
        Broken { failure, forgivable: matches!(fault, Fault::EndedEarly(_)) }
    }
}

fn late(job: &Job) -> Failure {
    let (name, limit) = (job.client.name(), job.mapping.limits.first_record_timeout);
    let details = format!("{name} sent no record within {limit:?} (first_record_timeout_secs)");
    Failure::new(Reason::ResponseTimeout, details)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shown(bytes: &[u8]) -> String {
    lossy(bytes.get(..REPAIR_BYTES_SHOWN).unwrap_or(bytes))
}

/// Events held between the source and a slow harvester; with them at most
/// about a MiB waits.
const EVENTS_HELD: usize = 8;
const PIECE_BYTES: usize = 64 << 10;
/// First bytes of the body that are kept for the text of a failure.
const FIRST_BYTES_KEPT: usize = 1024;
const FIRST_CHARS_SHOWN: usize = 160;
/// Last bytes that are kept, to see whether the document was whole.
const LAST_BYTES_KEPT: usize = 256;
/// Last repairs of a page that are kept for people to look at.
const REPAIRS_KEPT: usize = 50;
const REPAIR_BYTES_SHOWN: usize = 200;
