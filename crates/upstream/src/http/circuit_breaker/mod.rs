//! Decides whether a request is sent to a source now, and how old an outage is.
//!
//! Pure: the time is an argument. Counts requests of harvesters, not attempts.
//!
//! Invariants: the circuit of a source opens only by evidence about the source as a whole, which is failing
//! connections, or different requests that fail together with Identify. A request that fails alone rests
//! alone, so no client can close a repository with a bad request. An outage counts once: of the requests
//! that fail while a rest lasts, only the one that was admitted to end it lengthens it.

use crate::http::steady_time::SteadyTime;
use oaimend_repair::NotOai;
use oaimend_repository::{Failure, Outlook, Reason};
use oaimend_rules::backoff;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

#[cfg(test)]
mod tests;

/// Failures in a row before a rest: of one request, or of connections.
const FAILURES_TO_REST: u32 = 5;
/// Different requests that fail, without a response in between, before Identify is requested.
const DIFFERENT_FAILURES_TO_ASK: usize = 3;
const FIRST_REST: Duration = Duration::from_secs(30);
/// A source that forbids a request will not allow it within minutes.
const FORBIDDEN_REST: Duration = Duration::from_secs(600);
/// Longest rest of a source.
const LONGEST_REST: Duration = Duration::from_secs(1800);
/// Longest rest of one request: an attempt at it costs the source little.
const LONGEST_REST_ALONE: Duration = Duration::from_secs(300);
/// Retry-After while the request that may end a rest is in flight, in seconds.
const ATTEMPT_SECS: u64 = 5;
/// Failures further apart than this are different outages. Longer than any `Retry-After`.
const OUTAGE_GAP_MAX: Duration = Duration::from_secs(2 * 3600);
/// Maximum number of failed requests of one source that are tracked. The least recent failure is dropped first.
const REQUESTS_MAX: usize = 1024;

/// The failures of one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct CircuitBreaker {
    /// The outage of the source as a whole.
    source: Option<Outage>,
    /// Different requests that failed since the last response, and when.
    suspects: Vec<(u64, SystemTime)>,
    /// Since when a request for Identify is in flight.
    asking_since: Option<SystemTime>,
    /// The outages of single requests.
    requests: HashMap<u64, Outage>,
    hasher: RandomState,
    /// All times above are steady: a clock that is set back does not lengthen a rest.
    time: SteadyTime,
}

/// A series of failures.
#[derive(Clone, Debug)]
struct Outage {
    since: SystemTime,
    last: SystemTime,
    /// Failures that count towards a rest.
    failures: u32,
    rest: Option<Rest>,
    /// The details of the last failure.
    because: String,
    /// Whether the last failure is permanent.
    is_permanent: bool,
}

#[derive(Clone, Debug)]
struct Rest {
    until: SystemTime,
    /// When the request that may end the rest was admitted.
    attempt: Option<SystemTime>,
    /// The number of rests in this outage.
    count: u32,
}

/// An admitted request, and which rests it may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admission {
    request: u64,
    /// Whether the request may be sent.
    pub(crate) is_granted: bool,
    of_source: Option<SystemTime>,
    of_request: Option<SystemTime>,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCircuit {
    pub(crate) secs: u64,
    /// Only this request rests, not the whole source.
    pub(crate) is_alone: bool,
    pub(crate) because: String,
    pub(crate) is_permanent: bool,
    /// How long the outage has lasted.
    pub(crate) age: Duration,
}

impl Outage {
    fn since(now: SystemTime) -> Self {
        Self { since: now, last: now, failures: 0, rest: None, because: String::new(), is_permanent: false }
    }

    fn age(&self, now: SystemTime) -> Duration {
        now.duration_since(self.since).unwrap_or_default()
    }

    fn is_over(&self, now: SystemTime) -> bool {
        is_long_ago(self.last, now)
    }

    fn note(&mut self, now: SystemTime, failure: &Failure) {
        self.last = now;
        self.because = failure.quoted_details();
        self.is_permanent = failure.outlook == Outlook::Permanent;
    }

    /// Whether a request may be sent. After the rest, one may, and the others wait for its result.
    fn admit(&mut self, now: SystemTime, is_alone: bool) -> Result<Option<SystemTime>, OpenCircuit> {
        let Some(rest) = &mut self.rest else { return Ok(None) };
        let left = rest.until.duration_since(now).unwrap_or_default();
        if left.is_zero() && rest.attempt.is_none_or(|since| is_lost(since, now)) {
            rest.attempt = Some(now);
            return Ok(rest.attempt);
        }
        let secs = if left.is_zero() { ATTEMPT_SECS } else { whole_secs(left).clamp(1, 3600) };
        self.last = now;
        let (because, is_permanent) = (self.because.clone(), self.is_permanent);
        Err(OpenCircuit { secs, is_alone, because, is_permanent, age: self.age(now) })
    }

    /// Whether this request was admitted to end the rest.
    fn is_ended_by(&self, attempt: Option<SystemTime>) -> bool {
        attempt.is_some() && self.rest.as_ref().is_some_and(|rest| rest.attempt == attempt)
    }

    /// Notes that the attempt to end the rest has no result.
    fn withdraw(&mut self, attempt: Option<SystemTime>) {
        if let Some(rest) = self.rest.as_mut().filter(|rest| attempt.is_some() && rest.attempt == attempt) {
            rest.attempt = None;
        }
    }

    /// Begins a rest, or a longer one.
    fn begin_rest(&mut self, now: SystemTime, failure: &Failure, longest: Duration) {
        let count = self.rest.as_ref().map_or(0, |rest| rest.count);
        let first = if failure.received_status == Some(403) { FORBIDDEN_REST } else { FIRST_REST };
        let requested = Duration::from_secs(failure.requested_wait_secs.unwrap_or(0).min(3600));
        let length = backoff(first, count.min(10) + 1, longest.max(first)).max(requested);
        self.rest = Some(Rest { until: now + length, attempt: None, count: count + 1 });
    }
}

impl CircuitBreaker {
    /// A request that was not admitted yet.
    pub(crate) fn request(&self, query: &str) -> Admission {
        Admission { request: self.hasher.hash_one(query), ..Admission::default() }
    }

    /// Whether the request may be sent now.
    pub(crate) fn admit(&mut self, now: SystemTime, request: Admission) -> Result<Admission, OpenCircuit> {
        let now = self.time.advance(now);
        if self.source.as_ref().is_some_and(|outage| outage.is_over(now)) {
            self.source = None;
        }
        let request = request.request;
        if self.requests.get(&request).is_some_and(|outage| outage.is_over(now)) {
            self.requests.remove(&request);
        }
        let outage = self.requests.get_mut(&request);
        let of_request = outage.map_or(Ok(None), |outage| outage.admit(now, true))?;
        let of_source = self.source.as_mut().map_or(Ok(None), |outage| outage.admit(now, false));
        if of_source.is_err()
            && let Some(outage) = self.requests.get_mut(&request)
        {
            outage.withdraw(of_request);
        }
        Ok(Admission { request, is_granted: true, of_source: of_source?, of_request })
    }

    /// Notes a response.
    pub(crate) fn succeeded(&mut self, admission: &Admission) {
        self.note_source_response();
        self.requests.remove(&admission.request);
    }

    /// Notes a request that failed in all attempts. Returns whether Identify has to be requested, which decides
    /// whether the source fails as a whole.
    pub(crate) fn failed(&mut self, now: SystemTime, admission: &Admission, failure: &Failure) -> bool {
        let now = self.time.advance(now);
        if failure.outlook == Outlook::Permanent && !is_of_the_connection(failure) {
            // The source has responded, and fewer requests will not change its response.
            self.withdraw(admission);
            return false;
        }
        self.note_request(now, admission, failure);
        if !is_the_sources(failure) {
            self.withdraw(admission);
            return false;
        }
        let is_connection = is_of_the_connection(failure);
        match &mut self.source {
            Some(outage) if outage.rest.is_some() => {
                // A request from before the rest says nothing new.
                let ends_rest = outage.is_ended_by(admission.of_source);
                if ends_rest && is_connection {
                    outage.note(now, failure);
                    outage.begin_rest(now, failure, LONGEST_REST);
                }
                ends_rest && !is_connection
            }
            _ if is_connection => {
                let outage = self.source.get_or_insert_with(|| Outage::since(now));
                outage.note(now, failure);
                outage.failures += 1;
                if outage.failures >= FAILURES_TO_REST {
                    outage.begin_rest(now, failure, LONGEST_REST);
                }
                false
            }
            _ => self.suspect(now, admission.request),
        }
    }

    /// Notes the response to Identify. `None`: Identify could not be sent.
    pub(crate) fn identified(
        &mut self,
        now: SystemTime,
        admission: &Admission,
        answer: Option<Result<(), &Failure>>,
    ) {
        let now = self.time.advance(now);
        self.asking_since = None;
        match answer {
            None => self.withdraw(admission),
            Some(Ok(())) => self.note_source_response(),
            Some(Err(failure)) => {
                let since = self.suspects.first().map_or(now, |(_, at)| *at);
                self.suspects.clear();
                let outage = self.source.get_or_insert_with(|| Outage::since(since));
                if outage.rest.is_none() || outage.is_ended_by(admission.of_source) {
                    outage.note(now, failure);
                    outage.begin_rest(now, failure, LONGEST_REST);
                }
            }
        }
    }

    /// The age of the outage that a failure belongs to.
    pub(crate) fn age(&self, now: SystemTime, admission: &Admission, failure: &Failure) -> Duration {
        let now = self.time.at(now);
        let is_of_source = |outage: &&Outage| outage.rest.is_some() || is_of_the_connection(failure);
        let source = self.source.as_ref().filter(is_of_source);
        let outages = source.into_iter().chain(self.requests.get(&admission.request));
        outages.map(|outage| outage.age(now)).max().unwrap_or_default()
    }

    /// For how many seconds the circuit of the source stays open.
    pub(crate) fn circuit_open_secs(&self, now: SystemTime) -> Option<u64> {
        let rest = self.source.as_ref()?.rest.as_ref()?;
        Some(whole_secs(rest.until.duration_since(self.time.at(now)).unwrap_or_default()))
    }

    fn note_source_response(&mut self) {
        if self.source.take().is_some_and(|outage| outage.rest.is_some()) {
            // These requests may have failed together with the source.
            self.requests.clear();
        }
        self.suspects.clear();
    }

    /// Notes a request that may fail alone. Returns whether Identify has to be requested.
    fn suspect(&mut self, now: SystemTime, request: u64) -> bool {
        self.suspects.retain(|(_, at)| !is_long_ago(*at, now));
        if self.suspects.iter().all(|(other, _)| *other != request) {
            self.suspects.push((request, now));
            // The first one is the start of the outage; the others are only counted.
            self.suspects.truncate(DIFFERENT_FAILURES_TO_ASK);
        }
        let is_due = self.suspects.len() >= DIFFERENT_FAILURES_TO_ASK
            && self.asking_since.is_none_or(|since| is_lost(since, now));
        if is_due {
            self.asking_since = Some(now);
        }
        is_due
    }

    fn note_request(&mut self, now: SystemTime, admission: &Admission, failure: &Failure) {
        if !self.requests.contains_key(&admission.request) && self.requests.len() >= REQUESTS_MAX {
            let oldest = self.requests.iter().min_by_key(|(_, outage)| outage.last);
            if let Some(oldest) = oldest.map(|(request, _)| *request) {
                self.requests.remove(&oldest);
            }
        }
        let outage = self.requests.entry(admission.request).or_insert_with(|| Outage::since(now));
        if outage.is_over(now) {
            *outage = Outage::since(now);
        }
        outage.note(now, failure);
        // While a rest lasts, only the attempt to end it counts.
        if !may_rest(failure) || outage.rest.is_some() && !outage.is_ended_by(admission.of_request) {
            return;
        }
        outage.failures += 1;
        if outage.failures >= FAILURES_TO_REST {
            outage.begin_rest(now, failure, LONGEST_REST_ALONE);
        }
    }

    fn withdraw(&mut self, admission: &Admission) {
        if let Some(outage) = &mut self.source {
            outage.withdraw(admission.of_source);
        }
        if let Some(outage) = self.requests.get_mut(&admission.request) {
            outage.withdraw(admission.of_request);
        }
    }
}

/// The seconds of a wait, rounded up: a request after fewer seconds would be refused again.
const fn whole_secs(wait: Duration) -> u64 {
    wait.as_secs() + if wait.subsec_nanos() > 0 { 1 } else { 0 }
}

/// Whether a request that was sent then is lost.
fn is_lost(since: SystemTime, now: SystemTime) -> bool {
    now.duration_since(since).unwrap_or_default() > FIRST_REST
}

fn is_long_ago(then: SystemTime, now: SystemTime) -> bool {
    now.duration_since(then).unwrap_or_default() > OUTAGE_GAP_MAX
}

/// Whether no connection to the source could be made, whatever the request was. After a redirect another
/// server may be at fault.
fn is_of_the_connection(failure: &Failure) -> bool {
    let is_connection = matches!(
        failure.reason,
        Reason::Dns
            | Reason::ConnectionRefused
            | Reason::ConnectionTimeout
            | Reason::TlsCertificate
            | Reason::TlsProtocol
    );
    is_connection && failure.received_status.is_none()
}

/// Whether a failure may concern the source as a whole.
fn is_the_sources(failure: &Failure) -> bool {
    match failure.reason {
        Reason::Dns
        | Reason::ConnectionRefused
        | Reason::ConnectionTimeout
        | Reason::ConnectionLost
        | Reason::TlsCertificate
        | Reason::TlsProtocol
        | Reason::HttpProtocol
        | Reason::ResponseTimeout
        | Reason::NotOai(NotOai::Html | NotOai::BotWall) => true,
        Reason::Status => matches!(failure.received_status, Some(403 | 429 | 500..=599)),
        Reason::AddressRefused
        | Reason::Incomplete
        | Reason::NotResumable
        | Reason::Busy
        | Reason::CircuitOpen
        | Reason::ContentCoding
        | Reason::TooLarge
        | Reason::Redirect
        | Reason::Unrepairable
        | Reason::Quarantine
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
        | Reason::NotOai(_) => false,
    }
}

/// Whether a request that fails repeatedly in this way may rest.
fn may_rest(failure: &Failure) -> bool {
    !is_of_the_connection(failure)
        && (is_the_sources(failure) || matches!(failure.reason, Reason::Incomplete | Reason::ContentCoding))
}
