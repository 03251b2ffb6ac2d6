//! Judges the output with independent parsers.
//!
//! There are three judges: quick-xml (see `strict`), which is always available;
//! libxml2 with the schema; and expat. The last two run in a Python process that `scripts/judge`
//! starts. Without Python or lxml the others judge alone, and the captured output of the test says so.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use super::envelope::{self, Strictness};
use super::strict::Element;
use super::{root, strict};

/// The first complaint of any judge.
pub fn judge(document: &[u8], strictness: Strictness) -> Result<(), String> {
    let tree = strict::read(document).map_err(|error| format!("quick-xml: {error}"))?;
    envelope::check(&tree, strictness).map_err(|error| format!("envelope: {error}"))?;
    match strictness {
        Strictness::Schema => other_parsers(document),
        Strictness::TokenAlone if is_token_alone(&tree) => other_parsers(&with_an_item(document, &tree)),
        Strictness::TokenAlone => other_parsers(document),
    }
}

/// The complaint of libxml2 alone.
pub fn by_libxml2(document: &[u8], _: Strictness) -> Result<(), String> {
    by("libxml2", document)
}

/// The complaint of expat alone, which checks no schema.
pub fn check_with_expat(document: &[u8], _: Strictness) -> Result<(), String> {
    by("expat", document)
}

fn by(judge: &str, document: &[u8]) -> Result<(), String> {
    let Err(faults) = other_parsers(document) else { return Ok(()) };
    faults.lines().find(|fault| fault.starts_with(judge)).map_or(Ok(()), |fault| Err(fault.to_owned()))
}

/// Whether libxml2 is available.
pub fn libxml2_is_there() -> bool {
    is_there("libxml2")
}

/// Whether expat is available.
pub fn has_expat() -> bool {
    is_there("expat")
}

fn is_there(judge: &str) -> bool {
    let Some(process) = process() else { return false };
    process.lock().is_ok_and(|process| process.judges.contains(judge))
}

/// The characters that expat accepts at the start of a name, and inside a name. `None` if expat is
/// not available.
pub fn expat_name_characters() -> Option<(String, String)> {
    has_expat().then_some(())?;
    let mut command = Command::new(root().join("scripts/judge"));
    let output = command.arg("--names").current_dir(root()).output().expect("it runs already");
    assert!(output.status.success(), "expat judges names");
    let text = String::from_utf8(output.stdout).expect("names are UTF-8");
    text.split_once('\n').map(|(starts, parts)| (starts.to_owned(), parts.to_owned()))
}

/// The complaint of libxml2 about a provenance container and its schema.
pub fn provenance(container: &[u8]) -> Result<(), String> {
    static PROCESS: OnceLock<Option<Mutex<Process>>> = OnceLock::new();
    ask(PROCESS.get_or_init(|| Process::start("provenance.xsd", "provenance.xsd")).as_ref(), container)
}

/// The payloads of the records in canonical XML, by libxml2. `None` if it is not available.
pub fn payloads(document: &[u8]) -> Option<Vec<String>> {
    libxml2_is_there().then_some(())?;
    let mut command = Command::new(root().join("scripts/judge"));
    command.arg("--payloads").current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs already");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(document).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the judge reads what is well-formed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.split('\0').map(str::to_owned).collect())
}

fn process() -> Option<&'static Mutex<Process>> {
    static PROCESS: OnceLock<Option<Mutex<Process>>> = OnceLock::new();
    PROCESS.get_or_init(|| Process::start("oai-pmh-envelope.xsd", "OAI-PMH.envelope.xsd")).as_ref()
}

/// The complaints of libxml2 with the schema and of expat; none if they are not available.
fn other_parsers(document: &[u8]) -> Result<(), String> {
    ask(process(), document)
}

fn ask(process: Option<&Mutex<Process>>, document: &[u8]) -> Result<(), String> {
    let Some(process) = process else { return Ok(()) };
    let mut process = process.lock().map_err(|_| "the judge was left in the middle of a document")?;
    let verdict = process.ask(document).map_err(|error| format!("the judge does not answer: {error}"))?;
    if verdict.is_empty() { Ok(()) } else { Err(verdict) }
}

/// Whether the verb element contains a token and nothing else.
fn is_token_alone(root: &Element) -> bool {
    let children = root.children.last().map(|verb| verb.children.as_slice()).unwrap_or_default();
    matches!(children, [token] if token.name == "resumptionToken")
}

/// Inserts an item into a list with only a token, so that the schema accepts it.
fn with_an_item(document: &[u8], root: &Element) -> Vec<u8> {
    const HEADER: &str = "<header xmlns='http://www.openarchives.org/OAI/2.0/'>\
        <identifier>x</identifier><datestamp>2000-01-01</datestamp></header>";
    const SET: &str =
        "<set xmlns='http://www.openarchives.org/OAI/2.0/'><setSpec>x</setSpec><setName>x</setName></set>";
    let mut text = String::from_utf8_lossy(document).into_owned();
    // Sections contain no tags, and the schema ignores their content.
    for (mark, end_mark) in [("<!--", "-->"), ("<![CDATA[", "]]>")] {
        while let Some(at) = text.find(mark)
            && let Some(length) = text[at..].find(end_mark)
        {
            text.replace_range(at..at + length + end_mark.len(), "");
        }
    }
    // The last start tag of that name, with or without a prefix.
    let tags = text.match_indices("resumptionToken").filter_map(|(at, _)| {
        let open = text[..at].rfind('<')?;
        let prefix = &text[open + 1..at];
        prefix.chars().all(|c| c.is_alphanumeric() || ":-_.".contains(c)).then_some(open)
    });
    let (Some(verb), Some(token)) = (root.children.last(), tags.last()) else { return document.to_vec() };
    let item = match verb.name.as_str() {
        "ListRecords" => format!("<record xmlns='{}'>{HEADER}</record>", envelope::OAI),
        "ListSets" => SET.to_owned(),
        _ => HEADER.to_owned(),
    };
    format!("{}{item}{}", &text[..token], &text[token..]).into_bytes()
}

struct Process {
    _child: Child,
    incoming: ChildStdin,
    outgoing: ChildStdout,
    /// Checks that each available judge rejects a truncated document; one line per judge.
    judges: String,
}

impl Process {
    /// Validates with our schema, and with the official one if it is available.
    fn start(local: &str, official: &str) -> Option<Mutex<Self>> {
        let started = Self::spawn(local, official);
        match &started {
            Err(error) => eprintln!("skipped: only quick-xml judges, without libxml2 and expat ({error})"),
            Ok(process) if !process.judges.contains("libxml2") => {
                eprintln!("skipped: quick-xml and expat judge, without libxml2 (no lxml)");
            }
            Ok(_) => {}
        }
        started.ok().map(Mutex::new)
    }

    fn spawn(local: &str, official: &str) -> Result<Self, String> {
        let mut command = Command::new(root().join("scripts/judge"));
        command.arg(Path::new("tests/xsd").join(local)).current_dir(root());
        let official = Path::new("../shared/xsd").join(official);
        if root().join(&official).exists() {
            command.arg(official);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("scripts/judge: {error}"))?;
        let (Some(incoming), Some(outgoing)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".to_owned());
        };
        let mut process = Self { _child: child, incoming, outgoing, judges: String::new() };
        process.judges = process.ask(b"<a>").map_err(|error| format!("scripts/judge ended: {error}"))?;
        let is_ready = process.judges.lines().any(|line| line.starts_with("expat: not well-formed"));
        if is_ready { Ok(process) } else { Err(format!("said {:?}", process.judges)) }
    }

    fn ask(&mut self, document: &[u8]) -> std::io::Result<String> {
        let length = u32::try_from(document.len()).map_err(std::io::Error::other)?;
        self.incoming.write_all(&length.to_be_bytes())?;
        self.incoming.write_all(document)?;
        self.incoming.flush()?;
        let mut head = [0; 4];
        self.outgoing.read_exact(&mut head)?;
        let mut answer = vec![0; u32::from_be_bytes(head) as usize];
        self.outgoing.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}
