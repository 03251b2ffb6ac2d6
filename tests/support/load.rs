//! Load on the program, and judgement of what it answers: every answer is
//! whole, an honest failure, or a true beginning of the whole; what was given with
//! an answer is remembered, to be asked for later.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::keeping::identify;
use super::program::Program;
use super::random::Random;
use super::source::{Asked, Reply, Source, fetch, last_page_of, page_of, record};

/// Records of a page behind a token: most are small, one is longer than what is held in memory.
pub(crate) const SIZES: [usize; 6] = [1, 7, 40, 300, 900, 3000];

/// What a harvester asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Identify,
    /// The first page of a list.
    First,
    /// A page behind a token, which is kept.
    Token,
    /// A page with a record beyond repair.
    Aside,
    /// A page that breaks off and whose rest cannot be had.
    Cut,
}

/// A request, and what its whole answer is.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) kind: Kind,
    pub(crate) repository: String,
    /// Tells it from other requests of its kind.
    pub(crate) number: usize,
}

impl Wanted {
    pub(crate) fn argument(&self) -> String {
        let number = self.number;
        match self.kind {
            Kind::Identify => String::new(),
            Kind::First => format!("set=s{number}"),
            Kind::Token => format!("resumptionToken=t{number}"),
            Kind::Aside => format!("resumptionToken=q{number}"),
            Kind::Cut => format!("resumptionToken=c{number}"),
        }
    }

    pub(crate) fn query(&self) -> String {
        match self.kind {
            Kind::Identify => "verb=Identify".to_owned(),
            Kind::First => format!("verb=ListRecords&metadataPrefix=oai_dc&{}", self.argument()),
            _ => format!("verb=ListRecords&{}", self.argument()),
        }
    }

    pub(crate) fn path(&self) -> String {
        format!("/{}?{}", self.repository, self.query())
    }

    /// The page as its source has it.
    pub(crate) fn page(&self) -> String {
        let number = self.number;
        match self.kind {
            Kind::Identify => identify("the one and only"),
            Kind::First => page_of(SIZES[number % SIZES.len()]),
            Kind::Token => last_page_of(SIZES[number % SIZES.len()]),
            // The hopeless one is the first but one, so that something can leave before it.
            Kind::Aside => last_page_of(30 + number % 300).replace(
                "<identifier>oai:x:1</identifier>",
                &format!("<identifier></identifier><!-- aside {number} -->"),
            ),
            Kind::Cut => last_page_of(60 + number % 300),
        }
    }

    /// The page as a harvester gets it; of one that is cut, what comes before the token of ours.
    pub(crate) fn answer(&self) -> String {
        let page = self.page();
        let page = match self.kind {
            Kind::Aside => {
                let from = page.find("<record><header><identifier></identifier>").expect("it is there");
                let to = page.find(&record(2)).expect("it is there");
                // What stood behind it stays.
                [&page[..from], "\n", &page[to..]].concat()
            }
            _ => page,
        };
        let attributes: String = self
            .query()
            .split('&')
            .map(|pair| pair.split_once('=').expect("an argument"))
            .map(|(name, value)| format!(" {name}=\"{value}\""))
            .collect();
        let from = page.find("<request").expect("it says what was asked");
        let to = page.find("</request>").expect("it says what was asked");
        let url = format!("{PUBLIC_URL}/{}", self.repository);
        let answer = format!("{}<request{attributes}>{url}{}", &page[..from], &page[to..])
            .replace("<baseURL>http://source.example/oai<", &format!("<baseURL>{url}<"));
        match self.kind {
            Kind::Cut => answer[..answer.find(&record(CUT_BEHIND)).expect("it is there")].to_owned(),
            _ => answer,
        }
    }
}

pub(crate) const PUBLIC_URL: &str = "http://oai.example";
/// Records of a page that come before it breaks off.
pub(crate) const CUT_BEHIND: usize = 20;
/// How a list ends that a token of ours goes on with.
pub(crate) const OWN_TOKEN: &str = "<resumptionToken>oaimend1_";

/// Pages that are cut, and what their source has of them.
type Cuts = Mutex<BTreeMap<usize, Rest>>;

/// The source: everything it says depends on what it is asked, and on whether
/// the harvester has the token for the rest of a page that was cut.
fn reply(asked: &Asked, cut: &Cuts) -> Reply {
    let (_, query) = asked.target.split_once('?').expect("a query");
    let of = |kind, start: &str| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(start))?;
        Some(Wanted { kind, repository: String::new(), number: value.parse().ok()? })
    };
    let known = of(Kind::First, "set=s")
        .or_else(|| of(Kind::Token, "resumptionToken=t"))
        .or_else(|| of(Kind::Aside, "resumptionToken=q"))
        .or_else(|| of(Kind::Cut, "resumptionToken=c"));
    let Some(wanted) = known else { return Reply::xml(identify("the one and only")) };
    let page = wanted.page();
    if let Kind::Cut = wanted.kind {
        let mut cut = cut.lock().expect("no panic");
        let rest = cut.entry(wanted.number).or_insert(Rest::ToCut);
        match rest {
            Rest::ToCut => {
                *rest = Rest::Gone;
                let at = page.find(&record(CUT_BEHIND)).expect("it is there") + 100;
                return Reply::new(200, &format!("Content-Length: {}", page.len())).send(&page[..at]);
            }
            Rest::Gone => {
                *rest = Rest::ToCut;
                return Reply::whole(404, "", "gone");
            }
            Rest::There => {}
        }
    }
    Reply::xml(page)
}

/// What a source has of a page that it breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    ToCut,
    Gone,
    There,
}

/// An answer, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) status: Option<u16>,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) whole: bool,
}

/// Asks, and lets the answer break off wherever it does. `count` is told of each read.
pub(crate) fn ask(address: SocketAddr, path: &str, mut count: impl FnMut(usize)) -> Came {
    let mut bytes = Vec::new();
    let asked = TcpStream::connect(address).and_then(|mut stream| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut piece = [0; 4096];
        loop {
            let read = stream.read(&mut piece)?;
            bytes.extend_from_slice(&piece[..read]);
            count(read);
            if read == 0 {
                return Ok(());
            }
        }
    });
    // How it broke off makes no difference.
    drop(asked);
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Came {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Came::default() };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let mut rest = &bytes[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    if let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) {
        return Came { status, head, body: rest.to_vec(), whole: rest.len() == length };
    }
    let (mut body, mut whole) = (Vec::new(), false);
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok()).expect("the size of a chunk");
        rest = &rest[line + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        if size == 0 {
            whole = rest == b"\r\n";
            break;
        }
        let Some(behind) = rest.get(size + 2..) else { break };
        rest = behind;
    }
    Came { status, head, body, whole }
}

/// What the harvesters have been given, over all rounds.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// Tokens of ours, with the page whose rest they lead to.
    pub(crate) tokens: BTreeMap<String, Wanted>,
    /// Queries by repository whose page went on behind a record that was put aside.
    pub(crate) aside: BTreeSet<(String, String)>,
    pub(crate) whole: usize,
    pub(crate) refused: usize,
    pub(crate) broken: usize,
    pub(crate) hits: usize,
}

impl Given {
    /// Judges one answer: whole, or an honest failure, or a true beginning of the whole.
    #[track_caller]
    fn judge(&mut self, wanted: &Wanted, came: &Came, cut: &Cuts) {
        let body = String::from_utf8_lossy(&came.body);
        let expected = wanted.answer();
        match came.status {
            None => {
                self.broken += 1;
                return;
            }
            Some(503) => {
                assert!(!came.whole || came.head.contains("Retry-After: "), "{wanted:?}: {}", came.head);
                self.refused += 1;
                return;
            }
            status => assert_eq!(status, Some(200), "{wanted:?}: {}", came.head),
        }
        let own = body.find(OWN_TOKEN).filter(|_| matches!(wanted.kind, Kind::Cut));
        let (before, token) = body.split_at(own.unwrap_or(body.len()));
        assert!(expected.starts_with(before), "{wanted:?} is another page:\n{}\n{body}", came.head);
        if let Kind::Aside = wanted.kind
            && body.contains(&record(2))
        {
            self.aside.insert((wanted.repository.clone(), wanted.query()));
        }
        let token = token.strip_prefix("<resumptionToken>").and_then(|token| token.split_once("</"));
        if let Some((token, _)) = token {
            cut.lock().expect("no panic").insert(wanted.number, Rest::There);
            self.tokens.insert(token.to_owned(), wanted.clone());
        }
        if !came.whole {
            self.broken += 1;
            return;
        }
        let closed = token.is_some_and(|(_, behind)| {
            behind == "resumptionToken></ListRecords></OAI-PMH>"
                || behind == "resumptionToken>\n</ListRecords>\n</OAI-PMH>\n"
        });
        assert!(before == expected && (own.is_none() || closed), "{wanted:?} is not whole: {token:?} {body}");
        assert!(!matches!(wanted.kind, Kind::Cut) || closed, "{wanted:?}: a neat early end");
        self.hits += usize::from(came.head.contains("oaimend; hit"));
        self.whole += 1;
    }
}

/// A source, a folder with mappings to it, and what was given to harvesters.
pub(crate) struct Scene {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) given: Mutex<Given>,
    source: Source,
    cut: Arc<Cuts>,
    numbers: AtomicUsize,
}

impl Scene {
    /// With repositories of those ids.
    pub(crate) fn new(repositories: &BTreeSet<String>) -> Self {
        let cut = Arc::new(Cuts::default());
        let of_source = Arc::clone(&cut);
        let source = Source::start(move |_, asked| reply(asked, &of_source));
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("mappings")).expect("writable");
        for id in repositories {
            let text = format!("base_url = \"{}\"\npoliteness.list_requests_max = 100\n", source.base_url());
            std::fs::write(folder.path().join(format!("mappings/{id}.toml")), text).expect("writable");
        }
        Self { folder, given: Mutex::default(), source, cut, numbers: AtomicUsize::new(0) }
    }

    /// What one of the harvesters asks next.
    pub(crate) fn next(&self, random: &mut Random, repository: &str) -> Wanted {
        let kinds = [Kind::Identify, Kind::First, Kind::Token, Kind::Aside, Kind::Cut, Kind::Cut];
        let kind = kinds[random.below(kinds.len())];
        let number = match kind {
            Kind::Identify | Kind::First | Kind::Token => random.below(3 * SIZES.len()),
            // Each only once, so that it can be told whether it is in the store.
            Kind::Aside | Kind::Cut => self.numbers.fetch_add(1, Ordering::Relaxed),
        };
        Wanted { kind, repository: repository.to_owned(), number }
    }

    /// Judges an answer, and remembers what was given with it.
    #[track_caller]
    pub(crate) fn judge(&self, wanted: &Wanted, came: &Came) {
        self.given.lock().expect("no panic").judge(wanted, came, &self.cut);
    }

    /// All that was given and is to be there is there.
    #[track_caller]
    pub(crate) fn check_all(&self, program: &Program) {
        let given = self.given.lock().expect("no panic");
        let all: BTreeSet<&String> = given.aside.iter().map(|(id, _)| id).collect();
        let there: BTreeSet<_> = all.iter().flat_map(|id| put_aside(program, id, true)).collect();
        let missing: Vec<_> = given.aside.difference(&there).collect();
        assert!(missing.is_empty(), "lost from the quarantine: {missing:?}");
        follow(program, &given.tokens);
        println!(
            "{} answers whole, {} from the cache, {} refused, {} broken off; {} records put aside, \
             {} tokens of ours",
            given.whole,
            given.hits,
            given.refused,
            given.broken,
            given.aside.len(),
            given.tokens.len()
        );
        assert!(!given.aside.is_empty() && !given.tokens.is_empty() && given.hits > 0, "the load was none");
    }
}

/// Queries by repository whose page has a record in the quarantine, with its bytes.
pub(crate) fn put_aside(program: &Program, repository: &str, also_raw: bool) -> BTreeSet<(String, String)> {
    let told = |path: &str| -> serde_json::Value {
        let got = fetch(program.admin(), path);
        serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{error}: {}", got.text()))
    };
    let listed = told(&format!("/-/repositories/{repository}/quarantine"));
    let entries = listed["records"].as_array().unwrap_or_else(|| panic!("{listed}"));
    assert!(entries.len() < 1000, "more would not be listed");
    let entry = |entry: &serde_json::Value| {
        let query = entry["request"].as_str().expect("it says what brought it").to_owned();
        if also_raw {
            let key = entry["key"].as_str().expect("a key");
            let record = told(&format!("/-/repositories/{repository}/quarantine/{key}"));
            let number = query.rsplit('q').next().expect("a number");
            let raw = record["raw"].as_str().unwrap_or_else(|| panic!("{record}"));
            assert!(raw.contains(&format!("<!-- aside {number} -->")) && raw.ends_with("</record>"), "{raw}");
        }
        (repository.to_owned(), query)
    };
    entries.iter().map(entry).collect()
}

/// Each token that was given out leads to the rest of its page.
fn follow(program: &Program, tokens: &BTreeMap<String, Wanted>) {
    for (token, wanted) in tokens {
        let path = format!("/{}?verb=ListRecords&resumptionToken={token}", wanted.repository);
        let got = fetch(program.address(), &path);
        let (text, page) = (got.text(), wanted.page());
        let rest = &page[page.find(&record(CUT_BEHIND)).expect("it is there")..];
        let first = text.find("<record>").unwrap_or_else(|| panic!("{wanted:?}: {got:?}\n{text}"));
        assert!(got.status == 200 && got.whole && &text[first..] == rest, "{wanted:?}: {text}");
    }
}
