//! A repository without a fault, with 250 records on pages of 100, that a test
//! can break in one place.
#![allow(dead_code, reason = "each test binary uses its part")]

use oaimend::oai::{Argument, Request, Verb};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::source::{Asked, Reply, Source};

/// Which of its requests a fault shows at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// At all.
    Always,
    /// At those whose query has that in it; forms begin with `POST `.
    Has(&'static str),
    /// At one.
    Is(&'static str),
}

/// What is wrong with the answers then.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Nothing,
    /// One text stands where another should.
    Edit(&'static str, &'static str),
    /// What belongs to another query comes.
    ContentOf(&'static str),
    /// The same, but not the first time.
    LaterContentOf(&'static str),
    Status(u16),
    ContentType(&'static str),
    /// Everything is redirected with that status.
    Redirect(u16),
    /// The first request is put off with that status and header.
    PutOff(u16, &'static str),
}

/// How the repository is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Provider {
    /// Whether its granularity is days.
    pub(crate) in_days: bool,
    /// Most items of a page.
    pub(crate) page: usize,
    pub(crate) scheme: &'static str,
}

impl Default for Provider {
    fn default() -> Self {
        Self { in_days: false, page: 100, scheme: "http" }
    }
}

impl Provider {
    /// Starts it, with a fault; gives it with a counter of how often the fault showed.
    pub(crate) fn start(self, when: When, fault: Fault) -> (Source, std::sync::Arc<AtomicUsize>) {
        let (script, shown) = self.script(when, fault);
        (Source::start(script), shown)
    }

    /// What answers, for a source of any scheme.
    pub(crate) fn script(
        self,
        when: When,
        fault: Fault,
    ) -> (impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static, std::sync::Arc<AtomicUsize>) {
        let shown = std::sync::Arc::new(AtomicUsize::new(0));
        let count = std::sync::Arc::clone(&shown);
        let script = move |_: usize, asked: &Asked| {
            let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
            let is_form = asked.method == "POST";
            let query = if is_form { &asked.form } else { query };
            let label = if is_form { format!("POST {query}") } else { query.to_owned() };
            let applies = match when {
                When::Always => true,
                When::Has(part) => label.contains(part),
                When::Is(whole) => label == whole,
            };
            let base_url = format!("{}://{}/oai", self.scheme, asked.headers["host"]);
            let answer = |content: &str| self.answer(&base_url, query, content);
            if !applies {
                return Reply::xml(answer(query));
            }
            let earlier = count.fetch_add(1, Ordering::Relaxed);
            match &fault {
                Fault::Nothing => Reply::xml(answer(query)),
                Fault::Edit(from, to) => {
                    let page = answer(query);
                    if !page.contains(from) {
                        count.fetch_sub(1, Ordering::Relaxed);
                    }
                    Reply::xml(page.replace(from, to))
                }
                Fault::ContentOf(other) => Reply::xml(answer(other)),
                Fault::LaterContentOf(other) => Reply::xml(answer(if earlier > 0 { other } else { query })),
                Fault::Status(status) => Reply::whole(*status, "Content-Type: text/xml", answer(query)),
                Fault::ContentType(kind) => {
                    Reply::whole(200, &format!("Content-Type: {kind}"), answer(query))
                }
                Fault::Redirect(status) if path == "/oai" => {
                    let query = if is_form { String::new() } else { format!("?{query}") };
                    Reply::redirect(*status, &format!("/elsewhere{query}"))
                }
                Fault::PutOff(status, header) if earlier == 0 => Reply::whole(*status, header, "later"),
                Fault::Redirect(_) | Fault::PutOff(..) => Reply::xml(answer(query)),
            }
        };
        (script, shown)
    }

    /// The answer to `query`, with the content that belongs to `content`.
    fn answer(self, base_url: &str, query: &str, content: &str) -> String {
        let content = match Request::parse(content.as_bytes()) {
            Ok(request) => self.content(base_url, &request),
            Err(refusal) => error(refusal.code.name(), "wrong"),
        };
        let is_bare = content.contains("\"badVerb\"") || content.contains("\"badArgument\"");
        let mut attributes = String::new();
        if let Some(request) = Request::parse(query.as_bytes()).ok().filter(|_| !is_bare) {
            for (name, value) in request.own("").arguments {
                attributes.push_str(&format!(" {name}=\"{}\"", value.replace('"', "&quot;")));
            }
        }
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
             http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
             <responseDate>2026-01-02T03:04:05Z</responseDate>\n\
             <request{attributes}>{base_url}</request>\n{content}\n</OAI-PMH>\n"
        )
    }

    fn content(self, base_url: &str, request: &Request) -> String {
        match request.verb() {
            Verb::Identify => self.identify(base_url),
            Verb::ListMetadataFormats => FORMATS.to_owned(),
            Verb::ListSets => SETS.to_owned(),
            Verb::GetRecord => self.single(request),
            Verb::ListIdentifiers | Verb::ListRecords => self.list(request),
        }
    }

    fn identify(self, base_url: &str) -> String {
        let granularity = if self.in_days { "YYYY-MM-DD" } else { "YYYY-MM-DDThh:mm:ssZ" };
        let earliest = if self.in_days { "2020-01-01" } else { "2020-01-01T00:00:00Z" };
        format!(
            "<Identify><repositoryName>A repository</repositoryName><baseURL>{base_url}</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>oai@source.example</adminEmail>\
             <earliestDatestamp>{earliest}</earliestDatestamp><deletedRecord>persistent</deletedRecord>\
             <granularity>{granularity}</granularity><description>\
             <oai-identifier xmlns=\"http://www.openarchives.org/OAI/2.0/oai-identifier\">\
             <scheme>oai</scheme><repositoryIdentifier>source.example</repositoryIdentifier>\
             <delimiter>:</delimiter><sampleIdentifier>oai:source.example:0</sampleIdentifier>\
             </oai-identifier></description></Identify>"
        )
    }

    fn single(self, request: &Request) -> String {
        let identifier = request.argument(Argument::Identifier).unwrap_or_default();
        match (0..RECORDS).find(|number| identifier == format!("oai:source.example:{number}")) {
            Some(number) => format!("<GetRecord>{}</GetRecord>", self.record(number)),
            None => error("idDoesNotExist", "no such item"),
        }
    }

    fn list(self, request: &Request) -> String {
        let Some(selection) = Selection::of(request) else {
            return error("badResumptionToken", "no such token");
        };
        let argument = |name: &str| selection.0.get(name).map(String::as_str);
        let dates = [argument("from"), argument("until")];
        if dates.iter().flatten().any(|date| self.in_days && date.len() > 10) {
            return error("badArgument", "the granularity is days");
        }
        if argument("metadataPrefix") != Some("oai_dc") {
            return error("cannotDisseminateFormat", "oai_dc alone");
        }
        let [from, until] = dates;
        let fits = |number: &usize| {
            let datestamp = self.datestamp(*number);
            let cut = |date: &str| datestamp[..date.len()].to_owned();
            from.is_none_or(|from| cut(from).as_str() >= from)
                && until.is_none_or(|until| cut(until).as_str() <= until)
                && argument("set").is_none_or(|set| is_in(*number, set))
        };
        let found: Vec<usize> = (0..RECORDS).filter(fits).collect();
        if found.is_empty() {
            return error("noRecordsMatch", "nothing fits");
        }
        let cursor: usize = argument("cursor").and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let end = found.len().min(cursor + self.page);
        let item = |number: &usize| match request.verb() {
            Verb::ListRecords => self.record(*number),
            _ => self.header(*number),
        };
        let items: String = found[cursor..end].iter().map(item).collect();
        let attributes = format!("completeListSize=\"{}\" cursor=\"{cursor}\"", found.len());
        let token = if end < found.len() {
            let token = selection.token(request.verb(), end);
            format!(
                "<resumptionToken expirationDate=\"2026-01-04T00:00:00Z\" {attributes}>{token}</resumptionToken>"
            )
        } else if cursor > 0 {
            format!("<resumptionToken {attributes}/>")
        } else {
            String::new()
        };
        let verb = request.verb().name();
        format!("<{verb}>{items}{token}</{verb}>")
    }

    fn datestamp(self, number: usize) -> String {
        let day = format!("2020-01-{:02}", number / 10 + 1);
        if self.in_days { day } else { format!("{day}T00:00:{:02}Z", number % 10) }
    }

    fn header(self, number: usize) -> String {
        let status = if is_deleted(number) { " status=\"deleted\"" } else { "" };
        format!(
            "<header{status}><identifier>oai:source.example:{number}</identifier>\
             <datestamp>{}</datestamp><setSpec>{}</setSpec></header>",
            self.datestamp(number),
            set_of(number)
        )
    }

    fn record(self, number: usize) -> String {
        if is_deleted(number) {
            return format!("<record>{}</record>", self.header(number));
        }
        format!(
            "<record>{}<metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
             http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"><dc:title>Title {number}</dc:title>\
             </oai_dc:dc></metadata></record>\n",
            self.header(number)
        )
    }
}

/// What a list was asked for first, and where it stands.
struct Selection(BTreeMap<String, String>);

impl Selection {
    fn of(request: &Request) -> Option<Self> {
        let Some(token) = request.argument(Argument::ResumptionToken) else {
            return Some(Self(request.own("").arguments.into_iter().collect()));
        };
        let pairs = token.split('!').map(|pair| pair.split_once('='));
        let pairs = pairs.map(|pair| pair.map(|(name, value)| (name.to_owned(), value.to_owned())));
        pairs.collect::<Option<_>>().map(Self)
    }

    fn token(&self, verb: Verb, cursor: usize) -> String {
        let mut pairs = self.0.clone();
        pairs.insert("verb".to_owned(), verb.name().to_owned());
        pairs.insert("cursor".to_owned(), cursor.to_string());
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("!")
    }
}

fn error(code: &str, text: &str) -> String {
    format!("<error code=\"{code}\">{text}</error>")
}

fn is_deleted(number: usize) -> bool {
    number % 100 == 7
}

fn set_of(number: usize) -> &'static str {
    ["a", "a:b"][number % 2]
}

fn is_in(number: usize, set: &str) -> bool {
    set_of(number).strip_prefix(set).is_some_and(|below| below.is_empty() || below.starts_with(':'))
}

const RECORDS: usize = 250;
const FORMATS: &str = "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
    <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
    <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>\
    </metadataFormat></ListMetadataFormats>";
const SETS: &str = "<ListSets><set><setSpec>a</setSpec><setName>Set A</setName></set>\
    <set><setSpec>a:b</setSpec><setName>Set B of A</setName></set></ListSets>";
