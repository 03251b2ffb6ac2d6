//! Reads the XML of an OAI-PMH response.

use super::model::{
    IdentifyFacts, ItemList, ListToken, MetadataFormat, OaiContent, OaiError, OaiPage, RecordItem, SetItem,
};
use oaimend_record::{RecordDocument, Text, language_tag};
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::xml::{NamespaceReader, StartTag, XmlError, XmlEvent, XmlReader};

/// Maximum number of items of a list that are kept. Further ones are counted.
const ITEMS_MAX: usize = 5_000;
/// Longest text of an element that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Maximum number of setSpecs of an item that are kept.
const SET_SPECS_MAX: usize = 20;
/// Maximum number of creators of an item that are kept.
const CREATORS_MAX: usize = 3;
/// Maximum number of errors, and of elements and descriptions of `Identify`, that are kept.
const FACTS_MAX: usize = 100;
/// The namespace of the elements of Dublin Core.
const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";

/// Why a response cannot be read: its XML is not well-formed, or it is not a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response cannot be read: {0}")]
pub struct UnreadableResponse(String);

impl From<XmlError> for UnreadableResponse {
    fn from(error: XmlError) -> Self {
        Self(error.to_string())
    }
}

impl OaiPage {
    /// Reads a response.
    ///
    /// # Errors
    ///
    /// It is not a well-formed response in UTF-8.
    pub fn read(xml: &[u8]) -> Result<Self, UnreadableResponse> {
        let text = std::str::from_utf8(xml).map_err(|error| UnreadableResponse(error.to_string()))?;
        let mut reading = Reading::new(text);
        reading.read_all()?;
        Ok(reading.page)
    }

    /// Reads the start of a response that was broken off: everything up to the last item that arrived completely.
    pub fn read_start(xml: &[u8]) -> Self {
        let text = xml.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let mut reading = Reading::new(text);
        // The error is the place where the response ends.
        let _ = reading.read_all();
        reading.page
    }
}

/// An element whose end tag was not read yet.
struct OpenElement {
    name: String,
    language: Option<String>,
    field: Option<CoreField>,
}

/// An element of Dublin Core that lists show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoreField {
    Title,
    Creator,
}

/// The response up to the current event.
struct Reading<'x> {
    xml: &'x str,
    page: OaiPage,
    open: Vec<OpenElement>,
    /// The text of the innermost element since its last tag.
    text: Text,
    format: MetadataFormat,
    set: SetItem,
    record: RecordItem,
    /// The start of the current `record` of `GetRecord`, or of the current `description`, in bytes.
    section_start: usize,
    /// The namespaces around this section.
    scope: Option<NamespaceScope>,
    descriptions_count: usize,
}

impl<'x> Reading<'x> {
    fn new(xml: &'x str) -> Self {
        Self {
            xml,
            page: OaiPage::default(),
            open: Vec::new(),
            text: Text::default(),
            format: MetadataFormat::default(),
            set: SetItem::default(),
            record: RecordItem::default(),
            section_start: 0,
            scope: None,
            descriptions_count: 0,
        }
    }

    fn read_all(&mut self) -> Result<(), UnreadableResponse> {
        let mut reader = NamespaceReader::new(XmlReader::new(self.xml));
        let mut is_response = false;
        while let Some(event) = reader.read()? {
            match event {
                XmlEvent::Start(tag) => is_response |= self.open(&reader, tag)?,
                XmlEvent::End(_) => self.close(reader.span().end),
                XmlEvent::Text(text) => self.text.push(&text.resolve()?, TEXT_BYTES_MAX),
                XmlEvent::Doctype => {
                    return Err(UnreadableResponse("a document type declaration".to_owned()));
                }
                XmlEvent::Other => {}
            }
        }
        match self.open.last() {
            Some(open) => Err(UnreadableResponse(format!("it ends within <{}>", open.name))),
            None if is_response => Ok(()),
            None => Err(UnreadableResponse("no element".to_owned())),
        }
    }

    /// Reads a start tag. Returns whether it is the root of a response.
    fn open(&mut self, reader: &NamespaceReader<'_>, tag: StartTag<'_>) -> Result<bool, UnreadableResponse> {
        let name = tag.local_name();
        let depth = self.open.len();
        let is_root = depth == 0 && name == "OAI-PMH";
        match depth {
            0 if !is_root => return Err(UnreadableResponse(format!("<{name}> is not a response"))),
            1 => self.open_content(name, tag)?,
            2 => self.open_item(name, tag, reader.span().start)?,
            3 if name == "header" => self.record.is_deleted = is_deleted(tag)?,
            _ => {}
        }
        let mut language = self.open.last().and_then(|parent| parent.language.clone());
        if let Some(value) = tag.attribute("xml:lang")? {
            language = language_tag(&value);
        }
        let field = match name {
            "title" => Some(CoreField::Title),
            "creator" => Some(CoreField::Creator),
            _ => None,
        };
        let is_core = || reader.namespace(tag) == Ok(DUBLIN_CORE);
        let field = if depth > 3 && self.is_inside(2, "record") && is_core() { field } else { None };
        self.text = Text { language: language.clone(), ..Text::default() };
        self.open.push(OpenElement { name: name.to_owned(), language, field });
        Ok(is_root)
    }

    /// Whether the element at this depth that is open has this name.
    fn is_inside(&self, depth: usize, name: &str) -> bool {
        self.open.get(depth).is_some_and(|open| open.name == name)
    }

    fn open_content(&mut self, name: &str, tag: StartTag<'_>) -> Result<(), UnreadableResponse> {
        let content = &mut self.page.content;
        match name {
            "error" => {
                let code = tag.attribute("code")?.unwrap_or_default().into_owned();
                let error = OaiError { code, text: Text::default() };
                match content {
                    OaiContent::Errors(errors) if errors.len() < FACTS_MAX => errors.push(error),
                    OaiContent::Errors(_) => {}
                    _ => *content = OaiContent::Errors(vec![error]),
                }
            }
            "Identify" => *content = OaiContent::Identify(IdentifyFacts::default()),
            "ListMetadataFormats" => *content = OaiContent::Formats(Vec::new()),
            "ListSets" => *content = OaiContent::Sets(ItemList::default()),
            "ListRecords" | "ListIdentifiers" => *content = OaiContent::Records(ItemList::default()),
            _ => {}
        }
        Ok(())
    }

    fn open_item(&mut self, name: &str, tag: StartTag<'_>, start: usize) -> Result<(), UnreadableResponse> {
        match name {
            "metadataFormat" => self.format = MetadataFormat::default(),
            "set" => self.set = SetItem::default(),
            "record" => self.record = RecordItem::default(),
            "header" => self.record = RecordItem { is_deleted: is_deleted(tag)?, ..RecordItem::default() },
            "resumptionToken" => {
                let number = |name| {
                    let value = tag.attribute(name)?;
                    Ok::<_, XmlError>(value.and_then(|value| value.trim().parse().ok()))
                };
                let token = ListToken {
                    cursor: number("cursor")?,
                    complete_list_size: number("completeListSize")?,
                    ..ListToken::default()
                };
                self.set_token(token);
            }
            _ => {}
        }
        if (self.is_inside(1, "GetRecord") && name == "record") || name == "description" {
            self.section_start = start;
        }
        Ok(())
    }

    fn set_token(&mut self, token: ListToken) {
        match &mut self.page.content {
            OaiContent::Sets(list) => list.token = Some(token),
            OaiContent::Records(list) => list.token = Some(token),
            _ => {}
        }
    }

    /// Reads an end tag, which ends at this byte.
    fn close(&mut self, end: usize) {
        let Some(closed) = self.open.pop() else { return };
        let mut text = std::mem::take(&mut self.text);
        text.trim();
        match self.open.len() {
            1 => self.close_content(&closed.name, text),
            2 => self.close_item(&closed.name, text, end),
            3 if self.is_inside(2, "metadataFormat") => match closed.name.as_str() {
                "metadataPrefix" => self.format.prefix = text,
                "schema" => self.format.schema = text,
                "metadataNamespace" => self.format.namespace = text,
                _ => {}
            },
            3 if self.is_inside(2, "set") && closed.name == "setSpec" => self.set.spec = text,
            3 if self.is_inside(2, "set") && closed.name == "setName" => self.set.name = text,
            3 if self.is_inside(2, "header") => self.close_header_field(&closed.name, text),
            4 if self.is_inside(3, "header") => self.close_header_field(&closed.name, text),
            _ if self.is_inside(3, "setDescription") => {
                if !text.value.is_empty() {
                    if !self.set.description.value.is_empty() {
                        self.set.description.push(" ", TEXT_BYTES_MAX);
                    }
                    self.set.description.push(&text.value, TEXT_BYTES_MAX);
                }
            }
            _ if text.value.is_empty() => {}
            _ => match closed.field {
                Some(CoreField::Title) if self.record.title.is_none() => self.record.title = Some(text),
                Some(CoreField::Creator) if self.record.creators.len() < CREATORS_MAX => {
                    self.record.creators.push(text);
                }
                _ => {}
            },
        }
    }

    fn close_content(&mut self, name: &str, text: Text) {
        match (name, &mut self.page.content) {
            ("responseDate", _) => self.page.response_date = text.value,
            ("error", OaiContent::Errors(errors)) => {
                if let Some(error) = errors.last_mut() {
                    error.text = text;
                }
            }
            _ => {}
        }
    }

    fn close_item(&mut self, name: &str, text: Text, end: usize) {
        let is_get_record = self.is_inside(1, "GetRecord");
        match &mut self.page.content {
            OaiContent::Identify(_) if name == "description" => self.close_description(end),
            OaiContent::Identify(facts) if facts.facts.len() < FACTS_MAX => {
                facts.facts.push((name.to_owned(), text));
            }
            OaiContent::Formats(formats) if name == "metadataFormat" && formats.len() < ITEMS_MAX => {
                formats.push(std::mem::take(&mut self.format));
            }
            OaiContent::Sets(list) if name == "set" => add(list, std::mem::take(&mut self.set)),
            OaiContent::Records(list) if matches!(name, "record" | "header") => {
                add(list, std::mem::take(&mut self.record));
            }
            OaiContent::Sets(ItemList { token: Some(token), .. })
            | OaiContent::Records(ItemList { token: Some(token), .. })
                if name == "resumptionToken" =>
            {
                token.value = text;
            }
            OaiContent::Nothing if is_get_record && name == "record" => {
                let xml = self.section(end);
                let document = RecordDocument::read(&xml).ok();
                self.page.content = OaiContent::Record { xml, document };
            }
            _ => {}
        }
    }

    fn close_header_field(&mut self, name: &str, text: Text) {
        match name {
            "identifier" => self.record.identifier = text,
            "datestamp" => self.record.datestamp = text,
            "setSpec" if self.record.set_specs.len() < SET_SPECS_MAX => self.record.set_specs.push(text),
            _ => {}
        }
    }

    fn close_description(&mut self, end: usize) {
        self.descriptions_count += 1;
        if self.descriptions_count > FACTS_MAX {
            return;
        }
        let record = format!("<record><about>{}</about></record>", self.section(end));
        // A description that cannot be read is in the XML.
        let Ok(document) = RecordDocument::read(&record) else { return };
        if let OaiContent::Identify(facts) = &mut self.page.content {
            facts.descriptions.extend(document.about);
        }
    }

    /// The section that ends here, with declarations of its namespaces.
    fn section(&mut self, end: usize) -> String {
        let head = self.xml.get(..self.section_start).unwrap_or_default();
        let section = self.xml.get(self.section_start..end).unwrap_or_default();
        let scope = self.scope.get_or_insert_with(|| NamespaceScope::parse(head));
        scope.rebase(section, &NamespaceScope::default())
    }
}

fn add<T>(list: &mut ItemList<T>, item: T) {
    if list.items.len() < ITEMS_MAX {
        list.items.push(item);
    } else {
        list.left_out_items += 1;
    }
}

fn is_deleted(header: StartTag<'_>) -> Result<bool, XmlError> {
    Ok(header.attribute("status")?.is_some_and(|status| status.trim() == "deleted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(content: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><responseDate>2024-05-06T07:08:09Z</responseDate>\
             <request>http://e.org/x</request>{content}</OAI-PMH>"
        )
    }

    #[track_caller]
    fn content(content: &str) -> OaiContent {
        let page = OaiPage::read(response(content).as_bytes()).expect("it is well-formed");
        assert_eq!(page.response_date, "2024-05-06T07:08:09Z");
        page.content
    }

    fn text(value: &str) -> Text {
        Text { value: value.to_owned(), ..Text::default() }
    }

    #[track_caller]
    fn records(list: &str) -> ItemList<RecordItem> {
        match content(list) {
            OaiContent::Records(list) => list,
            other => panic!("{other:?}"),
        }
    }

    const DC: &str = "xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:oai_dc='urn:x'";

    #[test]
    fn lists_of_records_have_headers_titles_and_creators() {
        let list = records(&format!(
            "<ListRecords><record><header><identifier> a&amp;b </identifier><datestamp>2024</datestamp><setSpec>s</setSpec>\
             <setSpec>t:u</setSpec></header><metadata><oai_dc:dc {DC} xml:lang='ar'><dc:creator>C</dc:creator>\
             <dc:title>A <![CDATA[<b>]]></dc:title><dc:title>Second</dc:title></oai_dc:dc></metadata></record>\
             <record><header status='deleted'><identifier>c</identifier><datestamp>2025</datestamp></header></record>\
             <record><header><identifier>d</identifier></header><metadata><x xmlns='urn:x'><title>No</title></x></metadata>\
             <about><dc:title {DC}>about</dc:title></about></record>\
             <resumptionToken cursor='0' completeListSize='30'>t&lt;1</resumptionToken></ListRecords>"
        ));
        let identifiers: Vec<_> = list.items.iter().map(|item| item.identifier.value.as_str()).collect();
        assert_eq!((identifiers, list.left_out_items), (vec!["a&b", "c", "d"], 0));
        let first = list.items.first().expect("an item");
        assert_eq!(first.set_specs, [text("s"), text("t:u")]);
        let arabic = |value: &str| Text { language: Some("ar".into()), ..text(value) };
        assert_eq!(first.title, Some(arabic("A <b>")));
        assert_eq!(first.creators, [arabic("C")]);
        let deleted: Vec<bool> = list.items.iter().map(|item| item.is_deleted).collect();
        assert_eq!(deleted, [false, true, false]);
        let token = ListToken { value: text("t<1"), cursor: Some(0), complete_list_size: Some(30) };
        assert_eq!(list.token, Some(token));
    }

    #[test]
    fn lists_of_identifiers_are_records_without_titles() {
        let list = records(
            "<ListIdentifiers><header status='deleted'><identifier>a</identifier><datestamp>2024</datestamp>\
             <setSpec>s</setSpec></header><header><identifier>b</identifier></header><resumptionToken/></ListIdentifiers>",
        );
        let items: Vec<_> =
            list.items.iter().map(|item| (item.identifier.value.as_str(), item.is_deleted)).collect();
        assert_eq!(items, [("a", true), ("b", false)]);
        assert_eq!(list.token, Some(ListToken::default()));
    }

    #[test]
    fn identify_has_facts_and_descriptions() {
        let identify = content(
            "<Identify><repositoryName>R</repositoryName><adminEmail>a</adminEmail><adminEmail>b</adminEmail>\
             <description><o:o xmlns:o='urn:o'><o:scheme>oai</o:scheme></o:o></description>\
             <description><p xsi:a='1'>x</p></description></Identify>",
        );
        let OaiContent::Identify(facts) = identify else { panic!("{identify:?}") };
        let named: Vec<_> =
            facts.facts.iter().map(|(name, text)| (name.as_str(), text.value.as_str())).collect();
        assert_eq!(named, [("repositoryName", "R"), ("adminEmail", "a"), ("adminEmail", "b")]);
        let fields: Vec<_> = facts
            .descriptions
            .iter()
            .map(|field| (field.qualified_name(), field.text.value.as_str()))
            .collect();
        assert_eq!(
            fields,
            [
                ("description".into(), ""),
                ("o:o".into(), ""),
                ("o:scheme".into(), "oai"),
                ("description".into(), ""),
                ("p".into(), "x"),
            ]
        );
    }

    #[test]
    fn formats_sets_and_errors_are_read() {
        let formats = content(
            "<ListMetadataFormats><metadataFormat><metadataPrefix>p</metadataPrefix><schema>s</schema>\
             <metadataNamespace>n</metadataNamespace></metadataFormat></ListMetadataFormats>",
        );
        let format = MetadataFormat { prefix: text("p"), schema: text("s"), namespace: text("n") };
        assert_eq!(formats, OaiContent::Formats(vec![format]));
        let sets = content(
            "<ListSets><set><setSpec>a:b</setSpec><setName>A</setName><setDescription><x xmlns='urn:x'><y>One</y> <y>two</y>\
             </x></setDescription></set><resumptionToken>t</resumptionToken></ListSets>",
        );
        let set = SetItem { spec: text("a:b"), name: text("A"), description: text("One two") };
        let token = Some(ListToken { value: text("t"), ..ListToken::default() });
        assert_eq!(sets, OaiContent::Sets(ItemList { items: vec![set], left_out_items: 0, token }));
        let errors = content("<error code='badVerb'>no</error><error code='&lt;'/>");
        let error = |code: &str, value: &str| OaiError { code: code.into(), text: text(value) };
        assert_eq!(errors, OaiContent::Errors(vec![error("badVerb", "no"), error("<", "")]));
    }

    #[test]
    fn a_record_has_its_namespaces() {
        let record =
            content("<GetRecord><record><header/><metadata><a xsi:b='c'/></metadata></record></GetRecord>");
        let OaiContent::Record { xml, document } = record else { panic!("{record:?}") };
        assert!(
            xml.starts_with("<record xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi="),
            "{xml}"
        );
        assert_eq!(document.map(|document| document.metadata.len()), Some(1));
    }

    #[test]
    fn the_start_of_a_response_has_its_complete_items() {
        let item = |number: usize| format!("<header><identifier>é{number}</identifier></header>");
        let whole = response(&format!(
            "<ListIdentifiers>{}{}<resumptionToken>t</resumptionToken></ListIdentifiers>",
            item(0),
            item(1)
        ));
        let mut seen = Vec::new();
        for end in 0..whole.len() {
            let start = whole.as_bytes().get(..end).expect("it is inside");
            assert!(OaiPage::read(start).is_err(), "{end}");
            let OaiContent::Records(list) = OaiPage::read_start(start).content else { continue };
            assert!(list.items.iter().all(|item| item.identifier.value.starts_with('é')), "{end}");
            seen.push(list.items.len());
        }
        seen.dedup();
        assert_eq!(seen, [0, 1, 2]);
        assert_eq!(OaiPage::read_start(b"").content, OaiContent::Nothing);
        assert_eq!(OaiPage::read_start(b"<html>").content, OaiContent::Nothing);
    }

    #[test]
    fn other_documents_are_refused() {
        for xml in
            ["", "<html/>", "<OAI-PMH>&x;</OAI-PMH>", "<!DOCTYPE a><OAI-PMH/>", "<OAI-PMH></a>", "\u{fffe}"]
        {
            assert!(OaiPage::read(xml.as_bytes()).is_err(), "{xml}");
        }
        assert!(OaiPage::read(b"<OAI-PMH>\xFF</OAI-PMH>").is_err());
    }

    #[test]
    fn long_lists_and_texts_are_shortened_and_counted() {
        let list = records(&format!(
            "<ListIdentifiers>{}</ListIdentifiers>",
            "<header><identifier>a</identifier></header>".repeat(ITEMS_MAX + 7)
        ));
        assert_eq!((list.items.len(), list.left_out_items), (ITEMS_MAX, 7));
        let long = "x".repeat(TEXT_BYTES_MAX + 9);
        let list = records(&format!(
            "<ListIdentifiers><header><identifier>{long}</identifier></header></ListIdentifiers>"
        ));
        assert_eq!(list.items.first().map(|item| item.identifier.left_out_bytes), Some(9));
    }
}
