//! The `clients` table: classes of clients and their quotas.
//!
//! There are three kinds of class: crawlers, recognised by `User-Agent` or address; known clients,
//! each with a name and recognised by a token or address; and harvesters, which are all others.
//! Requests from loopback belong to no class and have no quota.

use super::file::{Located, Table};
use blake2::{Blake2s256, Digest};
use ipnet::IpNet;
use std::net::IpAddr;
use std::num::NonZeroU32;
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
            harvesters: ClassQuotas { each: quota(6000, 200, 64), all: Quota::default() },
            crawlers: Crawlers {
                user_agents: CRAWLERS.iter().map(|&name| name.to_owned()).collect(),
                addresses: Vec::new(),
                quotas: ClassQuotas { each: quota(60, 10, 2), all: quota(240, 40, 8) },
            },
            known: Vec::new(),
        }
    }
}

impl ClientPolicy {
    /// Takes the values of a `clients` table over; relative paths start at `folder`.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>, folder: &Path) {
        self.trusted_proxies = read_networks(&mut table, "trusted_proxies");
        if let Some(millis) = table.read_integer("wait_max_millis", 0..=60_000) {
            self.wait_max = Duration::from_millis(millis);
        }
        self.harvesters.read(&mut table);
        let mut crawlers = table.take_table("crawlers");
        let named = crawlers.read_strings("user_agents");
        if crawlers.has_key("user_agents") {
            self.crawlers.user_agents =
                named.into_iter().filter_map(|name| read_user_agent_word(&crawlers, name)).collect();
        }
        self.crawlers.addresses = read_networks(&mut crawlers, "addresses");
        self.crawlers.quotas.read(&mut crawlers);
        crawlers.finish();
        for (name, mut entry) in table.take_tables("known") {
            let client = KnownClient::read(name, &mut entry, folder);
            if client.token.is_some()
                && let Some(duplicate) = self.known.iter().find(|other| other.token == client.token)
            {
                entry.report_missing(format!(
                    "clients.known.{} has the same token as {}",
                    client.name, duplicate.name
                ));
            }
            entry.finish();
            self.known.push(client);
        }
        table.finish();
    }
}

impl KnownClient {
    fn read(name: Located<String>, table: &mut Table<'_, '_>, folder: &Path) -> Self {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_reserved = matches!(&*name.value, "harvesters" | "crawlers" | "any");
        if is_reserved || name.value.is_empty() || !name.value.bytes().all(legal) {
            let value = name.value.escape_debug();
            let expected = "expected letters, digits, '-' and '_', and not harvesters, crawlers or any";
            table.report_fault(
                name.span,
                format!("clients.known: \"{value}\" is not a client name; {expected}"),
            );
        }
        let token = table.read_parsed("token_file", |text| read_token(&folder.join(text)));
        let addresses = read_networks(table, "addresses");
        let mut quotas = ClassQuotas::default();
        quotas.read(table);
        if !table.has_key("token_file") && !table.has_key("addresses") {
            let text = format!("clients.known.{}: token_file or addresses is missing", name.value);
            table.report_missing(text);
        }
        Self { name: name.value, token, addresses, quotas }
    }
}

impl ClassQuotas {
    fn read(&mut self, table: &mut Table<'_, '_>) {
        self.each.read(table);
        let mut all = table.take_table("all");
        self.all.read(&mut all);
        all.finish();
    }
}

impl Quota {
    fn read(&mut self, table: &mut Table<'_, '_>) {
        read_quota(table, "rate_per_minute", &mut self.rate_per_minute);
        read_quota(table, "burst", &mut self.burst);
        read_quota(table, "in_flight_max", &mut self.in_flight_max);
    }
}

/// Sets one limit of a quota; 0 removes it.
fn read_quota(table: &mut Table<'_, '_>, key: &'static str, bound: &mut Option<NonZeroU32>) {
    if let Some(value) = table.read_integer(key, 0..=1_000_000) {
        *bound = u32::try_from(value).ok().and_then(NonZeroU32::new);
    }
}

fn read_networks(table: &mut Table<'_, '_>, key: &'static str) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for text in table.read_strings(key) {
        let address = text.value.parse::<IpAddr>().map(IpNet::from);
        match text.value.parse::<IpNet>().ok().or(address.ok()) {
            Some(network) => networks.push(network.trunc()),
            None => {
                let value = text.value.escape_debug();
                let expected =
                    "expected an address such as \"192.0.2.7\" or a network such as \"2001:db8::/32\"";
                table.report_fault(text.span, format!("{key}: \"{value}\" is not an address; {expected}"));
            }
        }
    }
    networks
}

/// Reads a word of a `User-Agent`, in lower case; a word that is too short matches every client and
/// is a fault.
fn read_user_agent_word(table: &Table<'_, '_>, name: Located<String>) -> Option<String> {
    if name.value.trim().len() >= USER_AGENT_WORD_BYTES_MIN && name.value.is_ascii() {
        return Some(name.value.trim().to_ascii_lowercase());
    }
    let value = name.value.escape_debug();
    let expected = "expected a part of a User-Agent of 3 characters or more, such as \"examplebot\"";
    table.report_fault(
        name.span,
        format!("clients.crawlers.user_agents: \"{value}\" is too short; {expected}"),
    );
    None
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
