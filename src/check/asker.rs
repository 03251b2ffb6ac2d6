//! Asks the source, politely and within bounds.

use super::Progress;
use super::answer::{Answer, Asked, Came, PutOff};
use crate::clock::Clock;
use crate::config::Mapping;
use crate::upstream::{Failure, SourceClient};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// One source, and how much it has been asked.
pub(super) struct Asker<'a> {
    client: SourceClient,
    clock: Arc<dyn Clock>,
    /// Shortest time between the end of an answer and the next request.
    gap: Duration,
    pub(super) requests: usize,
    waited: Duration,
    missing_in_a_row: usize,
    told: &'a mut (dyn FnMut(Progress<'_>) + Send),
}

impl<'a> Asker<'a> {
    pub(super) fn new(
        mapping: &Mapping,
        clock: Arc<dyn Clock>,
        told: &'a mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Self, Failure> {
        let mut mapping = mapping.clone();
        let limits = &mut mapping.limits;
        limits.response_bytes_max = limits.response_bytes_max.min(RESPONSE_BYTES_MAX);
        limits.first_record_timeout = ANSWER_TIMEOUT;
        let own = if is_on_this_machine(&mapping.base_url) { Duration::ZERO } else { GAP };
        let gap = mapping.politeness.gap.max(own);
        let client = SourceClient::new(&Arc::new(mapping))?;
        let waited = Duration::ZERO;
        Ok(Self { client, clock, gap, requests: 0, waited, missing_in_a_row: 0, told })
    }

    /// Asks, and asks again when the source says that it should be asked later.
    pub(super) async fn ask(&mut self, asked: Asked) -> Answer {
        let mut put_off = Vec::new();
        loop {
            if let Some(why) = self.spent() {
                return Answer::new(asked, Came::NotAsked(why.to_owned()), put_off);
            }
            if self.requests > 0 && !self.gap.is_zero() {
                self.clock.pause(self.gap).await;
            }
            self.requests += 1;
            (self.told)(Progress { requests: self.requests, asked: &asked });
            let probed = match self.client.probe(&asked.query(), asked.is_form, &self.clock).await {
                Ok(probed) => probed,
                Err(failure) => {
                    self.missing_in_a_row += 1;
                    return Answer::new(asked, Came::Missing(failure.details), put_off);
                }
            };
            self.missing_in_a_row = 0;
            if !matches!(probed.status, 429 | 503) {
                return Answer::new(asked, Came::Whole(probed), put_off);
            }
            let wait = wait_of(probed.retry_after.as_deref());
            put_off.push(PutOff { status: probed.status, retry_after: probed.retry_after.clone() });
            if put_off.len() > PUT_OFF_MAX || self.waited + wait > WAIT_MAX {
                return Answer::new(asked, Came::Whole(probed), put_off);
            }
            self.waited += wait;
            self.clock.pause(wait).await;
        }
    }

    /// Why nothing more is asked, if so.
    fn spent(&self) -> Option<&'static str> {
        if self.missing_in_a_row >= MISSING_MAX {
            return Some("not asked: the source gave no answer several times in a row");
        }
        (self.requests >= REQUESTS_MAX).then_some("not asked: the check has made as many requests as it may")
    }
}

/// How long a source wants to be left alone.
fn wait_of(retry_after: Option<&str>) -> Duration {
    let seconds = retry_after.and_then(|said| said.trim().parse().ok());
    seconds.map_or(WAIT_DEFAULT, Duration::from_secs)
}

/// Whether nobody else is in the way of the requests.
fn is_on_this_machine(base_url: &Url) -> bool {
    match base_url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Shortest time between two requests to another machine.
const GAP: Duration = Duration::from_secs(1);
/// Most requests of one check; without a 503 it makes some 40.
const REQUESTS_MAX: usize = 100;
/// Longest answer, in bytes after decoding: it is held, and read into a tree.
const RESPONSE_BYTES_MAX: u64 = 32 << 20;
/// Longest time that an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How often in a row a source may say that it should be asked later.
const PUT_OFF_MAX: usize = 5;
/// Waiting time where the source names none.
const WAIT_DEFAULT: Duration = Duration::from_secs(10);
/// Longest time that is waited for a source in all.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// How many requests in a row may stay without an answer.
const MISSING_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_source_on_this_machine_is_asked_without_a_gap() {
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
    fn a_source_is_left_alone_as_long_as_it_says() {
        assert_eq!(wait_of(Some("7")), Duration::from_secs(7));
        assert_eq!(wait_of(Some("Sun, 06 Nov 1994 08:49:37 GMT")), WAIT_DEFAULT);
        assert_eq!(wait_of(None), WAIT_DEFAULT);
    }
}
