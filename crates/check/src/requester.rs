//! Sends the requests of a check, with pauses and within limits.

use super::exchange::{CheckRequest, CheckResponse, Deferral, Progress, Received};
use oaimend_base::clock::Clock;
use oaimend_repository::Failure;
use oaimend_upstream::SourceClient;
use oaimend_upstream::settings::SourceMapping;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use url::{Host, Url};

/// The connection to one source, and the state of its limits.
pub(crate) struct Requester<'a> {
    client: SourceClient,
    clock: Arc<dyn Clock>,
    /// The shortest time between the end of a response and the next request.
    gap: Duration,
    /// The longest time for all requests together.
    time_max: Duration,
    started: SystemTime,
    pub(crate) requests: usize,
    /// Why not all requests were sent, if so.
    pub(crate) stopped: Option<&'static str>,
    waited: Duration,
    failures_in_a_row: usize,
    on_progress: &'a mut (dyn FnMut(Progress<'_>) + Send),
}

impl<'a> Requester<'a> {
    pub(crate) fn new(
        mapping: &SourceMapping,
        time_max: Duration,
        clock: Arc<dyn Clock>,
        on_progress: &'a mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Self, Failure> {
        let mut mapping = mapping.clone();
        let limits = &mut mapping.limits;
        limits.response_bytes_max = limits.response_bytes_max.min(RESPONSE_BYTES_MAX);
        let least = if is_on_this_machine(&mapping.base_url) { Duration::ZERO } else { GAP };
        let gap = mapping.politeness.gap.max(least);
        let client = SourceClient::new(&Arc::new(mapping))?;
        Ok(Self {
            client,
            gap,
            time_max,
            started: clock.now(),
            clock,
            requests: 0,
            stopped: None,
            waited: Duration::ZERO,
            failures_in_a_row: 0,
            on_progress,
        })
    }

    /// Sends a request; repeats it as long as the source asks to retry later.
    pub(crate) async fn send(&mut self, request: CheckRequest) -> CheckResponse {
        let mut deferrals = Vec::new();
        loop {
            if let Some(why) = self.stop_reason() {
                self.stopped = Some(why);
                return CheckResponse::new(request, Received::Skipped(why.to_owned()), deferrals);
            }
            if self.requests > 0 && !self.gap.is_zero() {
                self.clock.pause(self.gap).await;
            }
            self.requests += 1;
            (self.on_progress)(Progress::Request { number: self.requests, request: &request });
            let time_max = RESPONSE_TIMEOUT.min(self.time_left());
            let sent = self.client.probe(&request.query(), request.is_form, time_max, &self.clock).await;
            let probed = match sent {
                Ok(probed) => probed,
                // The limit of the check is not the source's fault.
                Err(_) if self.time_left().is_zero() => continue,
                Err(failure) => {
                    self.failures_in_a_row += 1;
                    return CheckResponse::new(request, Received::Failed(failure.details), deferrals);
                }
            };
            self.failures_in_a_row = 0;
            if !matches!(probed.status, 429 | 503) {
                return CheckResponse::new(request, Received::Complete(probed), deferrals);
            }
            let wait = parse_retry_after(probed.retry_after.as_deref());
            deferrals.push(Deferral { status: probed.status, retry_after: probed.retry_after.clone() });
            if deferrals.len() > DEFERRALS_MAX || self.waited.saturating_add(wait) > WAIT_MAX {
                return CheckResponse::new(request, Received::Complete(probed), deferrals);
            }
            if wait >= self.time_left() {
                self.stopped = Some(OUT_OF_TIME);
                return CheckResponse::new(request, Received::Skipped(OUT_OF_TIME.to_owned()), deferrals);
            }
            self.waited += wait;
            (self.on_progress)(Progress::Wait { time: wait, status: probed.status });
            self.clock.pause(wait).await;
        }
    }

    /// The time that is left for the check.
    fn time_left(&self) -> Duration {
        let elapsed = self.clock.now().duration_since(self.started).unwrap_or_default();
        self.time_max.saturating_sub(elapsed)
    }

    /// Why no further request is sent, if so.
    fn stop_reason(&self) -> Option<&'static str> {
        // A wait that would end after the limit ends the check, too.
        if self.time_left().is_zero() || self.stopped == Some(OUT_OF_TIME) {
            return Some(OUT_OF_TIME);
        }
        if self.failures_in_a_row >= FAILURES_MAX {
            return Some("not requested: several requests in a row failed");
        }
        (self.requests >= REQUESTS_MAX).then_some("not requested: the check has sent its maximum of requests")
    }
}

/// Why a request is not sent after the end of the total time.
const OUT_OF_TIME: &str = "not requested: the time limit of the check was reached";

/// The wait that a `Retry-After` header asks for.
fn parse_retry_after(retry_after: Option<&str>) -> Duration {
    let seconds = retry_after.and_then(|value| value.trim().parse().ok());
    seconds.map_or(WAIT_DEFAULT, Duration::from_secs)
}

/// Whether requests to this URL stay on this machine.
fn is_on_this_machine(base_url: &Url) -> bool {
    match base_url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The shortest time between two requests to another machine.
const GAP: Duration = Duration::from_secs(1);
/// The number of requests of one check; without deferrals it needs about 60.
const REQUESTS_MAX: usize = 150;
/// The longest response, in bytes after decoding; it is held in memory and read into a tree.
const RESPONSE_BYTES_MAX: u64 = 32 << 20;
/// The longest time for one response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
/// How often in a row a source may ask to retry later.
const DEFERRALS_MAX: usize = 5;
/// The wait for a deferral without a usable `Retry-After`.
const WAIT_DEFAULT: Duration = Duration::from_secs(10);
/// The longest total wait for a source.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// How many requests in a row may fail.
const FAILURES_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_on_this_machine_have_no_gap() {
        for (url, is_near) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://[::1]/x", true),
            ("http://localhost/x", true),
            ("http://10.0.0.1/x", false),
            ("https://repository.example/oai", false),
        ] {
            assert_eq!(is_on_this_machine(&Url::parse(url).expect("a literal URL")), is_near, "{url}");
        }
    }

    #[test]
    fn retry_after_sets_the_wait() {
        assert_eq!(parse_retry_after(Some("7")), Duration::from_secs(7));
        assert_eq!(parse_retry_after(Some("Sun, 06 Nov 1994 08:49:37 GMT")), WAIT_DEFAULT);
        assert_eq!(parse_retry_after(None), WAIT_DEFAULT);
    }
}
