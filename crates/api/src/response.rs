//! Reads the OAI-PMH response that a document is made of.
//!
//! The texts of items are whole: nothing is left out, so that a document never lacks what the response has. The length of
//! a response is limited by its reader.

use crate::budget::{DocumentBudget, DocumentTooLong};
use crate::documents::RecordDocument;
use crate::fields::{RecordField, RecordFields};
use oaimend_record::{RecordDocument as ReadRecord, WorkDescription};
use oaimend_repository::RecordView;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::xml::{StartTag, XmlError, XmlEvent, XmlReader};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Why a response cannot be read: it is not well-formed, or not a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response cannot be read: {0}")]
pub struct UnreadableResponse(String);

impl From<XmlError> for UnreadableResponse {
    fn from(error: XmlError) -> Self {
        Self(error.to_string())
    }
}

/// A response of a repository.
#[derive(Clone, Debug, Default)]
pub struct OaiResponse<'x> {
    /// The responseDate.
    pub response_date: Cow<'x, str>,
    /// The errors; empty for a response with content.
    pub errors: Vec<OaiError>,
    /// The elements of `Identify`.
    pub identify: TextFields<'x>,
    /// The formats or sets.
    pub described: OaiList<TextFields<'x>>,
    /// The records or headers.
    pub records: OaiList<OaiItem<'x>>,
    /// The namespaces around these.
    pub scopes: ListScopes,
}

/// An error of OAI-PMH.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OaiError {
    /// The code, as written.
    pub code: String,
    /// The text.
    pub text: String,
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct OaiList<T> {
    /// The items.
    pub items: Vec<T>,
    /// The token of the next page.
    pub token: Option<String>,
    /// The number of items of the whole list.
    pub complete_list_size: Option<u64>,
}

/// The texts of child elements by their local names, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextFields<'x>(Vec<(&'x str, Cow<'x, str>)>);

impl<'x> TextFields<'x> {
    /// All texts of a name.
    pub fn all<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t Cow<'x, str>> {
        self.0.iter().filter(move |(other, _)| *other == name).map(|(_, text)| text)
    }

    /// The first text of a name; empty without one.
    pub fn first(&self, name: &str) -> Cow<'x, str> {
        self.all(name).next().cloned().unwrap_or_default()
    }
}

/// A record or header.
#[derive(Clone, Debug, Default)]
pub struct OaiItem<'x> {
    /// The elements of the header.
    header: TextFields<'x>,
    is_deleted: bool,
    /// The record element.
    xml: &'x str,
    metadata: Option<Section<'x>>,
    about: Vec<Section<'x>>,
    /// The namespaces that the record element declares.
    declared: NamespaceScope,
    /// The namespaces around the record.
    around: ListScopes,
}

/// The namespaces that the list and the response declare, which all items share: from the inside to the outside.
pub type ListScopes = [Arc<NamespaceScope>; 2];

/// The content of `metadata` or `about`.
#[derive(Clone, Debug)]
struct Section<'x> {
    xml: &'x str,
    /// Whether an element in it has no prefix.
    has_plain_names: bool,
    /// The namespaces that the element around the section declares.
    declared: NamespaceScope,
}

impl<'x> OaiItem<'x> {
    /// The identifier.
    pub fn identifier(&self) -> Cow<'x, str> {
        self.header.first("identifier")
    }

    /// The datestamp.
    pub fn datestamp(&self) -> Cow<'x, str> {
        self.header.first("datestamp")
    }

    /// The record with the selected parts. They take their bytes from those that the page has left.
    ///
    /// # Errors
    ///
    /// Not enough bytes are left.
    pub fn document(
        &self,
        fields: RecordFields<'_>,
        left: &mut DocumentBudget,
    ) -> Result<RecordDocument<'x>, DocumentTooLong> {
        use RecordField::{About, Datestamp, Deleted, DublinCore, Metadata, Sets};
        let has = |field| fields.contains(field);
        let mut record = RecordDocument {
            identifier: self.identifier(),
            datestamp: has(Datestamp).then(|| self.datestamp()),
            deleted: has(Deleted).then_some(self.is_deleted),
            sets: has(Sets).then(|| self.header.all("setSpec").cloned().collect()),
            ..RecordDocument::default()
        };
        if has(Metadata) {
            record.metadata = self.metadata.as_ref().map(|section| self.alone(section, left)).transpose()?;
        }
        if has(About) {
            let about = self.about.iter().map(|section| self.alone(section, left));
            record.about = Some(about.collect::<Result<_, _>>()?);
        }
        if has(DublinCore) {
            record.dublin_core = self.dublin_core(left)?;
        }
        Ok(record)
    }

    /// A section with declarations of the namespaces that it uses.
    fn alone(
        &self,
        section: &Section<'x>,
        left: &mut DocumentBudget,
    ) -> Result<Cow<'x, str>, DocumentTooLong> {
        let [list, response] = &self.around;
        let mut used = used_in(section.xml, &[&section.declared, &self.declared, list, response]);
        if !section.has_plain_names {
            used.remove("");
        }
        // Most sections declare what they use.
        if !used.is_empty()
            && let Ok(Some(XmlEvent::Start(root))) = XmlReader::new(section.xml).read()
        {
            for (declared, _) in root.declarations() {
                used.remove(declared.as_str());
            }
        }
        left.take(section.xml.len() + declared_bytes(&used))?;
        if used.is_empty() {
            return Ok(Cow::Borrowed(section.xml));
        }
        let scope = NamespaceScope::new(used.into_iter());
        Ok(Cow::Owned(scope.rebase(section.xml, &NamespaceScope::default())))
    }

    /// The texts of the metadata; `None` if no crosswalk reads it, or if it is longer than a record that is converted: a
    /// text that is cut would be a wrong claim.
    fn dublin_core(
        &self,
        left: &mut DocumentBudget,
    ) -> Result<Option<BTreeMap<&'static str, Vec<String>>>, DocumentTooLong> {
        if self.metadata.is_none() {
            return Ok(None);
        }
        let [list, response] = &self.around;
        let used = used_in(self.xml, &[list, response]);
        left.take(self.xml.len() + declared_bytes(&used))?;
        let record = NamespaceScope::new(used.into_iter()).rebase(self.xml, &NamespaceScope::default());
        let read = RecordView::read(&record).and_then(|view| ReadRecord::read_for_conversion(&view).ok());
        let Some(read) = read.filter(ReadRecord::is_whole) else { return Ok(None) };
        let core = WorkDescription::without_links(&read).core;
        let fields = core.fields().into_iter().filter(|(_, texts)| !texts.is_empty());
        let fields: BTreeMap<_, _> = fields
            .map(|(name, texts)| (name, texts.iter().map(|text| text.value.clone()).collect()))
            .collect();
        Ok((!fields.is_empty()).then_some(fields))
    }
}

/// Maximum number of prefixes that are searched one by one. With more, one pass looks each word of the XML up.
const SEARCHED_PREFIXES_MAX: usize = 8;

/// The namespaces that XML may use, by prefix: the default one, and those whose prefix is a word in it, because values can be
/// qualified names. `scopes` are those around it, from the inside to the outside.
fn used_in<'s>(xml: &'s str, scopes: &[&'s NamespaceScope]) -> BTreeMap<&'s str, &'s str> {
    let uri = |word| scopes.iter().find_map(|scope| scope.uri(word));
    let declared = scopes.iter().flat_map(|scope| scope.prefixes());
    let mut used: BTreeMap<_, _> = if declared.clone().nth(SEARCHED_PREFIXES_MAX).is_none() {
        let found = declared.map(|(prefix, _)| prefix).filter(|prefix| has_word(xml, prefix));
        found.filter_map(|prefix| Some((prefix, uri(prefix)?))).collect()
    } else {
        let words = xml.split(|c: char| c.is_ascii() && !is_of_name(c as u8));
        words.filter_map(|word| Some((word, uri(word)?))).collect()
    };
    used.extend(uri("").map(|default| ("", default)));
    used
}

/// Whether a prefix is a word of the XML: not a part of a longer name.
fn has_word(xml: &str, prefix: &str) -> bool {
    let xml = xml.as_bytes();
    memchr::memmem::find_iter(xml, prefix.as_bytes()).any(|start| {
        let is_name_at =
            |place: Option<usize>| place.and_then(|at| xml.get(at)).is_some_and(|byte| is_of_name(*byte));
        !is_name_at(start.checked_sub(1)) && !is_name_at(Some(start + prefix.len()))
    })
}

/// Whether a byte of UTF-8 can be in a name without a colon.
const fn is_of_name(byte: u8) -> bool {
    !byte.is_ascii() || byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The number of bytes of declarations.
fn declared_bytes(namespaces: &BTreeMap<&str, &str>) -> usize {
    namespaces.iter().map(|(prefix, uri)| " xmlns:=\"\"".len() + prefix.len() + uri.len()).sum()
}

impl<'x> OaiResponse<'x> {
    /// Reads a response.
    ///
    /// # Errors
    ///
    /// It is not a well-formed response in UTF-8.
    pub fn read(xml: &'x [u8]) -> Result<Self, UnreadableResponse> {
        let text = simdutf8::compat::from_utf8(xml).map_err(|error| UnreadableResponse(error.to_string()))?;
        // Responses are well-formed (invariant 2 of ARCHITECTURE.md), so the names of end tags are not compared again.
        let mut reading = Reading { text, xml: XmlReader::of_part(text), around: ListScopes::default() };
        let mut response = Self::default();
        let mut is_response = false;
        while let Some(event) = reading.xml.read()? {
            match event {
                XmlEvent::Start(root) if root.local_name() == "OAI-PMH" => {
                    reading.around = [Arc::default(), scope_of(root).into()];
                    reading.content(&mut response)?;
                    response.scopes.clone_from(&reading.around);
                    is_response = true;
                }
                XmlEvent::Start(_) | XmlEvent::Doctype => {
                    return Err(UnreadableResponse("it is not a response".to_owned()));
                }
                _ => {}
            }
        }
        if is_response { Ok(response) } else { Err(UnreadableResponse("no element".to_owned())) }
    }
}

/// Reads elements one after the other. Each function reads up to the end of its element.
struct Reading<'x> {
    text: &'x str,
    xml: XmlReader<'x>,
    /// The namespaces around the items.
    around: ListScopes,
}

impl<'x> Reading<'x> {
    /// The next child element of the element whose children have this depth; `None` at its end.
    fn child(&mut self, depth: usize) -> Result<Option<StartTag<'x>>, UnreadableResponse> {
        while let Some(event) = self.xml.read()? {
            match event {
                XmlEvent::Start(tag) if self.xml.depth() == depth => return Ok(Some(tag)),
                XmlEvent::End(_) if self.xml.depth() + 1 == depth => return Ok(None),
                XmlEvent::Doctype => {
                    return Err(UnreadableResponse("a document type declaration".to_owned()));
                }
                _ => {}
            }
        }
        Err(UnreadableResponse("it ends within an element".to_owned()))
    }

    /// The text of the element that has just begun, without blanks around it. Child elements are left out.
    fn text(&mut self) -> Result<Cow<'x, str>, UnreadableResponse> {
        let depth = self.xml.depth();
        let mut text = Cow::Borrowed("");
        while let Some(event) = self.xml.read()? {
            match event {
                XmlEvent::Text(part) if self.xml.depth() == depth + 1 => match part.resolve()? {
                    part if text.is_empty() => text = part,
                    part => text.to_mut().push_str(&part),
                },
                XmlEvent::End(_) if self.xml.depth() == depth => {
                    return Ok(match text {
                        Cow::Borrowed(text) => Cow::Borrowed(text.trim_ascii()),
                        Cow::Owned(text) => Cow::Owned(text.trim_ascii().to_owned()),
                    });
                }
                _ => {}
            }
        }
        Err(UnreadableResponse("it ends within a text".to_owned()))
    }

    fn fields(&mut self, depth: usize) -> Result<TextFields<'x>, UnreadableResponse> {
        let mut fields = Vec::new();
        while let Some(tag) = self.child(depth)? {
            fields.push((tag.local_name(), self.text()?));
        }
        Ok(TextFields(fields))
    }

    fn content(&mut self, response: &mut OaiResponse<'x>) -> Result<(), UnreadableResponse> {
        while let Some(tag) = self.child(1)? {
            match tag.local_name() {
                "responseDate" => response.response_date = self.text()?,
                "error" => {
                    let code = tag.attribute("code")?.unwrap_or_default().into_owned();
                    response.errors.push(OaiError { code, text: self.text()?.into_owned() });
                }
                "Identify" => response.identify = self.fields(2)?,
                "ListMetadataFormats" | "ListSets" => {
                    response.described = self.list(tag, |reading, _, _| reading.fields(3))?;
                }
                "ListRecords" | "GetRecord" => response.records = self.list(tag, Self::record)?,
                "ListIdentifiers" => {
                    response.records = self.list(tag, |reading, tag, _| {
                        let is_deleted = is_deleted(tag)?;
                        Ok(OaiItem { header: reading.fields(3)?, is_deleted, ..OaiItem::default() })
                    })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn list<T>(
        &mut self,
        tag: StartTag<'x>,
        item: impl Fn(&mut Self, StartTag<'x>, usize) -> Result<T, UnreadableResponse>,
    ) -> Result<OaiList<T>, UnreadableResponse> {
        self.around[0] = scope_of(tag).into();
        let mut list = OaiList { items: Vec::new(), token: None, complete_list_size: None };
        while let Some(tag) = self.child(2)? {
            if tag.local_name() != "resumptionToken" {
                let start = self.xml.span().start;
                list.items.push(item(self, tag, start)?);
                continue;
            }
            let size = tag.attribute("completeListSize")?;
            list.complete_list_size = size.and_then(|size| size.trim().parse().ok());
            list.token = Some(self.text()?.into_owned()).filter(|token| !token.is_empty());
        }
        Ok(list)
    }

    fn record(&mut self, tag: StartTag<'x>, start: usize) -> Result<OaiItem<'x>, UnreadableResponse> {
        let mut item = OaiItem { declared: scope_of(tag), around: self.around.clone(), ..OaiItem::default() };
        while let Some(tag) = self.child(3)? {
            match tag.local_name() {
                "header" => {
                    item.is_deleted = is_deleted(tag)?;
                    item.header = self.fields(4)?;
                }
                "metadata" => item.metadata = self.section(tag)?,
                "about" => item.about.extend(self.section(tag)?),
                _ => {}
            }
        }
        item.xml = self.text.get(start..self.xml.span().end).unwrap_or_default();
        Ok(item)
    }

    /// The content of the element that has just begun: from its first to its last child element.
    fn section(&mut self, tag: StartTag<'x>) -> Result<Option<Section<'x>>, UnreadableResponse> {
        let depth = self.xml.depth();
        let (mut place, mut has_plain_names): (Option<Range<usize>>, _) = (None, false);
        while let Some(event) = self.xml.read()? {
            let span = self.xml.span();
            match event {
                XmlEvent::Start(tag) => {
                    has_plain_names |= tag.prefix().is_empty();
                    if self.xml.depth() == depth + 1 {
                        place.get_or_insert(span.clone());
                    }
                }
                XmlEvent::End(_) if self.xml.depth() == depth + 1 => {
                    if let Some(place) = &mut place {
                        place.end = span.end;
                    }
                }
                XmlEvent::End(_) if self.xml.depth() == depth => {
                    let section = place.map(|place| Section {
                        xml: self.text.get(place).unwrap_or_default(),
                        has_plain_names,
                        declared: scope_of(tag),
                    });
                    return Ok(section);
                }
                _ => {}
            }
        }
        Err(UnreadableResponse("it ends within a record".to_owned()))
    }
}

/// The namespaces that an element declares.
fn scope_of(tag: StartTag<'_>) -> NamespaceScope {
    let declarations = tag.declarations();
    NamespaceScope::new(declarations.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str())))
}

fn is_deleted(header: StartTag<'_>) -> Result<bool, XmlError> {
    Ok(header.attribute("status")?.is_some_and(|status| status.trim() == "deleted"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::RecordsParameters;
    use crate::rules::Parameters;

    fn response(content: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><responseDate>2024-05-06T07:08:09Z</responseDate>\
             <request>http://e.org/x</request>{content}</OAI-PMH>"
        )
    }

    #[track_caller]
    fn records(list: &str, fields: &str) -> serde_json::Value {
        let xml = response(list);
        let read = OaiResponse::read(xml.as_bytes()).expect("it is well-formed");
        let query = format!("repository=x{fields}");
        let parameters = RecordsParameters::read(query.as_bytes()).expect("legal");
        let mut left = DocumentBudget::default();
        let documents = read.records.items.iter().map(|item| item.document(parameters.fields(), &mut left));
        let documents = documents.collect::<Result<Vec<_>, _>>().expect("they are short");
        serde_json::to_value(documents).expect("JSON")
    }

    const LIST: &str = "<ListRecords xmlns:q='urn:q'><record xmlns:p='urn:p'><header><identifier>a&amp;b</identifier>\
        <datestamp>2024-01-01</datestamp><setSpec>s</setSpec><setSpec>t:u</setSpec></header><metadata><!-- <x/> -->\
        <p:a xsi:type='p:t'>1 &lt; 2<![CDATA[</metadata></record>]]></p:a></metadata>\
        <about><b xmlns=''/></about><about><c/></about></record>\
        <record><header status='deleted'><identifier>d</identifier><datestamp>2024-01-02</datestamp></header></record>\
        <resumptionToken completeListSize='7' cursor='0'>t&amp;1</resumptionToken></ListRecords>";

    #[test]
    fn records_have_the_selected_parts_and_declare_their_namespaces() {
        let all = records(LIST, "");
        assert_eq!(
            all,
            serde_json::json!([
                {"identifier": "a&b", "datestamp": "2024-01-01", "deleted": false, "sets": ["s", "t:u"],
                 "metadata": "<p:a xmlns:p=\"urn:p\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
                    xsi:type='p:t'>1 &lt; 2<![CDATA[</metadata></record>]]></p:a>"},
                {"identifier": "d", "datestamp": "2024-01-02", "deleted": true, "sets": []}
            ])
        );
        let about = records(LIST, "&fields=about");
        assert_eq!(
            about,
            serde_json::json!([
                {"identifier": "a&b", "about":
                    ["<b xmlns=''/>", "<c xmlns=\"http://www.openarchives.org/OAI/2.0/\"/>"]},
                {"identifier": "d", "about": []}
            ])
        );
        let xml = response(LIST);
        let read = OaiResponse::read(xml.as_bytes()).expect("it is well-formed");
        assert_eq!((read.records.token.as_deref(), read.records.complete_list_size), (Some("t&1"), Some(7)));
        assert_eq!(read.response_date, "2024-05-06T07:08:09Z");
    }

    #[test]
    fn dublin_core_is_read_by_crosswalks() {
        let list = "<GetRecord><record><header><identifier>a</identifier></header><metadata><o:dc \
            xmlns:o='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:dc='http://purl.org/dc/elements/1.1/'>\
            <dc:title>T &amp; U</dc:title><dc:title>V</dc:title><dc:date>2001</dc:date></o:dc></metadata></record>\
            <record><header><identifier>b</identifier></header><metadata><x xmlns='urn:x'>y</x></metadata></record>\
            </GetRecord>";
        let expected = serde_json::json!([
            {"identifier": "a", "dublinCore": {"title": ["T & U", "V"], "date": ["2001"]}}, {"identifier": "b"}
        ]);
        assert_eq!(records(list, "&fields=dublinCore"), expected);
    }

    #[test]
    fn dublin_core_has_whole_texts_or_is_absent() {
        let core = |description: &str| {
            let list = format!(
                "<GetRecord><record><header><identifier>a</identifier></header><metadata><o:dc \
                 xmlns:o='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:dc='http://purl.org/dc/elements/1.1/'>\
                 <dc:description>{description}</dc:description></o:dc></metadata></record></GetRecord>"
            );
            records(&list, "&fields=dublinCore")[0]["dublinCore"].clone()
        };
        let long = "word ".repeat(100_000);
        assert_eq!(core(&long)["description"][0].as_str().map(str::len), Some(long.trim_end().len()));
        assert_eq!(core(&long.repeat(3)), serde_json::Value::Null);
    }

    /// The error, or the number of bytes of metadata and `about`.
    fn made(xml: &str, fields: &str) -> Result<usize, DocumentTooLong> {
        let read = OaiResponse::read(xml.as_bytes()).expect("it is well-formed");
        let query = format!("repository=x&fields={fields}");
        let parameters = RecordsParameters::read(query.as_bytes()).expect("legal");
        let mut left = DocumentBudget::default();
        let made = read.records.items.iter().map(|item| {
            let document = item.document(parameters.fields(), &mut left)?;
            let about: usize = document.about.iter().flatten().map(|about| about.len()).sum();
            Ok(about + document.metadata.map_or(0, |metadata| metadata.len()))
        });
        made.sum()
    }

    #[test]
    fn long_namespaces_are_shared_until_documents_repeat_them() {
        let uri = "u".repeat(1 << 20);
        let record = |about: &str, count: usize| {
            format!(
                "<record xmlns:p='{uri}'><header><identifier>a</identifier></header>\
                 <metadata><m/></metadata>{}</record>",
                about.repeat(count)
            )
        };
        let response = |records: &str| response(&format!("<ListRecords>{records}</ListRecords>"));
        // Without a use, no section repeats the namespace. With copies this would take 100 GiB.
        let unused = made(&response(&record("<about><b/></about>", 100_000)), "metadata,about");
        assert!(unused.is_ok_and(|bytes| bytes < 8 << 20), "{unused:?}");
        let used = made(&response(&record("<about><p:b/></about>", 20)), "about");
        assert!(used.is_ok_and(|bytes| bytes > 20 << 20), "{used:?}");
        let too_long = response(&record("<about><p:b/></about>", 40));
        assert_eq!(made(&too_long, "about"), Err(DocumentTooLong));
        assert!(made(&too_long, "metadata").is_ok());
        let core = format!(
            "<OAI-PMH xmlns:p='{uri}'><ListRecords>{}</ListRecords></OAI-PMH>",
            "<record><header/><metadata><p:a/></metadata></record>".repeat(40)
        );
        assert_eq!(made(&core, "dublinCore"), Err(DocumentTooLong));
    }

    #[test]
    fn many_namespaces_and_many_sections_take_little_time() {
        let declarations: String = (0..100_000).map(|number| format!(" xmlns:p{number}='u'")).collect();
        let records = "<record><header/><metadata><p7:a/></metadata></record>".repeat(50_000);
        let xml = format!("<OAI-PMH{declarations}><ListRecords>{records}</ListRecords></OAI-PMH>");
        // A search for each prefix in each section would take hours.
        assert_eq!(made(&xml, "metadata"), Ok(50_000 * "<p7:a xmlns:p7=\"u\"/>".len()));
    }

    #[test]
    fn few_and_many_prefixes_are_found_alike() {
        const SEED: u64 = 41;
        println!("seed {SEED}");
        let mut random = fastrand::Rng::with_seed(SEED);
        let others: Vec<String> = (0..9).map(|number| format!("other{number}")).collect();
        let mut text = |alphabet: &[&str], count: usize| -> String {
            (0..random.usize(..=count)).map(|_| *random.choice(alphabet).expect("it is not empty")).collect()
        };
        for _ in 0..5_000 {
            let xml = text(&["a", "b", "-", "é", ":", "<", " ", "\"", ".", "_", "1"], 12);
            let prefixes: Vec<String> = (0..4).map(|_| text(&["a", "b", "-", "é"], 2)).collect();
            let inner = NamespaceScope::new(prefixes.iter().take(2).map(|prefix| (prefix.as_str(), "inner")));
            let outer = NamespaceScope::new(prefixes.iter().map(|prefix| (prefix.as_str(), "outer")));
            let more = NamespaceScope::new(others.iter().map(|prefix| (prefix.as_str(), "more")));
            let (few, many) = (used_in(&xml, &[&inner, &outer]), used_in(&xml, &[&inner, &outer, &more]));
            assert_eq!(few, many, "{xml:?} {prefixes:?}");
        }
    }

    #[test]
    fn headers_sets_formats_and_errors_are_read() {
        let headers = "<ListIdentifiers><header status='deleted'><identifier>a</identifier><datestamp>2024</datestamp>\
            </header><resumptionToken/></ListIdentifiers>";
        let expected = serde_json::json!([{"identifier": "a", "deleted": true}]);
        assert_eq!(records(headers, "&fields=deleted"), expected);
        let sets =
            response("<ListSets><set><setSpec> a </setSpec><setName>A &#65;</setName></set></ListSets>");
        let read = OaiResponse::read(sets.as_bytes()).expect("it is well-formed");
        assert_eq!(read.described.items[0].first("setSpec"), "a");
        assert_eq!(read.described.items[0].first("setName"), "A A");
        let errors = response("<error code='badArgument'>no</error>");
        let read = OaiResponse::read(errors.as_bytes()).expect("it is well-formed");
        assert_eq!(read.errors, [OaiError { code: "badArgument".into(), text: "no".into() }]);
    }

    #[test]
    fn other_texts_are_errors() {
        let cut = response(LIST);
        for end in [10, 100, 300, cut.len() - 60, cut.len() - 11] {
            assert!(OaiResponse::read(&cut.as_bytes()[..end]).is_err(), "{end}");
        }
        for other in ["", "<html/>", "<!DOCTYPE x><OAI-PMH/>", "text", "<OAI-PMH><ListSets></OAI-PMH>"] {
            assert!(OaiResponse::read(other.as_bytes()).is_err(), "{other}");
        }
        assert!(OaiResponse::read(b"<OAI-PMH>\xff</OAI-PMH>").is_err());
    }
}
