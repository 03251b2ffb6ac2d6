//! TOML as written: typed reading of tables that knows the line of everything.
//!
//! Every fault is collected instead of ending the reading, so that one run
//! names them all. The keys that were asked for are the keys that are known:
//! whatever else stands in a table is a fault that names the nearest of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One fault of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.text)
    }
}

/// One file and the faults found in it so far.
pub(super) struct Document<'t> {
    file: &'t Path,
    text: &'t str,
    /// Each with the place it is at, in bytes.
    faults: RefCell<Vec<(usize, Fault)>>,
}

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

impl<'t> Document<'t> {
    pub(super) fn new(file: &'t Path, text: &'t str) -> Self {
        Self { file, text, faults: RefCell::default() }
    }

    /// The root table; what is no TOML becomes faults.
    pub(super) fn root(&self) -> Table<'_, 't> {
        let (root, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let message = error.message().replace('\n', ", ");
            self.fault(error.span().unwrap_or_default(), format!("this is no TOML: {message}"));
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

    pub(super) fn fault(&self, span: Range<usize>, text: String) {
        let before = self.text.as_bytes().iter().take(span.start);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        self.faults.borrow_mut().push((span.start, Fault { file: self.file.to_owned(), line, text }));
    }

    /// All faults, in the order of the text.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|(place, _)| *place);
        faults.into_iter().map(|(_, fault)| fault).collect()
    }
}

/// A table that is being read.
pub(super) struct Table<'d, 't> {
    document: &'d Document<'t>,
    name: String,
    whole: Range<usize>,
    entries: DeTable<'t>,
    /// The keys that were asked for, and whether they were there.
    known: BTreeMap<&'static str, bool>,
}

impl<'d, 't> Table<'d, 't> {
    pub(super) fn string(&mut self, key: &'static str) -> Option<At<String>> {
        let entry = self.take(key)?;
        match entry.get_ref() {
            DeValue::String(text) => Some(At { value: text.to_string(), span: entry.span() }),
            other => self.wrong_type(key, &entry, "a text in quotes", other),
        }
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let entry = self.take(key)?;
        match entry.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            other => self.wrong_type(key, &entry, "true or false", other),
        }
    }

    pub(super) fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let entry = self.take(key)?;
        let right = format!("a whole number from {} to {}", range.start(), range.end());
        match entry.get_ref() {
            DeValue::Integer(integer) => match u64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(value) if range.contains(&value) => Some(value),
                _ => {
                    let key = self.full(key);
                    self.document.fault(entry.span(), format!("{key} = {integer} is out of range; {right}"));
                    None
                }
            },
            other => self.wrong_type(key, &entry, &right, other),
        }
    }

    /// A number takes the place of `value`, if the key is there.
    pub(super) fn number(&mut self, key: &'static str, range: RangeInclusive<u64>, value: &mut u64) {
        *value = self.integer(key, range).unwrap_or(*value);
    }

    /// The same of a count or a size in memory.
    pub(super) fn count(&mut self, key: &'static str, range: RangeInclusive<u64>, value: &mut usize) {
        let count = self.integer(key, range).and_then(|count| usize::try_from(count).ok());
        *value = count.unwrap_or(*value);
    }

    /// The same of a time in whole seconds.
    pub(super) fn seconds(&mut self, key: &'static str, range: RangeInclusive<u64>, value: &mut Duration) {
        *value = self.integer(key, range).map_or(*value, Duration::from_secs);
    }

    pub(super) fn strings(&mut self, key: &'static str) -> Vec<At<String>> {
        let Some(entry) = self.take(key) else { return Vec::new() };
        let right = "a list of texts in quotes";
        let DeValue::Array(array) = entry.get_ref() else {
            self.wrong_type::<()>(key, &entry, right, entry.get_ref());
            return Vec::new();
        };
        let mut strings = Vec::new();
        for item in array.iter() {
            match item.get_ref() {
                DeValue::String(text) => strings.push(At { value: text.to_string(), span: item.span() }),
                other => {
                    self.wrong_type::<()>(key, item, right, other);
                }
            }
        }
        strings
    }

    /// A table inside this one; an absent one is read as an empty one.
    pub(super) fn table(&mut self, key: &'static str) -> Self {
        let name = self.full(key);
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
                self.wrong_type::<()>(key, &entry, "a table", other);
            }
        }
        table
    }

    /// The tables inside the one of that key, whatever their names, in the order of the file.
    pub(super) fn tables(&mut self, key: &'static str) -> Vec<(At<String>, Self)> {
        let outer = self.table(key);
        let mut tables = Vec::new();
        for (name, entry) in outer.entries {
            let full = format!("{}.{}", outer.name, name.get_ref());
            let (at, found) = (entry.span(), entry.into_inner());
            let DeValue::Table(entries) = found else {
                let found = article(found.type_str());
                self.document.fault(at, format!("{full} is {found}; a table is wanted"));
                continue;
            };
            let known = BTreeMap::new();
            let table = Table { document: self.document, name: full, whole: name.span(), entries, known };
            tables.push((At { value: name.get_ref().to_string(), span: name.span() }, table));
        }
        tables.sort_by_key(|(name, _)| name.span.start);
        tables
    }

    /// The text and, if it can be read as `T`, its value; a fault says what would be right.
    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.string(key)?;
        match read(&text.value) {
            Ok(value) => Some(value),
            Err(right) => {
                let key = self.full(key);
                let value = shown(&text.value);
                self.document.fault(text.span, format!("{key} = \"{value}\" {right}"));
                None
            }
        }
    }

    /// Whether a key that was asked for was there, faulty or not.
    pub(super) fn was_given(&self, key: &str) -> bool {
        self.known.get(key).copied().unwrap_or(false)
    }

    /// A key that has no place here beside others; `why` says so.
    pub(super) fn refuse(&mut self, key: &'static str, why: &str) {
        if let Some(entry) = self.take(key) {
            let key = self.full(key);
            self.document.fault(entry.span(), format!("{key} has no place here: {why}"));
        }
    }

    /// A key that has to be there is not.
    pub(super) fn missing(&self, text: String) {
        self.document.fault(self.whole.start..self.whole.start, text);
    }

    pub(super) fn fault(&self, span: Range<usize>, text: String) {
        self.document.fault(span, text);
    }

    /// Ends the reading: what was not asked for is unknown.
    pub(super) fn finish(self) {
        let known: Vec<&str> = self.known.keys().copied().collect();
        for key in self.entries.keys() {
            let name = self.full(key.get_ref());
            let text = match nearest(key.get_ref(), &known) {
                _ if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == name) => {
                    format!("{name} was renamed to {new}")
                }
                Some(near) => format!("unknown key {name}; did you mean {near}?"),
                None => format!("unknown key {name}; known here are {}", known.join(", ")),
            };
            self.document.fault(key.span(), text);
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Spanned<DeValue<'t>>> {
        let entry = self.entries.remove(key);
        self.known.insert(key, entry.is_some());
        entry
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn wrong_type<T>(
        &self,
        key: &str,
        entry: &Spanned<DeValue<'_>>,
        right: &str,
        found: &DeValue<'_>,
    ) -> Option<T> {
        let key = self.full(key);
        self.document
            .fault(entry.span(), format!("{key} is {}; {right} is wanted", article(found.type_str())));
        None
    }
}

/// Old names of keys, and the keys that replaced them.
const RENAMED: [(&str, &str); 7] = [
    ("dates", "request_granularity"),
    ("headers", "v1_headers_via"),
    ("order", "list_order"),
    ("poisoned", "page_fallback"),
    ("recall", "refetch_broken_records"),
    ("repairs.guesses", "repairs.enable"),
    ("unmendable", "on_unrepairable"),
];

/// A value as a fault shows it: escaped, and without the user and password of a URL.
pub(super) fn shown(value: &str) -> String {
    let mut text = value.escape_debug().to_string();
    let Some(start) = text.find("://").map(|colon| colon + 3) else { return text };
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |end| start + end);
    if let Some(at) = text[start..end].rfind('@') {
        text.replace_range(start..start + at, "***");
    }
    text
}

/// The known name that is likely to be meant, if one is near.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let distance = |other: &str| edit_distance(&lower, &other.replace('-', "_"));
    let near = known.iter().min_by_key(|other| distance(other))?;
    (distance(near) <= 1 + near.len() / 4 || near.starts_with(&format!("{lower}_"))).then_some(near)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn article(kind: &str) -> String {
    match kind {
        "integer" | "array" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
