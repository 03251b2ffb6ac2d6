//! Decides whether a request is sent to a source now, and how old an outage is.
//!
//! Pure: the time is an argument. Counts requests of harvesters, not attempts.
//!
//! Invariants: the circuit of a source opens only by evidence about the source as a whole, which is failing
//! connections, or different requests that fail together with Identify. A request that fails alone rests
//! alone, so no client can close a repository with a bad request. An outage counts once: of the requests
//! that fail while a rest lasts, only the one that was admitted to end it lengthens it.

use crate::repair::NotOai;
use crate::repository::{Failure, Outlook, Reason};
use crate::upstream::http::steady_time::SteadyTime;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

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
/// Most failed requests of one source that are tracked. The least recent failure is dropped first.
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
        failure.details.clone_into(&mut self.because);
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
        let requested = Duration::from_secs(failure.asked_to_wait_secs.unwrap_or(0).min(3600));
        let length = longest.max(first).min(first * 2_u32.pow(count.min(10))).max(requested);
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
        let own = self.requests.get_mut(&request);
        let of_request = own.map_or(Ok(None), |outage| outage.admit(now, true))?;
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
        let is_asked = self.suspects.len() >= DIFFERENT_FAILURES_TO_ASK
            && self.asking_since.is_none_or(|since| is_lost(since, now));
        if is_asked {
            self.asking_since = Some(now);
        }
        is_asked
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
        _ => false,
    }
}

/// Whether a request that fails repeatedly in this way may rest.
fn may_rest(failure: &Failure) -> bool {
    !is_of_the_connection(failure)
        && (is_the_sources(failure) || matches!(failure.reason, Reason::Incomplete | Reason::ContentCoding))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
    }

    fn status(code: u16) -> Failure {
        Failure::new(Reason::Status, "no").after_status(code, None)
    }

    fn refused() -> Failure {
        Failure::new(Reason::ConnectionRefused, "gone")
    }

    fn silent() -> Failure {
        Failure::new(Reason::ResponseTimeout, "silent")
    }

    /// Admits a request and lets it fail. Returns whether Identify has to be requested.
    #[track_caller]
    fn fail(breaker: &mut CircuitBreaker, now: u64, query: &str, failure: &Failure) -> bool {
        let request = breaker.request(query);
        let admission = breaker.admit(at(now), request).expect("it is admitted");
        breaker.failed(at(now), &admission, failure)
    }

    fn refuse(breaker: &mut CircuitBreaker, now: u64, query: &str) -> OpenCircuit {
        let request = breaker.request(query);
        breaker.admit(at(now), request).expect_err("it rests")
    }

    fn is_open(breaker: &CircuitBreaker) -> bool {
        breaker.circuit_open_secs(at(0)).is_some()
    }

    #[test]
    fn five_failed_connections_open_the_circuit_and_a_response_closes_it() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..5 {
            assert!(!is_open(&breaker));
            fail(&mut breaker, 0, "a", &refused());
        }
        let resting = refuse(&mut breaker, 10, "b");
        assert_eq!((resting.secs, resting.is_alone, resting.because.as_str()), (20, false, "gone"));
        let request = breaker.request("b");
        let attempt = breaker.admit(at(30), request).expect("the rest is over");
        assert_eq!(refuse(&mut breaker, 30, "c").secs, 5, "one attempt at a time");
        breaker.succeeded(&attempt);
        assert!(breaker.admit(at(30), request).is_ok());
    }

    #[test]
    fn request_after_the_exact_wait_is_admitted() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..5 {
            fail(&mut breaker, 0, "a", &refused());
        }
        for millis in [1, 999, 29_001] {
            let now = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
            let mut breaker = breaker.clone();
            let secs = breaker.admit(now, breaker.request("b")).expect_err("it rests").secs;
            assert_eq!(breaker.circuit_open_secs(now), Some(secs), "{millis}");
            let then = now + Duration::from_secs(secs);
            assert!(breaker.admit(then, breaker.request("b")).is_ok(), "{millis}");
        }
    }

    #[test]
    fn a_failed_attempt_lengthens_the_rest_and_a_lost_one_is_replaced() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..5 {
            fail(&mut breaker, 0, "a", &refused());
        }
        fail(&mut breaker, 30, "b", &refused());
        assert_eq!(refuse(&mut breaker, 31, "b").secs, 59);
        let request = breaker.request("b");
        let lost = breaker.admit(at(90), request).expect("the rest is over");
        assert_eq!(refuse(&mut breaker, 90, "c").secs, 5);
        let next = breaker.admit(at(121), request).expect("the first attempt is lost");
        breaker.failed(at(122), &lost, &refused());
        assert_eq!(refuse(&mut breaker, 122, "c").secs, 5, "a lost attempt does not lengthen the rest");
        breaker.failed(at(122), &next, &refused());
        assert_eq!(refuse(&mut breaker, 122, "c").secs, 120);
    }

    #[test]
    fn requests_from_before_a_rest_do_not_lengthen_it() {
        let mut breaker = CircuitBreaker::default();
        let queries: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        let admissions: Vec<Admission> = queries
            .iter()
            .map(|query| breaker.admit(at(0), breaker.request(query)).expect("nothing has failed"))
            .collect();
        let mut questions = 0;
        for admission in &admissions {
            if breaker.failed(at(30), admission, &silent()) {
                questions += 1;
                breaker.identified(at(30), admission, Some(Err(&silent())));
            }
        }
        assert_eq!((questions, breaker.circuit_open_secs(at(30))), (1, Some(30)));
        assert_eq!(refuse(&mut breaker, 30, "other").age, Duration::ZERO);
    }

    #[test]
    fn a_request_that_fails_alone_rests_alone() {
        let mut breaker = CircuitBreaker::default();
        for failure in [status(500), silent(), status(403), status(500), status(500)] {
            assert!(!fail(&mut breaker, 0, "bad", &failure));
        }
        let resting = refuse(&mut breaker, 10, "bad");
        assert_eq!((resting.secs, resting.is_alone), (20, true));
        assert_eq!(
            breaker.admit(at(10), breaker.request("good")).map(|admission| admission.of_source),
            Ok(None)
        );
        fail(&mut breaker, 30, "bad", &status(500));
        assert_eq!(refuse(&mut breaker, 30, "bad").secs, 60, "the next rest is longer");
        let attempt = breaker.admit(at(90), breaker.request("bad")).expect("the rest is over");
        breaker.succeeded(&attempt);
        assert!(!fail(&mut breaker, 90, "bad", &status(500)) && breaker.admit(at(90), attempt).is_ok());
    }

    #[test]
    fn identify_decides_after_different_requests_fail() {
        for is_alive in [false, true] {
            let mut breaker = CircuitBreaker::default();
            assert!(!fail(&mut breaker, 0, "a", &status(500)));
            assert!(!fail(&mut breaker, 1, "a", &status(500)), "no other request");
            assert!(!fail(&mut breaker, 2, "b", &status(500)));
            let admission = breaker.admit(at(3), breaker.request("c")).expect("nothing rests");
            assert!(breaker.failed(at(3), &admission, &status(500)));
            assert!(!fail(&mut breaker, 3, "d", &status(500)), "Identify is already in progress");
            let failure = status(500);
            let answer = if is_alive { Ok(()) } else { Err(&failure) };
            breaker.identified(at(4), &admission, Some(answer));
            assert_eq!(is_open(&breaker), !is_alive);
            if !is_alive {
                assert_eq!(
                    refuse(&mut breaker, 4, "e").age,
                    Duration::from_secs(4),
                    "since the first failure"
                );
            }
        }
    }

    #[test]
    fn a_response_resets_the_count_of_different_requests() {
        let mut breaker = CircuitBreaker::default();
        for round in 0..3 {
            assert!(!fail(&mut breaker, round, &format!("a{round}"), &status(500)));
            assert!(!fail(&mut breaker, round, &format!("b{round}"), &status(500)));
            for _ in 0..4 {
                fail(&mut breaker, round, "c", &refused());
            }
            let admission = breaker.admit(at(round), breaker.request("good")).expect("nothing rests");
            breaker.succeeded(&admission);
        }
        assert!(!is_open(&breaker));
    }

    #[test]
    fn a_failing_attempt_closes_the_circuit_if_identify_succeeds() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..5 {
            fail(&mut breaker, 0, "a", &refused());
        }
        let attempt = breaker.admit(at(30), breaker.request("bad")).expect("the rest is over");
        assert!(breaker.failed(at(30), &attempt, &status(500)), "Identify decides");
        breaker.identified(at(30), &attempt, Some(Ok(())));
        assert!(breaker.admit(at(30), breaker.request("good")).is_ok());
    }

    #[test]
    fn failures_of_other_parties_begin_no_rest() {
        let mut breaker = CircuitBreaker::default();
        for number in 0..20 {
            let query = number.to_string();
            fail(&mut breaker, 0, "same", &Failure::new(Reason::Quarantine, ""));
            fail(&mut breaker, 0, "other", &status(404));
            assert!(!fail(&mut breaker, 0, &query, &status(404)));
            assert!(!fail(&mut breaker, 0, &query, &Failure::new(Reason::Ledger, "")));
        }
        for _ in 0..4 {
            fail(&mut breaker, 0, "elsewhere", &refused().after_status(302, None));
        }
        assert!(!is_open(&breaker));
        assert!(breaker.admit(at(0), breaker.request("same")).is_ok());
    }

    #[test]
    fn a_response_of_the_source_ends_the_short_rests_of_requests_too() {
        let mut breaker = CircuitBreaker::default();
        for round in 0..20 {
            let resting =
                breaker.requests.get(&breaker.request("bad").request).and_then(|bad| bad.rest.clone());
            let now =
                resting.map_or(round, |rest| rest.until.duration_since(at(0)).expect("later").as_secs());
            fail(&mut breaker, now, "bad", &status(500));
            let rest = breaker.requests.get(&breaker.request("bad").request).and_then(|bad| bad.rest.clone());
            assert!(rest.is_none_or(|rest| rest.until <= at(now) + LONGEST_REST_ALONE));
        }
        for _ in 0..5 {
            fail(&mut breaker, 10_000, "other", &refused());
        }
        let attempt = breaker.admit(at(10_030), breaker.request("other")).expect("the rest is over");
        breaker.succeeded(&attempt);
        assert!(breaker.admit(at(10_030), breaker.request("bad")).is_ok());
    }

    #[test]
    fn five_forbidden_responses_begin_a_long_rest() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..5 {
            fail(&mut breaker, 0, "a", &status(403));
        }
        assert_eq!(refuse(&mut breaker, 1, "a").secs, 599);
    }

    #[test]
    fn an_outage_starts_with_its_first_failure_and_ends_with_a_response_or_a_pause() {
        let mut breaker = CircuitBreaker::default();
        let age = |breaker: &CircuitBreaker, now, query| {
            breaker.age(at(now), &breaker.request(query), &status(500)).as_secs()
        };
        fail(&mut breaker, 0, "a", &status(500));
        fail(&mut breaker, 600, "a", &status(500));
        assert_eq!((age(&breaker, 600, "a"), age(&breaker, 600, "b")), (600, 0));
        fail(&mut breaker, 600 + 2 * 3600, "a", &status(500));
        assert_eq!(age(&breaker, 7800, "a"), 7800);
        fail(&mut breaker, 20_000, "a", &status(500));
        assert_eq!(age(&breaker, 20_000, "a"), 0, "another outage");
        let admission = breaker.admit(at(20_100), breaker.request("a")).expect("nothing rests");
        breaker.succeeded(&admission);
        assert_eq!(age(&breaker, 20_100, "a"), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_lengthen_a_rest() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..5 {
            fail(&mut breaker, 7_200, "a", &refused());
        }
        assert_eq!(breaker.circuit_open_secs(at(3_600)), Some(30));
        assert_eq!(refuse(&mut breaker, 3_600, "b").secs, 30);
        assert_eq!(refuse(&mut breaker, 3_610, "b").secs, 20);
        assert_eq!(breaker.circuit_open_secs(at(3_610)), Some(20));
        let lost = breaker.admit(at(3_630), breaker.request("b")).expect("the rest is over");
        assert_eq!(refuse(&mut breaker, 10, "c").secs, 5);
        let next = breaker.admit(at(41), breaker.request("c")).expect("the attempt is lost");
        assert_ne!(lost, next);
        breaker.succeeded(&next);
        assert!(!is_open(&breaker));
    }

    #[test]
    fn the_number_of_tracked_requests_is_limited() {
        let mut breaker = CircuitBreaker::default();
        for number in 0..3 * REQUESTS_MAX {
            let request = breaker.request(&number.to_string());
            breaker.failed(at(number as u64), &request, &Failure::new(Reason::Incomplete, ""));
            assert!(
                breaker.requests.len() <= REQUESTS_MAX && breaker.suspects.len() <= DIFFERENT_FAILURES_TO_ASK
            );
        }
        let last = breaker.request(&(3 * REQUESTS_MAX - 1).to_string());
        assert!(breaker.requests.contains_key(&last.request), "the oldest is dropped first");
    }
}
