//! The `clients` table: who asks us, in classes, and how much each may ask.
//!
//! Three kinds of class: harvesters (everybody), crawlers (known by their
//! `User-Agent` or address) and the known (by a token or address, each with a
//! name). What is asked from loopback belongs to no class and has no quota.

use super::file::{At, Table};
use blake2::{Blake2s256, Digest};
use ipnet::IpNet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

/// Who asks us, and how much each may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Longest that a request waits for its turn before it is refused.
    pub wait_max: Duration,
    /// Everybody who is in no other class.
    pub harvesters: Quotas,
    /// Who reads everything and harvests nothing.
    pub crawlers: Crawlers,
    /// Clients that we know, in the order of the file.
    pub known: Vec<Known>,
}

/// The crawlers and their quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crawlers {
    /// Words that name a crawler wherever they stand in a `User-Agent`, in any case.
    pub user_agents: Vec<String>,
    /// Addresses that crawlers come from.
    pub addresses: Vec<IpNet>,
    /// How much they may ask.
    pub quotas: Quotas,
}

/// A client that we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name, in metrics and texts.
    pub name: String,
    /// What tells it: the token that it sends.
    pub token: Option<Token>,
    /// What tells it: the addresses that it comes from.
    pub addresses: Vec<IpNet>,
    /// How much it may ask.
    pub quotas: Quotas,
}

/// The quotas of a class of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Of each client of the class: an IPv4 address, or an IPv6 network of 56 bits.
    pub each: Quota,
    /// Of all clients of the class together.
    pub all: Quota,
}

/// How much may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Most requests a minute in the long run; `None`: as many as come.
    pub rate_per_minute: Option<NonZeroU32>,
    /// Most requests at once after a pause. Counts only where there is a rate.
    pub burst: Option<NonZeroU32>,
    /// Most requests that are being answered at one time; `None`: as many as come.
    pub in_flight_max: Option<NonZeroU32>,
}

/// A token, kept as its hash: it can be recognised, and cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token([u8; 32]);

impl Token {
    /// What a token is kept as.
    pub fn of(text: &[u8]) -> Self {
        Self(Blake2s256::digest(text).into())
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            wait_max: Duration::from_secs(2),
            harvesters: Quotas { each: quota(6000, 200, 64), all: Quota::default() },
            crawlers: Crawlers {
                user_agents: CRAWLERS.iter().map(|&name| name.to_owned()).collect(),
                addresses: Vec::new(),
                quotas: Quotas { each: quota(60, 10, 2), all: quota(240, 40, 8) },
            },
            known: Vec::new(),
        }
    }
}

impl Clients {
    /// Takes over what a `clients` table says; `folder` is where its file lies.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>, folder: &Path) {
        self.trusted_proxies = networks(&mut table, "trusted_proxies");
        if let Some(millis) = table.integer("wait_max_millis", 0..=60_000) {
            self.wait_max = Duration::from_millis(millis);
        }
        self.harvesters.read(&mut table);
        let mut crawlers = table.table("crawlers");
        let named = crawlers.strings("user_agents");
        if crawlers.was_given("user_agents") {
            self.crawlers.user_agents = named.into_iter().filter_map(|name| word(&crawlers, name)).collect();
        }
        self.crawlers.addresses = networks(&mut crawlers, "addresses");
        self.crawlers.quotas.read(&mut crawlers);
        crawlers.finish();
        for (name, mut entry) in table.tables("known") {
            let client = Known::read(name, &mut entry, folder);
            if client.token.is_some()
                && let Some(twin) = self.known.iter().find(|other| other.token == client.token)
            {
                entry.missing(format!("clients.known.{} has the token of {}", client.name, twin.name));
            }
            entry.finish();
            self.known.push(client);
        }
        table.finish();
    }
}

impl Known {
    fn read(name: At<String>, table: &mut Table<'_, '_>, folder: &Path) -> Self {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let ours = matches!(&*name.value, "harvesters" | "crawlers" | "any");
        if ours || name.value.is_empty() || !name.value.bytes().all(legal) {
            let value = name.value.escape_debug();
            let right = "letters, digits, '-' and '_' are right, and harvesters, crawlers and any are taken";
            table.fault(name.span, format!("clients.known: \"{value}\" is no name for a client; {right}"));
        }
        let token = table.parsed("token_file", |text| read_token(&folder.join(text)));
        let addresses = networks(table, "addresses");
        let mut quotas = Quotas::default();
        quotas.read(table);
        if !table.was_given("token_file") && !table.was_given("addresses") {
            let text =
                format!("clients.known.{}: token_file or addresses are wanted, to know it by", name.value);
            table.missing(text);
        }
        Self { name: name.value, token, addresses, quotas }
    }
}

impl Quotas {
    fn read(&mut self, table: &mut Table<'_, '_>) {
        self.each.read(table);
        let mut all = table.table("all");
        self.all.read(&mut all);
        all.finish();
    }
}

impl Quota {
    fn read(&mut self, table: &mut Table<'_, '_>) {
        number(table, "rate_per_minute", &mut self.rate_per_minute);
        number(table, "burst", &mut self.burst);
        number(table, "in_flight_max", &mut self.in_flight_max);
    }
}

/// A bound; 0 takes it away.
fn number(table: &mut Table<'_, '_>, key: &'static str, bound: &mut Option<NonZeroU32>) {
    if let Some(value) = table.integer(key, 0..=1_000_000) {
        *bound = u32::try_from(value).ok().and_then(NonZeroU32::new);
    }
}

fn networks(table: &mut Table<'_, '_>, key: &'static str) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for text in table.strings(key) {
        let address = text.value.parse::<IpAddr>().map(IpNet::from);
        match text.value.parse::<IpNet>().ok().or(address.ok()) {
            Some(network) => networks.push(network.trunc()),
            None => {
                let value = text.value.escape_debug();
                let right = "an address like \"192.0.2.7\" or a network like \"2001:db8::/32\" is right";
                table.fault(text.span, format!("{key}: \"{value}\" is no address; {right}"));
            }
        }
    }
    networks
}

/// A word to look for, in lower case; one so short that it is in every name is a fault.
fn word(table: &Table<'_, '_>, name: At<String>) -> Option<String> {
    if name.value.trim().len() >= USER_AGENT_WORD_BYTES_MIN && name.value.is_ascii() {
        return Some(name.value.trim().to_ascii_lowercase());
    }
    let value = name.value.escape_debug();
    let right = "a part of a User-Agent of 3 characters or more, like \"examplebot\", is right";
    table.fault(name.span, format!("clients.crawlers.user_agents: \"{value}\" tells nobody; {right}"));
    None
}

fn read_token(path: &Path) -> Result<Token, String> {
    let right = format!("a file with a token of {TOKEN_BYTES_MIN} printable characters or more is wanted");
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}; {right}"))?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("holds no token; {right}"));
    }
    Ok(Token::of(token.as_bytes()))
}

const fn quota(rate_per_minute: u32, burst: u32, in_flight_max: u32) -> Quota {
    Quota {
        rate_per_minute: NonZeroU32::new(rate_per_minute),
        burst: NonZeroU32::new(burst),
        in_flight_max: NonZeroU32::new(in_flight_max),
    }
}

/// Shortest token, in bytes: a shorter one can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// Shortest part of a `User-Agent` that tells a crawler, in bytes.
const USER_AGENT_WORD_BYTES_MIN: usize = 3;

/// Crawlers of search engines, of language models, of shops and of previews,
/// by the word they name themselves with, in lower case. HTTP libraries are no
/// crawlers: harvesters are made of them.
const CRAWLERS: &[&str] = &[
    // Search engines and archives of the web.
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
    // Collectors for language models.
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
    // Collectors for marketing and the watching of pages.
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
    // Previews of links.
    "facebookexternalhit",
    "twitterbot",
    "linkedinbot",
    "slackbot",
    "telegrambot",
    "discordbot",
    "pinterestbot",
];
