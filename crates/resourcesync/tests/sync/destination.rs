//! A small destination of its own: it reads the documents by the specification, and shares no code with the source.

use crate::world::{BASE, World, urls};
use quick_xml::events::Event;
use std::collections::BTreeMap;
use std::io::Read as _;

/// How a destination works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// It reads dumps in place of lists and resources.
    pub(crate) uses_dumps: bool,
    /// It takes changes at the time of its last one again, as `resync` of PyPI does.
    pub(crate) is_inclusive: bool,
    /// It skips parts of a change list that ended before.
    pub(crate) skips_parts: bool,
}

/// A copy of the resources.
pub(crate) struct Destination {
    habits: Habits,
    /// The content of the resources by their URLs.
    pub(crate) resources: BTreeMap<String, String>,
    /// The time up to which it knows the changes.
    known: String,
}

#[derive(Debug, Default)]
struct Document {
    root: String,
    metadata: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    location: String,
    modified: String,
    metadata: BTreeMap<String, String>,
}

impl Document {
    fn read(xml: &str) -> Self {
        let mut reader = quick_xml::Reader::from_str(xml);
        let (mut document, mut name) = (Self::default(), String::new());
        loop {
            match reader.read_event().expect("well-formed") {
                Event::Start(tag) => {
                    tag.name().as_ref().clone_into(&mut name);
                    match name.as_str() {
                        "urlset" | "sitemapindex" => document.root.clone_from(&name),
                        "url" | "sitemap" => document.entries.push(Entry::default()),
                        _ => {}
                    }
                }
                Event::Empty(tag) => {
                    let attributes = tag.attributes().map(|attribute| {
                        let attribute = attribute.expect("an attribute");
                        (attribute.key.as_ref().to_owned(), unescape(&attribute.value))
                    });
                    let attributes: BTreeMap<_, _> = attributes.collect();
                    match (tag.name().as_ref(), document.entries.last_mut()) {
                        ("rs:md", None) => document.metadata = attributes,
                        ("rs:md", Some(entry)) => entry.metadata = attributes,
                        ("rs:ln", None) => {
                            document.links.insert(attributes["rel"].clone(), attributes["href"].clone());
                        }
                        _ => {}
                    }
                }
                Event::Text(text) => {
                    let text = unescape(&text);
                    match (name.as_str(), document.entries.last_mut()) {
                        ("loc", Some(entry)) => entry.location.push_str(&text),
                        ("lastmod", Some(entry)) => entry.modified.push_str(&text),
                        _ => {}
                    }
                }
                Event::End(_) => name.clear(),
                Event::Eof => return document,
                _ => {}
            }
        }
    }

    /// Reads a document, and checks what it says of itself.
    async fn get(world: &mut World, url: &str, capability: &str) -> Self {
        let body = world.get(url).await.expect("a document");
        let document = Self::read(&String::from_utf8(body).expect("UTF-8"));
        document.check(capability);
        document
    }

    fn check(&self, capability: &str) {
        assert_eq!(self.metadata["capability"], capability);
        assert_eq!(self.links["up"], urls().capability_list());
        let times = if capability.starts_with("change") { &["from"][..] } else { &["at", "completed"] };
        assert!(times.iter().all(|time| self.metadata.contains_key(*time)), "{:?}", self.metadata);
    }

    /// The resources or changes of a list, whose parts are read one after the other.
    async fn all(world: &mut World, capability: &str, since: Option<&str>) -> (Self, Vec<Entry>) {
        let url = format!("{BASE}/x/resourcesync/p/{capability}.xml");
        let document = Self::get(world, &url, capability).await;
        if document.root == "urlset" {
            let entries = document.entries.clone();
            return (document, entries);
        }
        let mut entries = Vec::new();
        for part in needed(&document.entries, since) {
            let part = Self::get(world, &part.location, capability).await;
            assert_eq!((part.root.as_str(), part.links.get("index")), ("urlset", Some(&url)));
            assert!(part.entries.len() <= 4, "{}", part.entries.len());
            entries.extend(part.entries);
        }
        (document, entries)
    }
}

/// The text of a value. The source writes no character references.
fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    text.replace("&amp;", "&")
}

/// The parts whose changes are not before this time.
fn needed(parts: &[Entry], since: Option<&str>) -> Vec<Entry> {
    let is_needed = |part: &&Entry| since.is_none_or(|since| part.metadata["until"].as_str() >= since);
    parts.iter().filter(is_needed).cloned().collect()
}

/// The entries of the manifest of a ZIP file, with the content of their files.
fn unpack(zip: Vec<u8>, capability: &str) -> Vec<(Entry, Option<String>)> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(zip)).expect("a ZIP file");
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("readable");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("UTF-8 with the right checksum");
        let name = file.name().expect("a text").into_owned();
        let number = name.strip_prefix("resources/").and_then(|name| name.strip_suffix(".xml"));
        let is_safe = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        assert!(is_safe || name == "manifest.xml", "{name}");
        files.insert(format!("/{name}"), text);
    }
    let manifest = Document::read(&files.remove("/manifest.xml").expect("a manifest"));
    manifest.check(capability);
    let entries = manifest.entries.into_iter().map(|entry| {
        let content = entry.metadata.get("path").map(|path| files.remove(path).expect("a file"));
        if let Some(content) = &content {
            check_hash(&entry, content);
        }
        (entry, content)
    });
    let entries = entries.collect();
    assert!(files.is_empty(), "{files:?}");
    entries
}

fn check_hash(entry: &Entry, content: &str) {
    let hash = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
    assert_eq!(entry.metadata["hash"], format!("sha-256:{}", hex::encode(hash)), "{entry:?}");
    assert_eq!(entry.metadata["length"], content.len().to_string());
    assert_eq!(entry.metadata["type"], "application/xml");
}

impl Destination {
    /// Copies all resources.
    pub(crate) async fn baseline(world: &mut World, habits: Habits) -> Self {
        let mut destination = Self { habits, resources: BTreeMap::new(), known: String::new() };
        let entries = if habits.uses_dumps {
            let (document, entries) = destination.unpack_all(world, "resourcedump").await;
            destination.known.clone_from(&document.metadata["at"]);
            entries
        } else {
            let (document, entries) = Document::all(world, "resourcelist", None).await;
            destination.known.clone_from(&document.metadata["at"]);
            entries.into_iter().map(|entry| (entry, None)).collect()
        };
        if habits.is_inclusive {
            // `resync` takes the last change that it has seen.
            let last = entries.iter().map(|(entry, _)| entry.modified.clone()).max();
            destination.known = last.unwrap_or(destination.known);
        }
        for (entry, content) in entries {
            assert!(!entry.metadata.contains_key("change"), "{entry:?}");
            destination.take(world, &entry, content).await;
        }
        destination
    }

    /// Applies the changes since the last time.
    pub(crate) async fn update(&mut self, world: &mut World) {
        let entries = if self.habits.uses_dumps {
            self.unpack_all(world, "changedump").await.1
        } else {
            let since = if self.habits.skips_parts { Some(self.known.clone()) } else { None };
            let (document, entries) = Document::all(world, "changelist", since.as_deref()).await;
            if document.metadata["from"] > self.known {
                // The list lacks changes since then.
                *self = Self::baseline(world, self.habits).await;
                return;
            }
            entries.into_iter().map(|entry| (entry, None)).collect()
        };
        let time = |entry: &Entry| entry.metadata["datetime"].clone();
        assert!(entries.is_sorted_by_key(|(entry, _)| time(entry)), "changes are in the order of time");
        let last = entries.iter().map(|(entry, _)| time(entry)).max();
        for (entry, content) in entries {
            let is_new =
                time(&entry) > self.known || (self.habits.is_inclusive && time(&entry) == self.known);
            match entry.metadata["change"].as_str() {
                _ if !is_new => {}
                "deleted" => drop(self.resources.remove(&entry.location)),
                "updated" => self.take(world, &entry, content).await,
                other => panic!("{other}"),
            }
        }
        self.known = last.unwrap_or_default().max(std::mem::take(&mut self.known));
    }

    /// The content of all ZIP files of a dump that matter.
    async fn unpack_all(
        &self,
        world: &mut World,
        capability: &str,
    ) -> (Document, Vec<(Entry, Option<String>)>) {
        let url = format!("{BASE}/x/resourcesync/p/{capability}.xml");
        let document = Document::get(world, &url, capability).await;
        assert_eq!(document.root, "urlset");
        let since = (self.habits.skips_parts && capability == "changedump").then_some(self.known.as_str());
        let mut entries = Vec::new();
        for package in needed(&document.entries, since) {
            assert_eq!(package.metadata["type"], "application/zip");
            let zip = world.get(&package.location).await.expect("a ZIP file");
            entries.extend(unpack(zip, &format!("{capability}-manifest")));
        }
        (document, entries)
    }

    /// Stores a resource: as the dump has it, or as it is at its URL now.
    async fn take(&mut self, world: &mut World, entry: &Entry, content: Option<String>) {
        let content = match content {
            Some(content) => Some(content),
            None => {
                world.disturb().await;
                let content = world.resource(&entry.location);
                if let (true, Some(content)) = (world.is_quiet, &content) {
                    check_hash(entry, content);
                }
                content
            }
        };
        match content {
            Some(content) => drop(self.resources.insert(entry.location.clone(), content)),
            // It was deleted since: a later change says so.
            None => drop(self.resources.remove(&entry.location)),
        }
    }
}
