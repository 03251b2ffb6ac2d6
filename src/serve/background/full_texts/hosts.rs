//! When a host may be requested: its pace, its pauses, and its robots.txt.

use oaimend_base::clock;
use robotxt::{AccessResult, Agent, Robots};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use url::Url;

/// The name by which a robots.txt addresses us.
const AGENT: Agent<'_> = Agent::Exact("oaimend");
/// How long a robots.txt is used (RFC 9309, 2.4).
const RULES_KEPT: Duration = Duration::from_secs(86_400);
/// How long a host is left alone if it or its robots.txt cannot be reached.
pub(super) const UNREACHABLE_KEPT: Duration = Duration::from_secs(600);
/// Longest pause that a host can ask for.
const PAUSE_MAX: Duration = Duration::from_secs(86_400);
/// Longest `Crawl-delay` that is followed.
const CRAWL_DELAY_MAX: Duration = Duration::from_secs(600);

/// The hosts of full texts. Mappings name them, so they are few.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// The paces, by host name: all ports and repositories share it.
    paces: Mutex<HashMap<String, Pace>>,
    /// The robots.txt files, by origin.
    robots: Mutex<HashMap<String, KnownRobots>>,
}

#[derive(Debug, Default)]
struct Pace {
    /// The time before which no request is sent, by [`clock::uptime`].
    next: Duration,
    /// Locked during an exchange.
    exchange: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Debug)]
struct KnownRobots {
    /// `None`: it could not be reached.
    rules: Option<Robots>,
    /// When it is fetched again, by [`clock::uptime`].
    until: Duration,
}

/// The rule of a robots.txt for a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RobotsRule {
    /// It has not been fetched yet.
    Unknown,
    Allowed,
    Disallowed,
    /// It could not be reached, so everything is forbidden for some time (RFC 9309, 2.3.1.4).
    Unreachable,
}

impl Hosts {
    fn with<T>(&self, url: &Url, task: impl FnOnce(&mut Pace) -> T) -> T {
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        task(paces.entry(url.host_str().unwrap_or_default().to_owned()).or_default())
    }

    fn robots(&self, url: &Url) -> Option<KnownRobots> {
        let robots = self.robots.lock().unwrap_or_else(PoisonError::into_inner);
        robots.get(&url.origin().ascii_serialization()).cloned()
    }

    /// How long the host of a URL may not be requested.
    pub(super) fn wait(&self, url: &Url) -> Duration {
        self.with(url, |host| host.next.saturating_sub(clock::uptime()))
    }

    /// Waits until no other exchange with the host of a URL runs. The next one begins when the guard is dropped.
    pub(super) async fn exchange(&self, url: &Url) -> OwnedMutexGuard<()> {
        let exchange = self.with(url, |host| Arc::clone(&host.exchange));
        exchange.lock_owned().await
    }

    /// Reserves the next request, and returns how long to wait before it is sent. The one after it is `gap` later.
    pub(super) fn reserve(&self, url: &Url, gap: Duration) -> Duration {
        let delay = self.robots(url).and_then(|robots| robots.rules?.crawl_delay());
        let gap = gap.max(delay.unwrap_or_default().min(CRAWL_DELAY_MAX));
        self.with(url, |host| {
            let now = clock::uptime();
            let start = host.next.max(now);
            host.next = start + gap;
            start - now
        })
    }

    /// Sends the host no request for this time.
    pub(super) fn pause(&self, url: &Url, time: Duration) {
        self.with(url, |host| host.next = host.next.max(clock::uptime() + time.min(PAUSE_MAX)));
    }

    /// The rule of the robots.txt of the host for a URL.
    pub(super) fn rule(&self, url: &Url) -> RobotsRule {
        match self.robots(url) {
            Some(known) if clock::uptime() < known.until => match &known.rules {
                None => RobotsRule::Unreachable,
                Some(rules) if rules.is_allowed(&path_and_query(url)) => RobotsRule::Allowed,
                Some(_) => RobotsRule::Disallowed,
            },
            _ => RobotsRule::Unknown,
        }
    }

    /// Notes the robots.txt of the host.
    pub(super) fn set_robots(&self, url: &Url, file: AccessResult<'_>) {
        let (rules, kept) = match file {
            AccessResult::Unreachable => {
                self.pause(url, UNREACHABLE_KEPT);
                (None, UNREACHABLE_KEPT)
            }
            file => (Some(Robots::from_access(file, AGENT)), RULES_KEPT),
        };
        let known = KnownRobots { rules, until: clock::uptime() + kept };
        let mut robots = self.robots.lock().unwrap_or_else(PoisonError::into_inner);
        robots.insert(url.origin().ascii_serialization(), known);
    }
}

fn path_and_query(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a literal URL")
    }

    #[test]
    fn robots_txt_speaks_for_its_origin() {
        let hosts = Hosts::default();
        let (private, open) = (url("http://x.example/private/1.pdf?a=b"), url("http://x.example/1.pdf"));
        assert_eq!(hosts.rule(&open), RobotsRule::Unknown);
        let file = b"User-agent: *\nDisallow: /\n\nUser-agent: oaimend\nDisallow: /private/\n";
        hosts.set_robots(&open, AccessResult::Successful(file));
        assert_eq!((hosts.rule(&open), hosts.rule(&private)), (RobotsRule::Allowed, RobotsRule::Disallowed));
        assert_eq!(hosts.rule(&url("https://x.example/1.pdf")), RobotsRule::Unknown);
        hosts.set_robots(&open, AccessResult::Successful(b"User-agent: *\nDisallow: /*.pdf$\n"));
        assert_eq!(hosts.rule(&open), RobotsRule::Disallowed);
        hosts.set_robots(&open, AccessResult::Unavailable);
        assert_eq!(hosts.rule(&private), RobotsRule::Allowed);
        hosts.set_robots(&open, AccessResult::Unreachable);
        assert_eq!(hosts.rule(&open), RobotsRule::Unreachable);
        for file in [&b"\xff\xfe\x00 garbage"[..], &[b'a'; 1 << 20], b"User-agent: *\nDisallow"] {
            hosts.set_robots(&open, AccessResult::Successful(file));
            assert_eq!(hosts.rule(&open), RobotsRule::Allowed);
        }
    }

    #[test]
    fn a_host_is_ready_after_its_gap_and_its_pause() {
        let (hosts, at, other) =
            (Hosts::default(), url("http://x.example/1.pdf"), url("http://y.example/1.pdf"));
        assert!(hosts.wait(&at).is_zero());
        assert_eq!(hosts.reserve(&at, Duration::ZERO), Duration::ZERO);
        assert!(hosts.wait(&at).is_zero());
        let hour = Duration::from_secs(3_600);
        assert_eq!(hosts.reserve(&at, hour), Duration::ZERO);
        assert!(!hosts.wait(&at).is_zero() && hosts.wait(&other).is_zero());
        assert!(
            hosts.reserve(&at, hour) > hour / 2 && hosts.reserve(&at, hour) > hour,
            "one after the other"
        );
        // All origins of a host share its pace.
        assert!(!hosts.wait(&url("https://x.example:8443/1.pdf")).is_zero());
        hosts.pause(&other, Duration::MAX);
        assert!(!hosts.wait(&other).is_zero());
        let slow = url("http://z.example/1.pdf");
        hosts.set_robots(&slow, AccessResult::Successful(b"User-agent: *\nCrawl-delay: 100\n"));
        hosts.reserve(&slow, Duration::ZERO);
        assert!(!hosts.wait(&slow).is_zero());
    }
}
