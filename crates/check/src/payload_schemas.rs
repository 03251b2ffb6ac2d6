//! The schemas of a folder, for the validation of records.
//!
//! The program xmllint of libxml2 validates, because no maintained Rust library reads XML Schema. It gets
//! whole responses and a schema that imports the schemas of the folder. This schema declares the document
//! element without a type: libxml2 then skips all elements that have no schema, such as the envelope.

use oaimend_base::error::Error;
use oaimend_repository::xml::{NamespaceReader, StartTag, XmlEvent, XmlReader};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use url::Url;

use super::exchange::OAI;

/// Schemas by namespace, ready for validation.
#[derive(Debug)]
pub struct PayloadSchemas {
    namespaces: BTreeSet<String>,
    /// Contains the importing schema and the response that is validated.
    scratch: TempDir,
}

/// The result of a validation.
#[derive(Debug, PartialEq, Eq)]
pub enum Validation {
    /// All elements with a schema are valid.
    Valid,
    /// The first violation: its line, if known, and a description.
    Invalid(Option<usize>, String),
    /// The document was not validated, and why.
    Unknown(String),
}

impl PayloadSchemas {
    /// Opens the schemas of a folder: all its `.xsd` files, except those that another one includes.
    ///
    /// A namespace that a schema imports must be in the folder too, since nothing is fetched.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for files that cannot be read or written, otherwise [`Error::Usage`]: the folder has no
    /// schema, has two for one namespace, or they do not compile; or xmllint is not installed.
    pub async fn open(folder: &Path) -> Result<Self, Error> {
        let files = read_folder(folder)?;
        let by_namespace = group_by_namespace(&files)?;
        if by_namespace.is_empty() {
            let folder = folder.display();
            return Err(Error::Usage(format!(
                "{folder} has no .xsd file with a targetNamespace; copy the schemas of the formats into it"
            )));
        }
        let scratch = tempfile::tempdir()
            .map_err(|error| file_error(&std::env::temp_dir(), "create a folder", error))?;
        let schemas = Self { namespaces: by_namespace.keys().cloned().collect(), scratch };
        schemas.write(SCHEMA_FILE, importing_schema(&by_namespace).as_bytes())?;
        let (status, messages) = schemas
            .run_xmllint(format!("<OAI-PMH xmlns=\"{OAI}\"/>").as_bytes())
            .await
            .map_err(Error::Usage)?;
        if !status.success() {
            let why = messages.lines().find(|line| line.contains("parser error")).unwrap_or(&messages);
            return Err(Error::Usage(format!(
                "the schemas in {} do not compile: {why}; add the .xsd files of all imported namespaces",
                folder.display()
            )));
        }
        Ok(schemas)
    }

    /// Whether there is a schema for this namespace.
    pub(crate) fn covers(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Validates the parts of a well-formed document that have a schema. One document at a time.
    pub async fn validate(&self, document: &[u8]) -> Validation {
        match self.run_xmllint(document).await {
            Ok((status, _)) if status.success() => Validation::Valid,
            Ok((status, messages)) => read_violation(&messages)
                .unwrap_or_else(|| Validation::Unknown(format!("xmllint ended with {status}"))),
            Err(why) => Validation::Unknown(why),
        }
    }

    /// Runs xmllint on a document; returns its messages up to [`MESSAGES_BYTES_MAX`].
    async fn run_xmllint(&self, document: &[u8]) -> Result<(ExitStatus, String), String> {
        self.write(DOCUMENT_FILE, document).map_err(|error| error.to_string())?;
        let child = Command::new("xmllint")
            .args(["--noout", "--nonet", "--schema", SCHEMA_FILE, DOCUMENT_FILE])
            .current_dir(self.scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.map_err(|error| {
            format!("schemas need the program xmllint, which cannot be started: {error}; install it, on Debian with apt install \
                 libxml2-utils")
        })?;
        let stderr = child.stderr.take();
        let run = async {
            let mut messages = Vec::new();
            if let Some(stderr) = stderr {
                // xmllint ends when it writes more than this, because the pipe is closed then.
                stderr.take(MESSAGES_BYTES_MAX).read_to_end(&mut messages).await?;
            }
            Ok((child.wait().await?, String::from_utf8_lossy(&messages).into_owned()))
        };
        match tokio::time::timeout(TIME_MAX, run).await {
            Ok(done) => done.map_err(|error: std::io::Error| format!("xmllint failed: {error}")),
            Err(_) => Err(format!("xmllint took longer than {} s", TIME_MAX.as_secs())),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.scratch.path().join(name);
        std::fs::write(&path, content).map_err(|error| file_error(&path, "write", error))
    }
}

/// A schema file.
#[derive(Debug, Default)]
struct SchemaFile {
    path: PathBuf,
    /// Empty for none.
    namespace: String,
    /// The files that it includes, redefines or overrides, relative to it.
    parts: Vec<String>,
}

/// Reads the `.xsd` files of a folder, in the order of their names.
fn read_folder(folder: &Path) -> Result<Vec<SchemaFile>, Error> {
    let failed = |error| file_error(folder, "read", error);
    // The importing schema is in another folder and needs absolute paths.
    let folder = folder.canonicalize().map_err(failed)?;
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xsd")));
    paths.sort();
    paths.into_iter().map(read_schema).collect()
}

/// Reads the namespace of a schema and the names of its parts.
fn read_schema(path: PathBuf) -> Result<SchemaFile, Error> {
    let text = std::fs::read_to_string(&path).map_err(|error| file_error(&path, "read", error))?;
    let mut file = SchemaFile { path, ..SchemaFile::default() };
    let mut reader = NamespaceReader::new(XmlReader::new(&text));
    loop {
        let event = reader.read().map_err(|why| {
            Error::Usage(format!("{} is not a schema: {why}; copy the file again", file.path.display()))
        })?;
        match event {
            None => return Ok(file),
            Some(XmlEvent::Start(tag)) if reader.namespace(tag) == Ok(XSD) => match tag.local_name() {
                "schema" => file.namespace = attribute(tag, "targetNamespace").unwrap_or_default(),
                "include" | "redefine" | "override" => file.parts.extend(attribute(tag, "schemaLocation")),
                _ => {}
            },
            _ => {}
        }
    }
}

fn attribute(tag: StartTag<'_>, name: &str) -> Option<String> {
    Some(tag.attribute(name).ok()??.trim().to_owned())
}

/// The schema of each namespace; a file that another one includes is only a part of it.
fn group_by_namespace(files: &[SchemaFile]) -> Result<BTreeMap<String, &Path>, Error> {
    let parts: BTreeSet<PathBuf> =
        files.iter().flat_map(|file| file.parts.iter().map(|part| file.path.with_file_name(part))).collect();
    let mut by_namespace = BTreeMap::new();
    for file in files.iter().filter(|file| !parts.contains(&file.path)) {
        // The rule `schema` judges the envelope.
        if file.namespace.is_empty() || file.namespace == OAI {
            continue;
        }
        if let Some(other) = by_namespace.insert(file.namespace.clone(), file.path.as_path()) {
            return Err(Error::Usage(format!(
                "{} and {} are both schemas for \"{}\"; leave only one of them in the folder",
                other.display(),
                file.path.display(),
                file.namespace
            )));
        }
    }
    Ok(by_namespace)
}

/// A schema that imports all schemas and declares the document element of OAI-PMH.
fn importing_schema(by_namespace: &BTreeMap<String, &Path>) -> String {
    let mut schema = format!("<schema xmlns=\"{XSD}\" targetNamespace=\"{OAI}\">\n");
    for (namespace, path) in by_namespace {
        let location = Url::from_file_path(path).map_or_else(|()| String::new(), String::from);
        let [namespace, location] = [namespace, &location].map(quick_xml::escape::escape);
        schema.push_str(&format!("<import namespace=\"{namespace}\" schemaLocation=\"{location}\"/>\n"));
    }
    schema.push_str("<element name=\"OAI-PMH\"/>\n</schema>\n");
    schema
}

/// Reads the first violation from the messages of xmllint, such as
/// `response.xml:12: element title: Schemas validity error : Element '{urn:x}title': ...`.
fn read_violation(messages: &str) -> Option<Validation> {
    let mark = "Schemas validity error : ";
    let (position, text) = messages.lines().find_map(|line| line.split_once(mark))?;
    let line = position.strip_prefix(DOCUMENT_FILE).and_then(|rest| rest.split(':').nth(1)?.parse().ok());
    Some(Validation::Invalid(line, text.trim().to_owned()))
}

fn file_error(path: &Path, doing: &'static str, source: std::io::Error) -> Error {
    let remedy = "check that the folder exists and its permissions".to_owned();
    Error::File { path: path.to_owned(), doing, source, remedy }
}

const XSD: &str = "http://www.w3.org/2001/XMLSchema";
const SCHEMA_FILE: &str = "import.xsd";
const DOCUMENT_FILE: &str = "response.xml";
/// The longest messages of xmllint that are read, in bytes. The first violation is enough.
const MESSAGES_BYTES_MAX: u64 = 64 * 1024;
/// The longest time of one validation.
const TIME_MAX: Duration = Duration::from_secs(60);
