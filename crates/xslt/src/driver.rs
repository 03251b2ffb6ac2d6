//! The task that owns the worker process: it sends requests, reads responses, and starts another process after one ended.
//!
//! Requests are sent ahead of their responses, so that the process never waits for oaimend. It works in their order.
//! Therefore the first request without a response is the one that ended the process or takes too long. That request fails,
//! and the others go to the next process.

use crate::failure::{FailureKind, SheetFailure};
use crate::limits::{
    IN_FLIGHT_MAX, OUTAGE, PAUSE_FIRST, PAUSE_MAX, SHEETS_MAX, WRITE_AHEAD_BYTES, XsltLimits,
};
use crate::message::{HEAD_BYTES, Request, Response, read_head};
use crate::process::{Process, WorkerProgram, failure_of, time_exceeded};
use crate::sheet::{Sheet, SheetId};
use bytes::{Buf as _, BytesMut};
use oaimend_base::clock;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// A request of a caller who waits for its result.
pub(crate) struct Task {
    pub(crate) sheet: Sheet,
    /// `None`: whether the sheet compiles.
    pub(crate) payload: Option<Vec<u8>>,
    /// Where the output goes. It is empty for a sheet that compiles.
    pub(crate) reply: oneshot::Sender<Result<Vec<u8>, SheetFailure>>,
    /// A process ended with it, so it does not get a third one.
    pub(crate) is_repeated: bool,
    /// Its share of the memory for waiting payloads.
    pub(crate) admission: OwnedSemaphorePermit,
}

impl Task {
    fn reply(self, result: Result<Vec<u8>, SheetFailure>) {
        // The caller may be gone.
        let _ = self.reply.send(result);
        drop(self.admission);
    }
}

/// A request that was sent.
enum Sent {
    /// A sheet, before the tasks that need it.
    Sheet(Sheet),
    Task(Task),
}

/// Why a process is not used any more.
enum End {
    /// Nobody waits, and nobody can ask again.
    Idle,
    /// It closed its pipes, or sent something strange.
    Process,
    /// The first request takes too long.
    Time,
}

/// Owns the process.
pub(crate) struct Driver {
    program: WorkerProgram,
    limits: XsltLimits,
    requests: mpsc::Receiver<Task>,
    /// Tasks that are not sent yet, in order.
    waiting: VecDeque<Task>,
    /// Whether more tasks can come.
    is_open: bool,
    /// Sheets that ended a process, with their failures. The oldest one is forgotten.
    bad_sheets: VecDeque<(SheetId, SheetFailure)>,
    /// The sheet that ended the last process.
    suspected_sheet: Option<SheetId>,
    /// Number of processes one after the other that ended without a result.
    fruitless: u32,
    /// Whether the first process was logged.
    is_logged: bool,
}

impl Driver {
    pub(crate) fn new(program: WorkerProgram, limits: XsltLimits, requests: mpsc::Receiver<Task>) -> Self {
        Self {
            program,
            limits,
            requests,
            waiting: VecDeque::new(),
            is_open: true,
            bad_sheets: VecDeque::new(),
            suspected_sheet: None,
            fruitless: 0,
            is_logged: false,
        }
    }

    /// Serves all tasks until no more can come.
    pub(crate) async fn run(mut self) {
        let mut outage: Option<(Duration, String)> = None;
        loop {
            if self.waiting.is_empty() {
                match self.requests.recv().await {
                    Some(task) => self.waiting.push_back(task),
                    None => return,
                }
            }
            if let Some((until, why)) = &outage {
                if clock::uptime() < *until {
                    let failure = SheetFailure::new(FailureKind::Unavailable, why.clone());
                    self.waiting.drain(..).for_each(|task| task.reply(Err(failure.clone())));
                    continue;
                }
                outage = None;
            }
            if let Some(pause) = pause_after(self.fruitless) {
                tokio::time::sleep(pause).await;
            }
            match Process::start(&self.program, &self.limits).await {
                Ok(process) => self.serve(process).await,
                Err(why) => {
                    tracing::warn!("XSLT sheets cannot be used: {why}");
                    outage = Some((clock::uptime() + OUTAGE, why));
                }
            }
        }
    }

    /// Serves tasks with one process until it ends.
    async fn serve(&mut self, process: Process) {
        if !self.is_logged {
            self.is_logged = true;
            let version = &process.version;
            if process.has_landlock {
                tracing::info!("XSLT sheets run in a worker process with libxslt {version}");
            } else {
                tracing::warn!(
                    "XSLT sheets run in a worker process with libxslt {version}, without Landlock: the kernel does not have it, or the service may not use it"
                );
            }
        }
        let mut exchange = Exchange::default();
        let mut process = process;
        let end = self.exchange(&mut process, &mut exchange).await;
        let failure = match end {
            End::Idle => return,
            End::Time => {
                process.kill().await;
                time_exceeded(&self.limits)
            }
            End::Process => failure_of(process.status().await, &self.limits),
        };
        self.after_end(exchange, failure);
    }

    /// Exchanges messages until the process ends.
    async fn exchange(&mut self, process: &mut Process, exchange: &mut Exchange) -> End {
        let mut alarm = std::pin::pin!(tokio::time::sleep(self.limits.time));
        let mut received = Vec::with_capacity(IN_FLIGHT_MAX);
        loop {
            while exchange.has_room()
                && let Some(task) = self.waiting.pop_front()
            {
                self.send(task, exchange);
            }
            if !self.is_open && self.waiting.is_empty() && exchange.sent.is_empty() {
                return End::Idle;
            }
            let takes = self.is_open && self.waiting.is_empty() && exchange.has_room();
            tokio::select! {
                count = self.requests.recv_many(&mut received, IN_FLIGHT_MAX), if takes => {
                    self.is_open = count > 0;
                    self.waiting.extend(received.drain(..));
                }
                written = process.stdin.write(&exchange.output), if !exchange.output.is_empty() => {
                    match written {
                        // The responses before its end may still come.
                        Err(_) => exchange.output.clear(),
                        Ok(length) => exchange.output.advance(length),
                    }
                }
                read = process.stdout.read_buf(&mut exchange.input) => {
                    if !read.is_ok_and(|length| length > 0) || self.receive(exchange).is_none() {
                        return End::Process;
                    }
                }
                () = &mut alarm => {
                    let elapsed = if exchange.sent.is_empty() {
                        Duration::ZERO
                    } else {
                        clock::uptime().saturating_sub(exchange.since)
                    };
                    if elapsed >= self.limits.time {
                        return End::Time;
                    }
                    // It is never later than the end of the first request.
                    alarm.set(tokio::time::sleep(self.limits.time - elapsed));
                }
            }
        }
    }

    /// Writes the request of a task, after its sheet.
    fn send(&mut self, task: Task, exchange: &mut Exchange) {
        if task.reply.is_closed() {
            return;
        }
        let id = task.sheet.id();
        if let Some((_, failure)) = self.bad_sheets.iter().find(|(bad, _)| *bad == id) {
            let failure = failure.clone();
            return task.reply(Err(failure));
        }
        if exchange.sent.is_empty() {
            exchange.since = clock::uptime();
        }
        let mut message = Vec::new();
        if !exchange.sheets.contains(&id) {
            exchange.sheets.push_back(id);
            // The worker forgets the same one.
            if exchange.sheets.len() > SHEETS_MAX {
                exchange.sheets.pop_front();
            }
            Request::Sheet { id, text: task.sheet.text() }.write(&mut message);
            exchange.sent.push_back(Sent::Sheet(task.sheet.clone()));
        }
        match &task.payload {
            Some(payload) => Request::Transform { sheet: id, payload }.write(&mut message),
            None => Request::Sheet { id, text: task.sheet.text() }.write(&mut message),
        }
        exchange.output.extend_from_slice(&message);
        exchange.sent.push_back(Sent::Task(task));
    }

    /// Reads all complete responses. `None` if one is strange.
    fn receive(&mut self, exchange: &mut Exchange) -> Option<()> {
        while let Some(head) = exchange.input.first_chunk::<HEAD_BYTES>() {
            // A failure is shorter than an output.
            let (kind, length) = read_head(*head, self.limits.output_bytes.max(1 << 16)).ok()?;
            if exchange.input.len() < HEAD_BYTES + length {
                exchange.input.reserve(HEAD_BYTES + length - exchange.input.len());
                return Some(());
            }
            exchange.input.advance(HEAD_BYTES);
            let content = exchange.input.split_to(length);
            let result = match Response::read(kind, &content).ok()? {
                Response::Compiled => Ok(Vec::new()),
                Response::Output(output) => Ok(output.to_vec()),
                Response::Failed(kind, why) => Err(SheetFailure::new(kind, why)),
                Response::Ready { .. } | Response::NotReady(_) => return None,
            };
            exchange.since = clock::uptime();
            exchange.has_responded = true;
            match exchange.sent.pop_front()? {
                Sent::Sheet(_) => self.suspected_sheet = None,
                Sent::Task(task) => {
                    self.fruitless = 0;
                    task.reply(result);
                }
            }
        }
        Some(())
    }

    /// Decides about the requests of a process that ended. The first one fails for this reason, or is repeated once if the
    /// process could have ended because of earlier requests or for a reason outside.
    fn after_end(&mut self, exchange: Exchange, failure: SheetFailure) {
        self.fruitless += 1;
        let Exchange { mut sent, has_responded, .. } = exchange;
        let is_certain = match failure.kind {
            FailureKind::TimeExceeded => true,
            FailureKind::MemoryExceeded => !has_responded,
            _ => false,
        };
        let mut again = VecDeque::new();
        match sent.pop_front() {
            Some(Sent::Sheet(sheet)) => {
                let id = sheet.id();
                if is_certain || self.suspected_sheet.replace(id) == Some(id) {
                    self.suspected_sheet = None;
                    self.add_bad_sheet(id, &failure);
                }
            }
            Some(Sent::Task(task)) if is_certain || task.is_repeated => {
                tracing::debug!("the XSLT worker ended with a payload: {failure}");
                task.reply(Err(failure));
            }
            Some(Sent::Task(task)) => again.push_back(Task { is_repeated: true, ..task }),
            None => {}
        }
        again.extend(sent.into_iter().filter_map(|sent| match sent {
            Sent::Task(task) => Some(task),
            // It is sent again before the first task that needs it.
            Sent::Sheet(_) => None,
        }));
        again.append(&mut self.waiting);
        self.waiting = again;
    }

    fn add_bad_sheet(&mut self, id: SheetId, failure: &SheetFailure) {
        let why = format!("the sheet does not compile: {failure}");
        self.bad_sheets.push_back((id, SheetFailure::new(FailureKind::SheetInvalid, why)));
        if self.bad_sheets.len() > SHEETS_MAX {
            self.bad_sheets.pop_front();
        }
    }
}

/// The exchange with one process.
#[derive(Default)]
struct Exchange {
    /// Requests without a response, in order.
    sent: VecDeque<Sent>,
    /// The sheets that the process has, the oldest first.
    sheets: VecDeque<SheetId>,
    /// Bytes for the process. At most [`WRITE_AHEAD_BYTES`] and one request.
    output: BytesMut,
    /// Bytes of the process. At most one response and a read.
    input: BytesMut,
    /// When the process began the first request in `sent`, by [`clock::uptime`].
    since: Duration,
    has_responded: bool,
}

impl Exchange {
    fn has_room(&self) -> bool {
        self.sent.len() < IN_FLIGHT_MAX && self.output.len() < WRITE_AHEAD_BYTES
    }
}

/// The pause before the next process, if that many in a row ended without a result.
fn pause_after(fruitless: u32) -> Option<Duration> {
    let doublings = fruitless.checked_sub(2)?;
    Some(PAUSE_FIRST.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_achieve_nothing_are_started_less_and_less_often() {
        let millis = |fruitless| pause_after(fruitless).map(|pause| pause.as_millis());
        assert_eq!([0, 1, 2, 3, 4].map(millis), [None, None, Some(100), Some(200), Some(400)]);
        assert_eq!([20, 33, 34, 35, u32::MAX].map(millis), [Some(10_000); 5]);
    }
}
