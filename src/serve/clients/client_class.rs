//! The address of a client, and its class.
//!
//! Both are a function of the peer's address, the request header and the configuration. `X-Forwarded-For` is read
//! from right to left, as long as the configuration trusts the proxy that added the hop. Hops that a client writes
//! itself have no effect.

use crate::config::{self, ClientToken};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, header};
use ipnet::IpNet;
use oaimend_search::SearchClient;
use oaimend_upstream::RequestedBy;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

/// One client: an IPv4 address, or an IPv6 network of 56 bits, the usual size of a household or a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(IpAddr);

impl ClientNetwork {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (!0 << 72)))),
            address => Self(address),
        }
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, if self.0.is_ipv6() { "/56" } else { "" })
    }
}

/// A client that has a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassifiedClient {
    /// Its class, as an index into [`ClientClasses::names`].
    pub(crate) class: usize,
    pub(crate) origin: ClientNetwork,
}

impl ClassifiedClient {
    /// The client as the limits of sources count it.
    pub(crate) fn as_requester(self) -> RequestedBy {
        let ClientNetwork(address) = self.origin;
        match self.class {
            CRAWLERS => RequestedBy::Crawler(Some(address)),
            _ => RequestedBy::Harvester(Some(address)),
        }
    }

    /// The client as the searches count it.
    pub(crate) fn as_search_client(self) -> SearchClient {
        let ClientNetwork(network) = self.origin;
        SearchClient { class: self.class, network }
    }
}

/// Assigns classes to clients.
#[derive(Debug)]
pub(crate) struct ClientClasses {
    trusted_proxies: Vec<IpNet>,
    names: Vec<String>,
    tokens: HashMap<ClientToken, usize>,
    known: Vec<(IpNet, usize)>,
    crawler_words: Vec<String>,
    crawler_addresses: Vec<IpNet>,
    /// Whether the warning about an untrusted local proxy was logged.
    has_warned: AtomicBool,
}

impl ClientClasses {
    pub(crate) fn new(config: &config::ClientPolicy) -> Self {
        let mut names = vec!["harvesters".to_owned(), "crawlers".to_owned()];
        let (mut tokens, mut known) = (HashMap::new(), Vec::new());
        for client in &config.known {
            let class = names.len();
            names.push(client.name.clone());
            tokens.extend(client.token.map(|token| (token, class)));
            known.extend(client.addresses.iter().map(|network| (*network, class)));
        }
        Self {
            trusted_proxies: config.trusted_proxies.clone(),
            names,
            tokens,
            known,
            crawler_words: config.crawlers.user_agents.clone(),
            crawler_addresses: config.crawlers.addresses.clone(),
            has_warned: AtomicBool::new(false),
        }
    }

    /// The names of the classes: harvesters first, crawlers second.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether to warn, once, that a local proxy is not trusted. Its clients have no quota then, which is seldom
    /// intended.
    pub(crate) fn should_warn_of_untrusted_proxy(&self, unlimited: &HeaderMap) -> bool {
        unlimited.contains_key(X_FORWARDED_FOR) && !self.has_warned.swap(true, Ordering::Relaxed)
    }

    /// Whether connections from this address are not limited by address: it is a trusted proxy or this machine.
    pub(crate) fn is_local_or_trusted(&self, peer: IpAddr) -> bool {
        peer.to_canonical().is_loopback() || self.is_trusted(peer)
    }

    /// The client of a request; `None` for loopback, which has no quota.
    pub(crate) fn client(&self, peer: Option<SocketAddr>, headers: &HeaderMap) -> Option<ClassifiedClient> {
        let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.ip().to_canonical());
        let forwarded = self.forwarded_for(peer, headers);
        // An address from a header field is never this machine.
        if peer.is_loopback() && forwarded.is_none() {
            return None;
        }
        let address = forwarded.unwrap_or(peer);
        Some(ClassifiedClient { class: self.class(address, headers), origin: ClientNetwork::of(address) })
    }

    /// The client address that trusted proxies report.
    fn forwarded_for(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let hops = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
        let mut address = None;
        for hop in hops {
            if !self.is_trusted(address.unwrap_or(peer)) {
                break;
            }
            // An invalid hop ends the chain: the proxy that forwarded it counts as the client.
            let Some(hop) = read_hop(hop) else { break };
            address = Some(hop);
        }
        address
    }

    fn class(&self, address: IpAddr, headers: &HeaderMap) -> usize {
        let by_token = || tokens_of(headers).find_map(|token| self.tokens.get(&token).copied());
        let by_address = || {
            let home = self.known.iter().find(|(network, _)| network.contains(&address));
            home.map(|(_, class)| *class)
        };
        let is_crawler = || {
            self.crawler_addresses.iter().any(|network| network.contains(&address))
                || headers
                    .get_all(header::USER_AGENT)
                    .iter()
                    .any(|name| self.names_a_crawler(name.as_bytes()))
        };
        let by_kind = || if is_crawler() { CRAWLERS } else { HARVESTERS };
        by_token().or_else(by_address).unwrap_or_else(by_kind)
    }

    fn names_a_crawler(&self, user_agent: &[u8]) -> bool {
        let user_agent = user_agent.to_ascii_lowercase();
        self.crawler_words.iter().any(|word| memchr::memmem::find(&user_agent, word.as_bytes()).is_some())
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(&address.to_canonical()))
    }
}

/// The tokens in a request: as `Bearer`, or as the password of `Basic`, which harvesters and proxy settings support.
fn tokens_of(headers: &HeaderMap) -> impl Iterator<Item = ClientToken> {
    let names = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION];
    let values = names.into_iter().filter_map(|name| headers.get(name)?.to_str().ok());
    values.filter_map(|value| {
        let (scheme, shown) = value.split_once(' ')?;
        let shown = shown.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(ClientToken::from_plaintext(shown.as_bytes()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let pair = BASE64_STANDARD.decode(shown).ok()?;
        let colon = pair.iter().position(|&byte| byte == b':')?;
        Some(ClientToken::from_plaintext(&pair[colon + 1..]))
    })
}

/// An address in `X-Forwarded-For`. Some proxies append the port.
fn read_hop(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?.trim();
    let bare = hop.trim_start_matches('[').trim_end_matches(']').parse();
    let address = bare.or_else(|_| hop.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// The class of every client that has no other.
pub(crate) const HARVESTERS: usize = 0;
/// The class of crawlers.
pub(crate) const CRAWLERS: usize = 1;
const X_FORWARDED_FOR: &str = "x-forwarded-for";

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(configure: impl FnOnce(&mut config::ClientPolicy)) -> ClientClasses {
        let mut config = config::ClientPolicy::default();
        configure(&mut config);
        ClientClasses::new(&config)
    }

    fn with_trusted_proxies(proxies: &[&str]) -> ClientClasses {
        classes(|config| {
            config.trusted_proxies = proxies.iter().map(|text| text.parse().expect("a network")).collect();
        })
    }

    fn classify(
        classes: &ClientClasses,
        peer: &str,
        headers: &[(&'static str, &str)],
    ) -> Option<ClassifiedClient> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a legal value"));
        }
        classes.client(Some(SocketAddr::new(peer.parse().expect("an address"), 1)), &map)
    }

    #[track_caller]
    fn assert_origin(classes: &ClientClasses, peer: &str, forwarded: &[&str], address: &str) {
        let headers: Vec<_> = forwarded.iter().map(|value| (X_FORWARDED_FOR, *value)).collect();
        let origin = classify(classes, peer, &headers).map(|client| client.origin);
        assert_eq!(
            origin,
            Some(ClientNetwork::of(address.parse().expect("an address"))),
            "{peer} {forwarded:?}"
        );
    }

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network_of_56_bits() {
        let origin = |text: &str| ClientNetwork::of(text.parse().expect("an address"));
        assert_ne!(origin("192.0.2.1"), origin("192.0.2.2"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        assert_eq!(origin("2001:db8:0:ff::1"), origin("2001:db8:0:00::ffff:1"));
        assert_ne!(origin("2001:db8:0:100::1"), origin("2001:db8:0:00::1"));
    }

    #[test]
    fn an_untrusted_peer_cannot_claim_an_address() {
        let classes = with_trusted_proxies(&["10.0.0.0/8"]);
        assert_origin(&classes, "192.0.2.9", &["198.51.100.1"], "192.0.2.9");
        assert_origin(&classes, "192.0.2.9", &["127.0.0.1"], "192.0.2.9");
        assert_origin(&with_trusted_proxies(&[]), "10.0.0.1", &["198.51.100.1"], "10.0.0.1");
    }

    #[test]
    fn the_rightmost_untrusted_hop_is_the_client() {
        let classes = with_trusted_proxies(&["10.0.0.0/8", "2001:db8:aaaa::/48"]);
        assert_origin(&classes, "10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        assert_origin(&classes, "::ffff:10.0.0.1", &["198.51.100.1:443"], "198.51.100.1");
        assert_origin(&classes, "10.0.0.1", &["127.0.0.1, 198.51.100.1"], "198.51.100.1");
        assert_origin(&classes, "10.0.0.1", &["198.51.100.7", "198.51.100.1 ,10.0.0.2"], "198.51.100.1");
        assert_origin(&classes, "10.0.0.1", &["198.51.100.7, [2001:db8:aaaa::1]:80"], "198.51.100.7");
        assert_origin(&classes, "2001:db8:aaaa::2", &["[2001:db8::1]"], "2001:db8::1");
        // All hops are trusted proxies, so the first one is the client.
        assert_origin(&classes, "10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
    }

    #[test]
    fn an_invalid_hop_ends_the_trusted_chain() {
        let classes = with_trusted_proxies(&["10.0.0.0/8"]);
        assert_origin(&classes, "10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1");
        assert_origin(&classes, "10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2");
        assert_origin(&classes, "10.0.0.1", &[""], "10.0.0.1");
    }

    #[test]
    fn loopback_has_no_quota_and_cannot_be_claimed() {
        let classes = with_trusted_proxies(&["127.0.0.0/8"]);
        let forwarded = HeaderMap::from_iter([(
            http::HeaderName::from_static(X_FORWARDED_FOR),
            "x".parse().expect("legal"),
        )]);
        assert!(!classes.should_warn_of_untrusted_proxy(&HeaderMap::new()));
        assert_eq!(
            [
                classes.should_warn_of_untrusted_proxy(&forwarded),
                classes.should_warn_of_untrusted_proxy(&forwarded)
            ],
            [true, false],
            "once"
        );
        assert_eq!(classify(&classes, "127.0.0.1", &[]), None);
        assert_eq!(classify(&classes, "::1", &[]), None);
        assert_eq!(
            classify(&with_trusted_proxies(&[]), "127.0.0.1", &[(X_FORWARDED_FOR, "198.51.100.1")]),
            None
        );
        assert_origin(&classes, "127.0.0.1", &["198.51.100.1"], "198.51.100.1");
        assert_origin(&classes, "127.0.0.1", &["127.0.0.1"], "127.0.0.1");
    }

    #[test]
    fn crawlers_are_recognised_by_name_and_http_libraries_are_harvesters() {
        let classes = classes(|config| {
            config.crawlers.addresses = vec!["203.0.113.0/24".parse().expect("a network")];
        });
        let class = |user_agent: &str| {
            classify(&classes, "192.0.2.1", &[("user-agent", user_agent)]).expect("it is not loopback").class
        };
        for crawler in [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
            "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)",
            "CCBot/2.0 (https://commoncrawl.org/faq/)",
            "Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)",
            "mozilla/5.0 (compatible; AHREFSBOT/7.0)",
            "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
        ] {
            assert_eq!(class(crawler), CRAWLERS, "{crawler}");
        }
        for harvester in [
            "Python-urllib/3.12",
            "python-requests/2.32.3",
            "libwww-perl/6.77",
            "curl/8.5.0",
            "Wget/1.21",
            "Java/17.0.2",
            "Apache-HttpClient/4.5.13 (Java/11)",
            "Go-http-client/1.1",
            "okhttp/4.9.3",
            "OAIHarvester/2.0",
            "oaimend/0.1.0",
            "BASE-OAI-Harvester",
            "Sickle",
            "METHA/0.3.1",
            "",
            "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Scrapy/2.11",
        ] {
            assert_eq!(class(harvester), HARVESTERS, "{harvester}");
        }
        assert_eq!(classify(&classes, "203.0.113.9", &[]).map(|client| client.class), Some(CRAWLERS));
    }

    #[test]
    fn known_clients_are_recognised_by_token_or_address_first() {
        let known = |name: &str, token: Option<&str>, address: &str| config::KnownClient {
            name: name.into(),
            token: token.map(|token| ClientToken::from_plaintext(token.as_bytes())),
            addresses: vec![address.parse().expect("a network")],
            quotas: config::ClassQuotas::default(),
        };
        let classes = classes(|config| {
            config.known = vec![
                known("core", Some("a-token-of-core"), "192.0.2.0/28"),
                known("base", None, "198.51.100.0/24"),
            ];
        });
        assert_eq!(classes.names(), ["harvesters", "crawlers", "core", "base"]);
        let class = |peer: &str, name: &'static str, value: &str| {
            classify(&classes, peer, &[(name, value), ("user-agent", "Googlebot")])
                .expect("not loopback")
                .class
        };
        assert_eq!(class("203.0.113.1", "authorization", "Bearer a-token-of-core"), 2);
        assert_eq!(class("203.0.113.1", "authorization", "bearer  a-token-of-core "), 2);
        let basic = format!("Basic {}", BASE64_STANDARD.encode("any:a-token-of-core"));
        assert_eq!(class("203.0.113.1", "authorization", &basic), 2);
        assert_eq!(class("203.0.113.1", "proxy-authorization", &basic), 2);
        assert_eq!(class("198.51.100.9", "accept", "*/*"), 3);
        for wrong in ["Bearer a-token-of-cor", "Basic a-token-of-core", "a-token-of-core", "Basic YQ=="] {
            assert_eq!(class("203.0.113.1", "authorization", wrong), CRAWLERS, "{wrong}");
        }
    }
}
