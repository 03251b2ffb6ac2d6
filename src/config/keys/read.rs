//! Reading of TOML tables; each value keeps its line.
//!
//! Faults are collected, so that one run reports all of them. A table records the keys that the
//! program reads: these are the known keys. Each other key of the table is a fault, and its text
//! names the nearest known key.

use oaimend_base::error::Fault;
use oaimend_base::suggestions::find_nearest;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One file and the faults found in it so far.
pub(super) struct Document<'t> {
    file: &'t Path,
    text: &'t str,
    /// Each fault with its offset in bytes.
    faults: RefCell<Vec<(usize, Fault)>>,
}

/// A value and its position in the file.
#[derive(Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// The value of a key, while it is being read.
pub(crate) struct Entry<'d, 't> {
    document: &'d Document<'t>,
    key: String,
    value: Spanned<DeValue<'t>>,
}

/// A table, while it is being read.
pub(crate) struct Table<'d, 't> {
    document: &'d Document<'t>,
    name: String,
    /// Its place in the file; `None` if the file does not contain it.
    whole: Option<Range<usize>>,
    entries: DeTable<'t>,
    /// The keys that the program has read, and the places of those that the table contains.
    known: BTreeMap<&'static str, Option<Range<usize>>>,
}

impl<'t> Document<'t> {
    pub(super) fn new(file: &'t Path, text: &'t str) -> Self {
        Self { file, text, faults: RefCell::default() }
    }

    /// Returns the root table; syntax errors become faults.
    pub(super) fn root(&self) -> Table<'_, 't> {
        let (root, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let message = error.message().replace('\n', ", ");
            self.report_fault(error.span().unwrap_or_default(), format!("invalid TOML: {message}"));
        }
        let whole = Some(root.span());
        Table {
            document: self,
            name: String::new(),
            whole,
            entries: root.into_inner(),
            known: BTreeMap::new(),
        }
    }

    fn report_fault(&self, span: Range<usize>, text: String) {
        let line = self.line(span.start);
        self.faults.borrow_mut().push((span.start, Fault { file: self.file.to_owned(), line, text }));
    }

    /// The line of a place, from 1 on.
    fn line(&self, place: usize) -> usize {
        1 + self.text.as_bytes().iter().take(place).filter(|&&byte| byte == b'\n').count()
    }

    /// Returns all faults, in the order of the file.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|(place, _)| *place);
        faults.into_iter().map(|(_, fault)| fault).collect()
    }
}

impl<'t> Entry<'_, 't> {
    pub(crate) fn value(&self) -> &DeValue<'t> {
        self.value.get_ref()
    }

    /// The string of the key; another type is a fault.
    pub(crate) fn string(&self) -> Option<&str> {
        let text = self.value().as_str();
        if text.is_none() {
            self.report_wrong_type("a string");
        }
        text
    }

    /// The strings of a list with their places; other values are faults.
    pub(crate) fn strings(&self) -> Vec<Located<&str>> {
        let expected = "a list of strings";
        let Some(array) = self.value().as_array() else {
            self.report_wrong_type(expected);
            return Vec::new();
        };
        let mut strings = Vec::new();
        for item in array.iter() {
            match item.get_ref().as_str() {
                Some(value) => strings.push(Located { value, span: item.span() }),
                None => self.report_type(&self.key, item, expected),
            }
        }
        strings
    }

    /// The folder of the file.
    pub(crate) fn folder(&self) -> &Path {
        self.document.file.parent().unwrap_or(Path::new(""))
    }

    /// The names and the strings of a table of strings, in the order of the file; other values are faults.
    pub(crate) fn named_strings(&self) -> Vec<(Located<&str>, Located<&str>)> {
        let Some(table) = self.value().as_table() else {
            self.report_wrong_type("a table");
            return Vec::new();
        };
        let mut strings = Vec::new();
        for (name, item) in table {
            match item.get_ref().as_str() {
                Some(value) => strings.push((
                    Located { value: &**name.get_ref(), span: name.span() },
                    Located { value, span: item.span() },
                )),
                None => self.report_type(&format!("{}.{}", self.key, name.get_ref()), item, "a string"),
            }
        }
        strings.sort_by_key(|(name, _)| name.span.start);
        strings
    }

    /// Reports a value of another type than the expected one.
    pub(crate) fn report_wrong_type(&self, expected: &str) {
        self.report_type(&self.key, &self.value, expected);
    }

    fn report_type(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) {
        let found = with_article(value.get_ref().type_str());
        self.report(value.span(), format!("{key} is {found}; expected {expected}"));
    }

    /// Reports a number outside its range, and shows it as the file contains it.
    pub(crate) fn report_out_of_range(&self, expected: &str) {
        let span = self.value.span();
        let written = self.document.text.get(span.clone()).unwrap_or_default();
        self.report(span, format!("{} = {written} is out of range; expected {expected}", self.key));
    }

    /// Reports a problem with a string, and shows the string without secrets.
    pub(crate) fn report_string(&self, value: &str, problem: &str) {
        self.report(self.value.span(), format!("{} = \"{}\" {problem}", self.key, redact_value(value)));
    }

    /// Reports a problem with a string of a list.
    pub(crate) fn report_item(&self, item: &Located<&str>, problem: &str) {
        let value = redact_value(item.value);
        self.report(item.span.clone(), format!("{}: \"{value}\" {problem}", self.key));
    }

    pub(crate) fn report(&self, span: Range<usize>, text: String) {
        self.document.report_fault(span, text);
    }
}

impl<'d, 't> Table<'d, 't> {
    pub(super) fn take_entry(&mut self, key: &'static str) -> Option<Entry<'d, 't>> {
        let value = self.entries.remove(key);
        self.known.insert(key, value.as_ref().map(Spanned::span));
        Some(Entry { document: self.document, key: self.full_key(key), value: value? })
    }

    /// Returns the nested table of that key.
    pub(super) fn take_table(&mut self, key: &'static str) -> Self {
        let (mut entries, mut whole) = (DeTable::new(), None);
        if let Some(entry) = self.take_entry(key) {
            let span = entry.value.span();
            match entry.value.into_inner() {
                DeValue::Table(table) => (entries, whole) = (table, Some(span)),
                other => self.document.report_fault(
                    span,
                    format!("{} is {}; expected a table", entry.key, with_article(other.type_str())),
                ),
            }
        }
        self.nested(self.full_key(key), whole, entries)
    }

    /// Returns all tables nested in the table of that key, whatever their names, in the order of
    /// the file.
    pub(super) fn take_tables(&mut self, key: &'static str) -> Vec<(Located<String>, Self)> {
        let outer = self.take_table(key);
        let mut tables = Vec::new();
        for (name, entry) in outer.entries {
            let full = format!("{}.{}", outer.name, name.get_ref());
            let (at, found) = (entry.span(), entry.into_inner());
            let DeValue::Table(entries) = found else {
                let found = with_article(found.type_str());
                self.document.report_fault(at, format!("{full} is {found}; expected a table"));
                continue;
            };
            let table = self.nested(full, Some(name.span()), entries);
            tables.push((Located { value: name.get_ref().to_string(), span: name.span() }, table));
        }
        tables.sort_by_key(|(name, _)| name.span.start);
        tables
    }

    /// Returns all tables of the array of that key, in the order of the file.
    pub(super) fn take_list(&mut self, key: &'static str) -> Vec<Self> {
        let Some(entry) = self.take_entry(key) else { return Vec::new() };
        let span = entry.value.span();
        let DeValue::Array(items) = entry.value.into_inner() else {
            self.document.report_fault(span, format!("{} is no array; expected [[{0}]] tables", entry.key));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items {
            let span = item.span();
            match item.into_inner() {
                DeValue::Table(entries) => tables.push(self.nested(entry.key.clone(), Some(span), entries)),
                other => self.document.report_fault(
                    span,
                    format!("{} contains {}; expected tables", entry.key, with_article(other.type_str())),
                ),
            }
        }
        tables
    }

    fn nested(&self, name: String, whole: Option<Range<usize>>, entries: DeTable<'t>) -> Self {
        Self { document: self.document, name, whole, entries, known: BTreeMap::new() }
    }

    /// Whether the file contains the table.
    pub(super) fn is_present(&self) -> bool {
        self.whole.is_some()
    }

    /// Whether the table contains this key, valid or not; true only after the key was read.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.known.get(key).is_some_and(Option::is_some)
    }

    /// Reports a key that is not allowed in this combination; `why` is the reason.
    pub(crate) fn reject_key(&mut self, key: &'static str, why: &str) {
        if let Some(entry) = self.take_entry(key) {
            entry.report(entry.value.span(), format!("{} is not allowed here: {why}", entry.key));
        }
    }

    /// Reports a missing key at the start of the table.
    pub(crate) fn report_missing(&self, text: String) {
        let start = self.start();
        self.document.report_fault(start..start, text);
    }

    /// The line of the start of the table.
    pub(crate) fn line(&self) -> usize {
        self.document.line(self.start())
    }

    fn start(&self) -> usize {
        self.whole.clone().unwrap_or_default().start
    }

    /// Reports a problem with the value of a key that was read, and shows the value as the file contains it.
    pub(crate) fn report_value(&self, key: &str, problem: &str) {
        let span = self.known.get(key).cloned().flatten().unwrap_or_default();
        let written = self.document.text.get(span.clone()).unwrap_or_default();
        let text = format!("{} = {written} {problem}", self.full_key(key));
        self.document.report_fault(span, text);
    }

    pub(crate) fn report_fault(&self, span: Range<usize>, text: String) {
        self.document.report_fault(span, text);
    }

    /// Ends the reading: each key that was not read is an unknown key.
    pub(super) fn finish(self) {
        let known: Vec<&str> = self.known.keys().copied().collect();
        for key in self.entries.keys() {
            let name = self.full_key(key.get_ref());
            let text = match find_nearest(key.get_ref(), &known) {
                Some(near) => format!("unknown key {name}; did you mean {near}?"),
                None => format!("unknown key {name}; known keys are {}", known.join(", ")),
            };
            self.document.report_fault(key.span(), text);
        }
    }

    pub(crate) fn full_key(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

/// A value as fault texts show it: escaped, and without the user and password of a URL.
pub(crate) fn redact_value(value: &str) -> String {
    let mut text = value.escape_debug().to_string();
    let Some(start) = text.find("://").map(|colon| colon + 3) else { return text };
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |end| start + end);
    if let Some(at) = text[start..end].rfind('@') {
        text.replace_range(start..start + at, "***");
    }
    text
}

fn with_article(kind: &str) -> String {
    match kind {
        "integer" | "array" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
