//! Typed reading of TOML tables; each value keeps its line.
//!
//! Faults are collected, so that one run reports all of them. A table records the keys that the
//! program reads: these are the known keys. Each other key of the table is a fault, and its text
//! names the nearest known key.

use oaimend_base::error::Fault;
use oaimend_base::suggestions::find_nearest;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;
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
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
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
        let whole = root.span();
        Table {
            document: self,
            name: String::new(),
            whole,
            entries: root.into_inner(),
            known: BTreeMap::new(),
        }
    }

    pub(super) fn report_fault(&self, span: Range<usize>, text: String) {
        let before = self.text.as_bytes().iter().take(span.start);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        self.faults.borrow_mut().push((span.start, Fault { file: self.file.to_owned(), line, text }));
    }

    /// Returns all faults, in the order of the file.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|(place, _)| *place);
        faults.into_iter().map(|(_, fault)| fault).collect()
    }
}

/// A table, while it is being read.
pub(super) struct Table<'d, 't> {
    document: &'d Document<'t>,
    name: String,
    whole: Range<usize>,
    entries: DeTable<'t>,
    /// The keys that the program has read, and whether the table contains them.
    known: BTreeMap<&'static str, bool>,
}

impl<'d, 't> Table<'d, 't> {
    pub(super) fn read_string(&mut self, key: &'static str) -> Option<Located<String>> {
        let entry = self.take(key)?;
        match entry.get_ref() {
            DeValue::String(text) => Some(Located { value: text.to_string(), span: entry.span() }),
            other => self.report_wrong_type(key, &entry, "a string", other),
        }
    }

    pub(super) fn read_bool(&mut self, key: &'static str) -> Option<bool> {
        let entry = self.take(key)?;
        match entry.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            other => self.report_wrong_type(key, &entry, "true or false", other),
        }
    }

    pub(super) fn read_integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let entry = self.take(key)?;
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        match entry.get_ref() {
            DeValue::Integer(integer) => match u64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(value) if range.contains(&value) => Some(value),
                _ => {
                    let key = self.full_key(key);
                    self.document.report_fault(
                        entry.span(),
                        format!("{key} = {integer} is out of range; expected {expected}"),
                    );
                    None
                }
            },
            other => self.report_wrong_type(key, &entry, &expected, other),
        }
    }

    /// Reads a number, with or without a fraction. `convert` returns `None` outside the range that `expected` names.
    pub(super) fn read_float<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(f64) -> Option<T>,
    ) -> Option<T> {
        let entry = self.take(key)?;
        let number = match entry.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => {
                i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|whole| whole as f64)
            }
            other => return self.report_wrong_type(key, &entry, expected, other),
        };
        let value = number.and_then(convert);
        if value.is_none() {
            let (key, written) =
                (self.full_key(key), self.document.text.get(entry.span()).unwrap_or_default());
            let text = format!("{key} = {written} is out of range; expected {expected}");
            self.document.report_fault(entry.span(), text);
        }
        value
    }

    /// Replaces `value` by the number of that key, if the table contains it.
    pub(super) fn set_number(&mut self, key: &'static str, range: RangeInclusive<u64>, value: &mut u64) {
        *value = self.read_integer(key, range).unwrap_or(*value);
    }

    /// Like [`set_number`](Self::set_number), for a count or a size in memory.
    pub(super) fn set_count(&mut self, key: &'static str, range: RangeInclusive<u64>, value: &mut usize) {
        let count = self.read_integer(key, range).and_then(|count| usize::try_from(count).ok());
        *value = count.unwrap_or(*value);
    }

    /// Like [`set_number`](Self::set_number), for a time in whole seconds.
    pub(super) fn set_seconds(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        value: &mut Duration,
    ) {
        *value = self.read_integer(key, range).map_or(*value, Duration::from_secs);
    }

    pub(super) fn read_strings(&mut self, key: &'static str) -> Vec<Located<String>> {
        let Some(entry) = self.take(key) else { return Vec::new() };
        let expected = "a list of strings";
        let DeValue::Array(array) = entry.get_ref() else {
            self.report_wrong_type::<()>(key, &entry, expected, entry.get_ref());
            return Vec::new();
        };
        let mut strings = Vec::new();
        for item in array.iter() {
            match item.get_ref() {
                DeValue::String(text) => strings.push(Located { value: text.to_string(), span: item.span() }),
                other => {
                    self.report_wrong_type::<()>(key, item, expected, other);
                }
            }
        }
        strings
    }

    /// Returns the nested table of that key; an absent table is read as an empty one.
    pub(super) fn take_table(&mut self, key: &'static str) -> Self {
        let name = self.full_key(key);
        let mut table = Table {
            document: self.document,
            name,
            whole: 0..0,
            entries: DeTable::new(),
            known: BTreeMap::new(),
        };
        let Some(entry) = self.take(key) else { return table };
        table.whole = entry.span();
        match entry.get_ref() {
            DeValue::Table(_) => {
                if let DeValue::Table(entries) = entry.into_inner() {
                    table.entries = entries;
                }
            }
            other => {
                self.report_wrong_type::<()>(key, &entry, "a table", other);
            }
        }
        table
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
            let known = BTreeMap::new();
            let table = Table { document: self.document, name: full, whole: name.span(), entries, known };
            tables.push((Located { value: name.get_ref().to_string(), span: name.span() }, table));
        }
        tables.sort_by_key(|(name, _)| name.span.start);
        tables
    }

    /// Returns all strings of the table, whatever their keys, in the order of the file.
    pub(super) fn take_strings(&mut self) -> Vec<(Located<String>, Located<String>)> {
        let mut strings = Vec::new();
        for (key, entry) in std::mem::take(&mut self.entries) {
            let name = Located { value: key.get_ref().to_string(), span: key.span() };
            match entry.get_ref() {
                DeValue::String(text) => {
                    strings.push((name, Located { value: text.to_string(), span: entry.span() }));
                }
                other => drop(self.report_wrong_type::<()>(&name.value, &entry, "a string", other)),
            }
        }
        strings.sort_by_key(|(name, _)| name.span.start);
        strings
    }

    /// Reads a string and parses it with `read`, whose error text names the expected value.
    pub(super) fn read_parsed<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.read_string(key)?;
        match read(&text.value) {
            Ok(value) => Some(value),
            Err(problem) => {
                let key = self.full_key(key);
                let value = redact_value(&text.value);
                self.document.report_fault(text.span, format!("{key} = \"{value}\" {problem}"));
                None
            }
        }
    }

    /// Whether the table contains this key, valid or not; true only after the key was read.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.known.get(key).copied().unwrap_or(false)
    }

    /// Reports a key that is not allowed in this combination; `why` is the reason.
    pub(super) fn reject_key(&mut self, key: &'static str, why: &str) {
        if let Some(entry) = self.take(key) {
            let key = self.full_key(key);
            self.document.report_fault(entry.span(), format!("{key} is not allowed here: {why}"));
        }
    }

    /// Reports a missing key at the start of the table.
    pub(super) fn report_missing(&self, text: String) {
        self.document.report_fault(self.whole.start..self.whole.start, text);
    }

    pub(super) fn report_fault(&self, span: Range<usize>, text: String) {
        self.document.report_fault(span, text);
    }

    /// Ends the reading: each key that was not read is an unknown key.
    pub(super) fn finish(self) {
        let known: Vec<&str> = self.known.keys().copied().collect();
        for key in self.entries.keys() {
            let name = self.full_key(key.get_ref());
            let text = match find_nearest(key.get_ref(), &known) {
                _ if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == name) => {
                    format!("{name} was renamed to {new}")
                }
                Some(near) => format!("unknown key {name}; did you mean {near}?"),
                None => format!("unknown key {name}; known keys are {}", known.join(", ")),
            };
            self.document.report_fault(key.span(), text);
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Spanned<DeValue<'t>>> {
        let entry = self.entries.remove(key);
        self.known.insert(key, entry.is_some());
        entry
    }

    pub(super) fn full_key(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn report_wrong_type<T>(
        &self,
        key: &str,
        entry: &Spanned<DeValue<'_>>,
        expected: &str,
        found: &DeValue<'_>,
    ) -> Option<T> {
        let key = self.full_key(key);
        self.document.report_fault(
            entry.span(),
            format!("{key} is {}; expected {expected}", with_article(found.type_str())),
        );
        None
    }
}

/// Renamed keys: the old name and the new name.
const RENAMED: [(&str, &str); 6] = [
    ("dates", "request_granularity"),
    ("order", "list_order"),
    ("poisoned", "page_fallback"),
    ("recall", "refetch_broken_records"),
    ("repairs.guesses", "repairs.enable"),
    ("unmendable", "on_unrepairable"),
];

/// Reads the address of a listener; the error text names the expected value.
pub(super) fn read_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "is not an address; expected an IP address and a port such as \"127.0.0.1:8080\"".to_owned()
    })
}

/// A value as fault texts show it: escaped, and without the user and password of a URL.
pub(super) fn redact_value(value: &str) -> String {
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
