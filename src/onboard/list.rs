//! Reads base URLs from the files in which registries publish them.
//!
//! Formats: one URL per line, CSV with a header, the ListFriends XML of openarchives.org and the `friends` container of
//! Identify, the XML and JSON exports of OpenDOAR, and re3data's description of a repository. Pure.

use oaimend_oai::Argument;
use oaimend_repository::xml::{StartTag, XmlEvent, XmlReader};
use serde_json::Value;
use std::collections::BTreeSet;
use url::Url;

/// A repository of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedSource {
    /// The base URL, without arguments of a request.
    pub base_url: String,
    /// The name or the id of the repository in the list.
    pub name: Option<String>,
}

/// Column names of CSV and keys of JSON that contain a base URL, in lower case without separators, the best first.
const URL_NAMES: [&str; 8] =
    ["baseurl", "oaibaseurl", "oaipmhbaseurl", "oaiurl", "oaipmhurl", "oaipmh", "endpoint", "url"];
/// The same for the name of a repository.
const NAME_NAMES: [&str; 5] = ["repositoryid", "id", "repositoryname", "name", "title"];

/// Reads a list, whose format its first characters show. A repository that occurs twice is returned once.
///
/// # Errors
///
/// The file is malformed or contains no base URL. The text names the expected content.
pub fn read_list(text: &str) -> Result<Vec<ListedSource>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let found = match text.trim_start().chars().next() {
        Some('<') => read_xml(text)?,
        Some('{' | '[') => read_json(text)?,
        _ => read_lines(text)?,
    };
    let (mut sources, mut known): (Vec<ListedSource>, BTreeSet<String>) = Default::default();
    for source in found {
        let source = ListedSource { base_url: without_request(&source.base_url), ..source };
        if !source.base_url.is_empty() && known.insert(normalize_url(&source.base_url)) {
            sources.push(source);
        }
    }
    if sources.is_empty() {
        return Err("contains no base URL; expected one per line, CSV with a column base_url, ListFriends XML, or an \
                    export of OpenDOAR or re3data"
            .to_owned());
    }
    Ok(sources)
}

/// A URL without the arguments of a request, which lists often contain.
fn without_request(url: &str) -> String {
    let url = url.trim();
    let Some((base, query)) = url.split_once('?') else { return url.to_owned() };
    let is_argument = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
        name == "verb" || Argument::ALL.iter().any(|argument| argument.name().to_ascii_lowercase() == name)
    };
    let is_kept = |pair: &&str| !pair.is_empty() && !is_argument(pair);
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) }
}

/// The form in which URLs are compared.
pub fn normalize_url(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), String::from)
}

fn read_xml(text: &str) -> Result<Vec<ListedSource>, String> {
    let mut reader = XmlReader::new(text);
    let mut sources = Vec::new();
    let (mut name, mut open) = (None, None);
    loop {
        let event = reader.read().map_err(|error| format!("is malformed XML: {error}"))?;
        match event {
            None => return Ok(sources),
            Some(XmlEvent::Start(tag)) => {
                if tag.local_name() == "repository" {
                    name = None;
                }
                open = ListElement::of(tag).map(|element| (element, String::new()));
            }
            Some(XmlEvent::Text(characters)) => {
                if let (Some((_, content)), Ok(characters)) = (&mut open, characters.resolve()) {
                    content.push_str(&characters);
                }
            }
            Some(XmlEvent::End(_)) => match open.take() {
                Some((ListElement::Name, content)) => name = Some(content.trim().to_owned()),
                Some((ListElement::BaseUrl { id }, content)) => {
                    sources.push(ListedSource { base_url: content, name: id.or_else(|| name.clone()) });
                }
                None => {}
            },
            Some(XmlEvent::Doctype | XmlEvent::Other) => {}
        }
    }
}

/// An element of a list whose text is read.
enum ListElement {
    /// The name of the repository whose base URL follows.
    Name,
    BaseUrl {
        /// The id in the list.
        id: Option<String>,
    },
}

impl ListElement {
    fn of(tag: StartTag<'_>) -> Option<Self> {
        let attribute = |name| tag.attribute(name).ok().flatten();
        match tag.local_name() {
            // ListFriends, and the container `friends` of Identify.
            "baseURL" => Some(Self::BaseUrl { id: attribute("id").map(|id| id.into_owned()) }),
            // OpenDOAR.
            "rOaiBaseUrl" => Some(Self::BaseUrl { id: None }),
            "rName" => Some(Self::Name),
            // re3data.
            "api" => {
                let is_oai = attribute("apiType").is_some_and(|kind| kind.eq_ignore_ascii_case("OAI-PMH"));
                is_oai.then_some(Self::BaseUrl { id: None })
            }
            "repositoryName" => Some(Self::Name),
            _ => None,
        }
    }
}

fn read_json(text: &str) -> Result<Vec<ListedSource>, String> {
    let document = serde_json::from_str(text).map_err(|error| format!("is malformed JSON: {error}"))?;
    let mut sources = Vec::new();
    collect_json(&document, &mut sources);
    Ok(sources)
}

/// Collects base URLs from objects at any depth; serde_json limits the depth.
fn collect_json(value: &Value, sources: &mut Vec<ListedSource>) {
    match value {
        Value::Array(items) => {
            for item in items {
                match item.as_str().filter(|text| is_web_url(text)) {
                    Some(url) => sources.push(ListedSource { base_url: url.to_owned(), name: None }),
                    None => collect_json(item, sources),
                }
            }
        }
        Value::Object(fields) => {
            let field = |names: &[&str]| {
                let with_name = |name: &&str| fields.iter().find(|(key, _)| normalize(key) == **name);
                names.iter().find_map(with_name).map(|(_, value)| value)
            };
            // `url` is a web page in such exports.
            let (_, url_names) = URL_NAMES.split_last().expect("it is not empty");
            if let Some(url) = field(url_names).and_then(Value::as_str) {
                let name = field(&NAME_NAMES).and_then(name_in_json);
                sources.push(ListedSource { base_url: url.to_owned(), name });
            }
            fields.values().for_each(|value| collect_json(value, sources));
        }
        _ => {}
    }
}

/// A name as a text, or as a list of names in several languages, as in OpenDOAR.
fn name_in_json(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name.clone()),
        Value::Array(names) => names.first().and_then(|name| name_in_json(name.get("name").unwrap_or(name))),
        _ => None,
    }
}

/// Reads one URL per line, or CSV whose header names a column of URLs.
fn read_lines(text: &str) -> Result<Vec<ListedSource>, String> {
    let first = text.lines().find(|line| is_content(line)).unwrap_or_default();
    if cells_of(first).any(|cell| URL_NAMES.contains(&normalize(cell).as_str())) {
        return read_csv(text, first);
    }
    if !text.lines().filter(|line| is_content(line)).any(|line| cells_of(line).any(is_web_url)) {
        return Ok(Vec::new());
    }
    Ok(text.lines().filter(|line| is_content(line)).map(source_of_line).collect())
}

fn cells_of(line: &str) -> impl Iterator<Item = &str> {
    line.split([',', ';', '\t']).map(unquoted)
}

/// The source of a line without a header: its first URL, up to a blank, a comma or a quotation mark, and the text before or
/// after it as its name. A line without a URL is one too, so that a misspelt one is reported.
fn source_of_line(line: &str) -> ListedSource {
    let start = line.char_indices().map(|(at, _)| at).find(|at| begins_with_url(&line[*at..]));
    let Some(start) = start else { return ListedSource { base_url: line.trim().to_owned(), name: None } };
    let (before, url) = line.split_at(start);
    let end = url.find(|end: char| end.is_whitespace() || matches!(end, ',' | '"')).unwrap_or(url.len());
    let (url, after) = url.split_at(end);
    let names = [before, after].map(|text| text.trim_matches([' ', '\t', ',', ';', '"']));
    let name = names.into_iter().find(|name| !name.is_empty()).map(str::to_owned);
    ListedSource { base_url: url.trim_end_matches(';').to_owned(), name }
}

fn read_csv(text: &str, header: &str) -> Result<Vec<ListedSource>, String> {
    let delimiters = [b',', b';', b'\t'];
    let count = |delimiter: &u8| header.bytes().filter(|byte| byte == delimiter).count();
    let delimiter = delimiters.into_iter().max_by_key(count).unwrap_or(b',');
    let mut builder = csv::ReaderBuilder::new();
    let mut reader =
        builder.delimiter(delimiter).flexible(true).comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| format!("is malformed CSV: {error}"))?.clone();
    let column = |names: &[&str]| {
        names.iter().find_map(|name| header.iter().position(|cell| normalize(cell) == *name))
    };
    let Some(url) = column(&URL_NAMES) else { return Ok(Vec::new()) };
    let name = column(&NAME_NAMES);
    let mut sources = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| format!("is malformed CSV: {error}"))?;
        let cell = |column: usize| row.get(column).map(str::trim).filter(|cell| !cell.is_empty());
        if let Some(base_url) = cell(url) {
            let name = name.and_then(cell).map(str::to_owned);
            sources.push(ListedSource { base_url: base_url.to_owned(), name });
        }
    }
    Ok(sources)
}

fn is_content(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

fn unquoted(cell: &str) -> &str {
    cell.trim().trim_matches('"').trim()
}

fn is_web_url(cell: &str) -> bool {
    begins_with_url(unquoted(cell))
}

fn begins_with_url(text: &str) -> bool {
    let begins = |start: &str| text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start));
    begins("http://") || begins("https://")
}

/// The name of a column or key in lower case, without separators.
fn normalize(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base URLs and names of a list.
    fn read(text: &str) -> Vec<(String, Option<String>)> {
        let sources = read_list(text).expect("it is a list");
        sources.into_iter().map(|source| (source.base_url, source.name)).collect()
    }

    fn source(base_url: &str, name: &str) -> (String, Option<String>) {
        (base_url.to_owned(), (!name.is_empty()).then(|| name.to_owned()))
    }

    #[test]
    fn lines_are_urls_with_comments_and_names() {
        let list = "\u{feff}# a comment\nhttp://a.example/oai?verb=Identify\n\n  https://b.example/oai;s=1?x=1&Verb=Identify&metadataPrefix=oai_dc \nc;http://c.example\nHTTP://A.example/oai\nftp://d.example\n";
        assert_eq!(
            read(list),
            [
                source("http://a.example/oai", ""),
                source("https://b.example/oai;s=1?x=1", ""),
                source("http://c.example", "c"),
                source("ftp://d.example", ""),
            ]
        );
    }

    #[test]
    fn csv_finds_its_columns_and_delimiter() {
        let commas = "Name,OAI-PMH URL,Country\n\"Archive, the first\",http://a.example/oai,DE\nEmpty,,FR\n";
        assert_eq!(read(commas), [source("http://a.example/oai", "Archive, the first")]);
        let semicolons = "url;base_url;id\nhttp://www.example/;http://a.example/oai;archive\n";
        assert_eq!(read(semicolons), [source("http://a.example/oai", "archive")]);
        let tabs = "title\tendpoint\nA\thttp://a.example/oai\n";
        assert_eq!(read(tabs), [source("http://a.example/oai", "A")]);
    }

    #[test]
    fn xml_of_registries() {
        let friends = "<?xml version=\"1.0\"?><BaseURLs><baseURL id=\"a.example\">http://a.example/oai</baseURL>\
                       <baseURL>http://b.example/oai?a=1&amp;b=2</baseURL></BaseURLs>";
        let expected =
            [source("http://a.example/oai", "a.example"), source("http://b.example/oai?a=1&b=2", "")];
        assert_eq!(read(friends), expected);
        let opendoar = "<OpenDOAR><repositories><repository rID=\"1\"><rName>First</rName><rUrl>http://w.example</rUrl>\
                        <rOaiBaseUrl>http://a.example/oai</rOaiBaseUrl></repository><repository><rOaiBaseUrl/>\
                        </repository><repository><rOaiBaseUrl>http://b.example/oai</rOaiBaseUrl></repository>\
                        </repositories></OpenDOAR>";
        assert_eq!(
            read(opendoar),
            [source("http://a.example/oai", "First"), source("http://b.example/oai", "")]
        );
        let re3data = "<r3d:re3data xmlns:r3d=\"http://www.re3data.org/schema/2-2\"><r3d:repository>\
                       <r3d:repositoryName language=\"eng\">Data</r3d:repositoryName>\
                       <r3d:api apiType=\"REST\">http://a.example/rest</r3d:api>\
                       <r3d:api apiType=\"OAI-PMH\">http://a.example/oai</r3d:api></r3d:repository></r3d:re3data>";
        assert_eq!(read(re3data), [source("http://a.example/oai", "Data")]);
    }

    #[test]
    fn json_of_registries() {
        let opendoar = r#"{"items": [{"system_metadata": {"id": 7}, "repository_metadata": {"name": [{"name": "First"}],
            "url": "http://w.example", "oai_url": "http://a.example/oai?verb=Identify"}},
            {"repository_metadata": {"name": "Second", "oai_url": null}}]}"#;
        assert_eq!(read(opendoar), [source("http://a.example/oai", "First")]);
        assert_eq!(read(r#"["http://a.example/oai"]"#), [source("http://a.example/oai", "")]);
    }

    #[test]
    fn files_without_a_base_url_are_errors() {
        for (text, problem) in [
            ("", "contains no base URL"),
            ("name,country\nA,DE\n", "contains no base URL"),
            ("<BaseURLs/>", "contains no base URL"),
            ("<BaseURLs></baseURL>", "is malformed XML"),
            ("{\"a\": ", "is malformed JSON"),
        ] {
            let error = read_list(text).expect_err(text);
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
