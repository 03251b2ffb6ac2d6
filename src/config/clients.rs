//! The `clients` table: classes of clients and their quotas.
//!
//! There are three kinds of class: crawlers, recognised by `User-Agent` or address; known clients,
//! each with a name and recognised by a token or address; and harvesters, which are all others.
//! Requests from loopback belong to no class and have no quota.

use super::keys::{Keys, List, Located, Table, declare, file, list, millis, requests, string, text};
use blake2::{Blake2s256, Digest};
use ipnet::IpNet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;

/// How clients are classified, and the quota of each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPolicy {
    /// Peers whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The longest wait of a request for its quota before it is refused.
    pub wait_max: Duration,
    /// Quotas of the clients that belong to no other class.
    pub harvesters: ClassQuotas,
    /// Crawlers: clients that read every URL and do not harvest.
    pub crawlers: Crawlers,
    /// Known clients, in the order of the file.
    pub known: Vec<KnownClient>,
}

/// How crawlers are recognised, and their quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crawlers {
    /// Words that identify a crawler anywhere in a `User-Agent`, in any case.
    pub user_agents: Vec<String>,
    /// The addresses of crawlers.
    pub addresses: Vec<IpNet>,
    /// The quotas of crawlers.
    pub quotas: ClassQuotas,
}

/// A client with a name and quotas of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownClient {
    /// Its name, in metrics and messages.
    pub name: String,
    /// The token that identifies it.
    pub token: Option<ClientToken>,
    /// The addresses that identify it.
    pub addresses: Vec<IpNet>,
    /// Its quotas.
    pub quotas: ClassQuotas,
}

/// The quotas of a class of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassQuotas {
    /// The quota of each client of the class: an IPv4 address, or an IPv6 network of 56 bits.
    pub each: Quota,
    /// The quota of all clients of the class together.
    pub all: Quota,
    /// The quotas of pages that cause no request to a source. Such requests do not count for the others.
    pub pages: PageQuotas,
}

/// The quotas of a class of clients for pages that cause no request to a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageQuotas {
    /// The quota of each client.
    pub each: Quota,
    /// The quota of all clients of the class together.
    pub all: Quota,
}

/// How many requests are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Requests per minute in the long run; `None`: no limit.
    pub rate_per_minute: Option<NonZeroU32>,
    /// Requests at once after a pause. Applies only where a rate is set.
    pub burst: Option<NonZeroU32>,
    /// Concurrent requests; `None`: no limit.
    pub in_flight_max: Option<NonZeroU32>,
}

/// The hash of a client's token: it can be compared and cannot be displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientToken([u8; 32]);

impl ClientToken {
    /// Hashes the text of a token.
    pub(crate) fn from_plaintext(text: &[u8]) -> Self {
        Self(Blake2s256::digest(text).into())
    }
}

impl Default for ClientPolicy {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            wait_max: Duration::from_secs(2),
            harvesters: ClassQuotas {
                each: quota(6000, 200, 64),
                all: Quota::default(),
                pages: PageQuotas { each: quota(6000, 200, 64), all: Quota::default() },
            },
            crawlers: Crawlers {
                user_agents: CRAWLERS.iter().map(|&name| name.to_owned()).collect(),
                addresses: Vec::new(),
                quotas: ClassQuotas {
                    each: quota(60, 10, 2),
                    all: quota(240, 40, 8),
                    // A million pages in 14 hours.
                    pages: PageQuotas { each: quota(1200, 60, 4), all: quota(6000, 300, 16) },
                },
            },
            known: Vec::new(),
        }
    }
}

impl ClientPolicy {
    /// The keys of the table. Relative paths start at `folder`.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>, folder: &Path) {
        declare! { keys:
            /// Proxies whose `X-Forwarded-For` header is trusted.
            trusted_proxies: networks() => self.trusted_proxies,
            /// How long a request over its quota waits before it is refused.
            wait_max_millis: millis(0..=60_000) => self.wait_max,
        }
        self.harvesters.declare(keys);
        keys.table("crawlers", "How crawlers are recognised, and their quotas.", |keys| {
            self.crawlers.declare(keys);
        });
        keys.named_tables("known", "Clients with names and quotas of their own.", |keys, name| {
            let client = KnownClient::declare(name, keys, folder);
            if client.token.is_some()
                && let Some(duplicate) = self.known.iter().find(|other| other.token == client.token)
                && let Some(table) = keys.reading()
            {
                table.report_missing(format!(
                    "clients.known.{} has the same token as {}",
                    client.name, duplicate.name
                ));
            }
            self.known.push(client);
        });
    }
}

impl Crawlers {
    fn declare(&mut self, keys: &mut Keys<'_, '_>) {
        declare! { keys:
            /// Parts of the `User-Agent` of crawlers, in any case, at least 3 characters. They replace the built-in
            /// list, which has no HTTP libraries such as `python-requests` or `curl`.
            user_agents: list("strings", string("string", read_user_agent_word)) => self.user_agents,
            /// Addresses of crawlers.
            addresses: networks() => self.addresses,
        }
        self.quotas.declare(keys);
    }
}

impl KnownClient {
    fn declare(name: Located<String>, keys: &mut Keys<'_, '_>, folder: &Path) -> Self {
        let mut client =
            Self { name: name.value, token: None, addresses: Vec::new(), quotas: ClassQuotas::default() };
        declare! { keys:
            /// File with the token of the client, at least 16 printable characters.
            token_file: file(folder, |path| read_token(&path)) => client.token,
            /// Addresses of the client.
            addresses: networks() => client.addresses,
        }
        client.quotas.declare(keys);
        if let Some(table) = keys.reading() {
            check_name(table, &client.name, name.span);
            if !table.has_key("token_file") && !table.has_key("addresses") {
                let text = format!("clients.known.{}: token_file or addresses is missing", client.name);
                table.report_missing(text);
            }
        }
        client
    }
}

fn check_name(table: &Table<'_, '_>, name: &str, span: Range<usize>) {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_reserved = matches!(name, "harvesters" | "crawlers" | "any");
    if is_reserved || name.is_empty() || !name.bytes().all(legal) {
        let value = name.escape_debug();
        let expected = "expected letters, digits, '-' and '_', and not harvesters, crawlers or any";
        table.report_fault(span, format!("clients.known: \"{value}\" is not a client name; {expected}"));
    }
}

impl ClassQuotas {
    fn declare(&mut self, keys: &mut Keys<'_, '_>) {
        self.each.declare(keys);
        keys.table("all", "The quota of all clients of the class together.", |keys| self.all.declare(keys));
        let meaning = "The quotas of pages that cause no request to a source.";
        keys.table("pages", meaning, |keys| {
            self.pages.each.declare(keys);
            keys.table("all", "The quota of all clients of the class together.", |keys| {
                self.pages.all.declare(keys);
            });
        });
    }
}

impl Quota {
    fn declare(&mut self, keys: &mut Keys<'_, '_>) {
        declare! { keys:
            /// Maximum number of requests per minute in the long run. 0: no limit.
            rate_per_minute: requests(QUOTA) => self.rate_per_minute,
            /// Maximum number of requests at once after a pause. 0: no limit.
            burst: requests(QUOTA) => self.burst,
            /// Maximum number of requests in flight. 0: no limit.
            in_flight_max: requests(QUOTA) => self.in_flight_max,
        }
    }
}

/// The range of a quota.
const QUOTA: RangeInclusive<u64> = 0..=1_000_000;

fn networks() -> List<'static, IpNet> {
    list(
        "addresses and networks",
        text("address or network", read_network, |network| Some(network.to_string())),
    )
}

fn read_network(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse::<IpNet>().ok().or(address.ok());
    network.map(|network| network.trunc()).ok_or_else(|| {
        "is not an address; expected an address such as \"192.0.2.7\" or a network such as \"2001:db8::/32\"".to_owned()
    })
}

/// Reads a word of a `User-Agent`, in lower case; a word that is too short matches every client and
/// is a fault.
fn read_user_agent_word(text: &str) -> Result<String, String> {
    if text.trim().len() >= USER_AGENT_WORD_BYTES_MIN && text.is_ascii() {
        return Ok(text.trim().to_ascii_lowercase());
    }
    let expected = "expected a part of a User-Agent of 3 characters or more, such as \"examplebot\"";
    Err(format!("is too short; {expected}"))
}

fn read_token(path: &Path) -> Result<ClientToken, String> {
    let expected = format!("expected a file with a token of {TOKEN_BYTES_MIN} printable characters or more");
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}; {expected}"))?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("contains no token; {expected}"));
    }
    Ok(ClientToken::from_plaintext(token.as_bytes()))
}

const fn quota(rate_per_minute: u32, burst: u32, in_flight_max: u32) -> Quota {
    Quota {
        rate_per_minute: NonZeroU32::new(rate_per_minute),
        burst: NonZeroU32::new(burst),
        in_flight_max: NonZeroU32::new(in_flight_max),
    }
}

/// The shortest token, in bytes: a shorter one can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// The shortest part of a `User-Agent` that identifies a crawler, in bytes.
const USER_AGENT_WORD_BYTES_MIN: usize = 3;

/// Crawlers of search engines, language models, shops and previews: the words in their
/// `User-Agent`, in lower case. HTTP libraries are not listed, because harvesters use them.
const CRAWLERS: &[&str] = &[
    // Search engines and web archives.
    "googlebot",
    "googleother",
    "google-inspectiontool",
    "google-cloudvertexbot",
    "bingbot",
    "bingpreview",
    "duckduckbot",
    "duckassistbot",
    "yahoo! slurp",
    "yandexbot",
    "yandexrenderresourcesbot",
    "baiduspider",
    "sogou web spider",
    "360spider",
    "petalbot",
    "applebot",
    "seznambot",
    "qwantbot",
    "qwantify",
    "exabot",
    "mojeekbot",
    "coccocbot",
    "yisouspider",
    "shenmabot",
    "archive.org_bot",
    "ia_archiver",
    // Crawlers for language models.
    "gptbot",
    "oai-searchbot",
    "chatgpt-user",
    "claudebot",
    "claude-user",
    "claude-searchbot",
    "claude-web",
    "anthropic-ai",
    "perplexitybot",
    "perplexity-user",
    "ccbot",
    "bytespider",
    "tiktokspider",
    "amazonbot",
    "meta-externalagent",
    "meta-externalfetcher",
    "facebookbot",
    "cohere-ai",
    "cohere-training-data-crawler",
    "mistralai-user",
    "diffbot",
    "ai2bot",
    "timpibot",
    "imagesiftbot",
    "youbot",
    "omgili",
    "webzio",
    "pangubot",
    "kangaroo bot",
    "img2dataset",
    "icc-crawler",
    "velenpublicwebcrawler",
    "firecrawlagent",
    // Crawlers for marketing and monitoring.
    "ahrefsbot",
    "ahrefssiteaudit",
    "semrushbot",
    "siteauditbot",
    "mj12bot",
    "dotbot",
    "rogerbot",
    "blexbot",
    "dataforseobot",
    "serpstatbot",
    "barkrowler",
    "megaindex",
    "seokicks",
    "seekportbot",
    "zoominfobot",
    "awariobot",
    "magpie-crawler",
    "screaming frog",
    "turnitin",
    "censysinspect",
    // Link previews.
    "facebookexternalhit",
    "twitterbot",
    "linkedinbot",
    "slackbot",
    "telegrambot",
    "discordbot",
    "pinterestbot",
];
