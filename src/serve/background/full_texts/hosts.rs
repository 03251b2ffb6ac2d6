//! When a host may be requested: its pace, its pauses, and its robots.txt.

use oaimend_base::clock;
use robotxt::{AccessResult, Agent, Robots};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// The name by which a robots.txt addresses us.
const AGENT: Agent<'_> = Agent::Exact("oaimend");
/// How long a robots.txt is used (RFC 9309, 2.4).
const RULES_KEPT: Duration = Duration::from_secs(86_400);
/// How long a host is left alone if its robots.txt cannot be reached.
const UNREACHABLE_KEPT: Duration = Duration::from_secs(600);
/// Longest pause that a host can ask for.
const PAUSE_MAX: Duration = Duration::from_secs(86_400);
/// Longest `Crawl-delay` that is followed.
const CRAWL_DELAY_MAX: Duration = Duration::from_secs(600);

/// The hosts of full texts, by their origins. Mappings name them, so they are few.
#[derive(Debug, Default)]
pub(super) struct Hosts(Mutex<HashMap<String, Host>>);

#[derive(Debug, Default)]
struct Host {
    /// The time before which no request is sent, by [`clock::uptime`].
    next: Duration,
    robots: Option<KnownRobots>,
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
    fn with<T>(&self, url: &Url, task: impl FnOnce(&mut Host) -> T) -> T {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        task(hosts.entry(url.origin().ascii_serialization()).or_default())
    }

    /// Whether the host of a URL may be requested now.
    pub(super) fn is_ready(&self, url: &Url) -> bool {
        self.with(url, |host| host.next <= clock::uptime())
    }

    /// Reserves the next request, and returns how long to wait before it is sent. The one after it is `gap` later.
    pub(super) fn reserve(&self, url: &Url, gap: Duration) -> Duration {
        self.with(url, |host| {
            let delay = host.robots.as_ref().and_then(|robots| robots.rules.as_ref()?.crawl_delay());
            let gap = gap.max(delay.unwrap_or_default().min(CRAWL_DELAY_MAX));
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
        self.with(url, |host| match &host.robots {
            Some(known) if clock::uptime() < known.until => match &known.rules {
                None => RobotsRule::Unreachable,
                Some(rules) if rules.is_allowed(&path_and_query(url)) => RobotsRule::Allowed,
                Some(_) => RobotsRule::Disallowed,
            },
            _ => RobotsRule::Unknown,
        })
    }

    /// Notes the robots.txt of the host.
    pub(super) fn set_robots(&self, url: &Url, file: AccessResult<'_>) {
        let (rules, kept) = match file {
            AccessResult::Unreachable => (None, UNREACHABLE_KEPT),
            file => (Some(Robots::from_access(file, AGENT)), RULES_KEPT),
        };
        self.with(url, |host| host.robots = Some(KnownRobots { rules, until: clock::uptime() + kept }));
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
        assert!(hosts.is_ready(&at));
        assert_eq!(hosts.reserve(&at, Duration::ZERO), Duration::ZERO);
        assert!(hosts.is_ready(&at));
        let hour = Duration::from_secs(3_600);
        assert_eq!(hosts.reserve(&at, hour), Duration::ZERO);
        assert!(!hosts.is_ready(&at) && hosts.is_ready(&other));
        assert!(
            hosts.reserve(&at, hour) > hour / 2 && hosts.reserve(&at, hour) > hour,
            "one after the other"
        );
        hosts.pause(&other, Duration::MAX);
        assert!(!hosts.is_ready(&other));
        let slow = url("http://z.example/1.pdf");
        hosts.set_robots(&slow, AccessResult::Successful(b"User-agent: *\nCrawl-delay: 100\n"));
        hosts.reserve(&slow, Duration::ZERO);
        assert!(!hosts.is_ready(&slow));
    }
}
