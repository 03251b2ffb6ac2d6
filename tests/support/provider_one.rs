//! A repository of OAI-PMH 1.0 or 1.1, with 250 records on pages of 100.
//!
//! It knows what 1.x knows and refuses everything else with a status of 400: days alone,
//! ListIdentifiers without metadataPrefix and without datestamps, no error elements.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;

use super::source::{Asked, Reply, Source};

/// How the repository is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProviderOne {
    /// `1.0` or `1.1`.
    pub(crate) version: &'static str,
    /// Whether it has sets.
    pub(crate) has_sets: bool,
    /// Whether it overlooks arguments that it does not know.
    pub(crate) is_lenient: bool,
    /// Whether it refuses formats that it does not have, instead of listing nothing.
    pub(crate) refuses_formats: bool,
}

pub(crate) const RECORDS: usize = 250;
pub(crate) const PAGE: usize = 100;

impl ProviderOne {
    pub(crate) fn of(version: &'static str) -> Self {
        Self { version, has_sets: false, is_lenient: false, refuses_formats: false }
    }

    pub(crate) fn start(self) -> Source {
        Source::start(move |_, asked| self.reply(asked))
    }

    pub(crate) fn reply(self, asked: &Asked) -> Reply {
        match self.answer(asked) {
            Ok(page) => Reply::xml(page),
            Err(why) => Reply::whole(400, "Content-Type: text/html", format!("<html>400 {why}</html>")),
        }
    }

    /// The page that answers a request, or why there is none.
    pub(crate) fn answer(self, asked: &Asked) -> Result<String, String> {
        let query = if asked.method == "POST" { &asked.form } else { query_of(&asked.target) };
        let arguments: BTreeMap<String, String> = url::form_urlencoded::parse(query.as_bytes())
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let (verb, content) = self.content(&arguments)?;
        Ok(self.page(verb, query, &content))
    }

    /// A page with that in it.
    pub(crate) fn page(self, verb: &str, query: &str, content: &str) -> String {
        let Self { version, .. } = self;
        let xsi = if version == "1.0" { "2000/10" } else { "2001" };
        let url = format!("http://old.example/oai?{query}").replace('&', "&amp;");
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <{verb} xmlns=\"http://www.openarchives.org/OAI/{version}/OAI_{verb}\" \
             xmlns:xsi=\"http://www.w3.org/{xsi}/XMLSchema-instance\" \
             xsi:schemaLocation=\"http://www.openarchives.org/OAI/{version}/OAI_{verb} \
             http://www.openarchives.org/OAI/{version}/OAI_{verb}.xsd\">\n\
             <responseDate>2001-06-10T14:09:57-07:00</responseDate>\n\
             <requestURL>{url}</requestURL>\n{content}\n</{verb}>\n"
        )
    }

    fn content(self, asked: &BTreeMap<String, String>) -> Result<(&'static str, String), String> {
        let argument = |name: &str| asked.get(name).map(String::as_str);
        let known = |names: &[&str]| {
            let unknown = asked.keys().find(|name| *name != "verb" && !names.contains(&name.as_str()));
            unknown.filter(|_| !self.is_lenient).map_or(Ok(()), |name| Err(format!("what is {name}?")))
        };
        let date = |name: &str| {
            argument(name)
                .is_none_or(|date| date.len() == 10)
                .then_some(())
                .ok_or(format!("{name} is no day"))
        };
        Ok(match argument("verb").unwrap_or_default() {
            "Identify" => {
                known(&[])?;
                ("Identify", self.identify())
            }
            "ListMetadataFormats" => {
                known(&["identifier"])?;
                let is_there = argument("identifier").is_none_or(|name| number_of(name).is_some());
                ("ListMetadataFormats", if is_there { self.formats() } else { String::new() })
            }
            "ListSets" => {
                known(&["resumptionToken"])?;
                ("ListSets", if self.has_sets { SETS.to_owned() } else { String::new() })
            }
            "GetRecord" => {
                known(&["identifier", "metadataPrefix"])?;
                let identifier = argument("identifier").ok_or("no identifier")?;
                let prefix = argument("metadataPrefix").ok_or("no metadataPrefix")?;
                let record = number_of(identifier).filter(|_| prefix == "oai_dc");
                ("GetRecord", record.map(|number| self.record(number)).unwrap_or_default())
            }
            "ListIdentifiers" => {
                known(&["from", "until", "set", "resumptionToken"])?;
                date("from").and(date("until"))?;
                ("ListIdentifiers", self.list("ListIdentifiers", asked)?)
            }
            "ListRecords" => {
                known(&["from", "until", "set", "metadataPrefix", "resumptionToken"])?;
                date("from").and(date("until"))?;
                ("ListRecords", self.list("ListRecords", asked)?)
            }
            other => return Err(format!("no verb {other}")),
        })
    }

    fn list(self, verb: &str, asked: &BTreeMap<String, String>) -> Result<String, String> {
        let mut selection = asked.clone();
        if let Some(token) = asked.get("resumptionToken") {
            let pairs = token.split('!').map(|pair| pair.split_once('='));
            let pairs = pairs.map(|pair| pair.map(|(name, value)| (name.to_owned(), value.to_owned())));
            selection = pairs.collect::<Option<_>>().ok_or("no such token")?;
        } else if verb == "ListRecords" && !asked.contains_key("metadataPrefix") {
            return Err("no metadataPrefix".to_owned());
        }
        if selection.get("verb").map(String::as_str) != Some(verb) {
            return Err("a token of another list".to_owned());
        }
        let argument = |name: &str| selection.get(name).map(String::as_str);
        let has_format = verb == "ListIdentifiers" || argument("metadataPrefix") == Some("oai_dc");
        if !has_format && self.refuses_formats {
            return Err("no such format".to_owned());
        }
        if argument("set").is_some() && !self.has_sets {
            return Err("no sets".to_owned());
        }
        let fits = |number: &usize| {
            let day = day_of(*number);
            has_format
                && argument("from").is_none_or(|from| day.as_str() >= from)
                && argument("until").is_none_or(|until| day.as_str() <= until)
                && argument("set").is_none_or(|set| set_of(*number) == set)
        };
        let found: Vec<usize> = (0..RECORDS).filter(fits).collect();
        let at: usize = argument("at").and_then(|at| at.parse().ok()).unwrap_or(0);
        let end = found.len().min(at + PAGE);
        let item = |number: &usize| match verb {
            "ListRecords" => self.record(*number),
            _ => format!("<identifier{}>{}</identifier>\n", status(*number), identifier(*number)),
        };
        let mut list: String = found[at..end].iter().map(item).collect();
        if end < found.len() {
            selection.insert("at".to_owned(), end.to_string());
            let pairs: Vec<String> =
                selection.iter().map(|(name, value)| format!("{name}={value}")).collect();
            list.push_str(&format!("<resumptionToken>{}</resumptionToken>", pairs.join("!")));
        }
        Ok(list)
    }

    fn identify(self) -> String {
        format!(
            "<repositoryName>An old repository</repositoryName><baseURL>http://old.example/oai</baseURL>\
             <protocolVersion>{}</protocolVersion><adminEmail>mailto:oai@old.example</adminEmail>",
            self.version
        )
    }

    fn formats(self) -> String {
        let schema = if self.version == "1.0" { "OAI/dc.xsd" } else { "OAI/1.1/dc.xsd" };
        format!(
            "<metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
             <schema>http://www.openarchives.org/{schema}</schema>\
             <metadataNamespace>http://purl.org/dc/elements/1.1/</metadataNamespace></metadataFormat>"
        )
    }

    fn record(self, number: usize) -> String {
        let header = format!(
            "<header><identifier>{}</identifier><datestamp>{}</datestamp></header>",
            identifier(number),
            day_of(number)
        );
        if is_deleted(number) {
            return format!("<record status=\"deleted\">{header}</record>\n");
        }
        let schema = if self.version == "1.0" { "OAI/dc.xsd" } else { "OAI/1.1/dc.xsd" };
        format!(
            "<record>{header}<metadata><dc xmlns=\"http://purl.org/dc/elements/1.1/\" \
             xsi:schemaLocation=\"http://purl.org/dc/elements/1.1/ http://www.openarchives.org/{schema}\">\
             <title>Title {number}</title></dc></metadata></record>\n"
        )
    }
}

/// The query of a request target.
pub(crate) fn query_of(target: &str) -> &str {
    target.split_once('?').map_or("", |(_, query)| query)
}

pub(crate) fn identifier(number: usize) -> String {
    format!("oai:old.example:{number}")
}

fn number_of(identifier: &str) -> Option<usize> {
    let number = identifier.strip_prefix("oai:old.example:")?.parse().ok()?;
    (number < RECORDS).then_some(number)
}

/// Ten records a day.
pub(crate) fn day_of(number: usize) -> String {
    format!("2001-03-{:02}", number / 10 + 1)
}

pub(crate) fn is_deleted(number: usize) -> bool {
    number % 50 == 7
}

fn status(number: usize) -> &'static str {
    if is_deleted(number) { " status=\"deleted\"" } else { "" }
}

pub(crate) fn set_of(number: usize) -> &'static str {
    ["physics", "maths"][number % 2]
}

const SETS: &str = "<set><setSpec>physics</setSpec><setName>Physics</setName></set>\
    <set><setSpec>maths</setSpec><setName>Mathematics</setName></set>";
