//! Reads the XML of a stored record into a list of its elements.

use crate::language::language_tag;
use crate::limits::{
    ATTRIBUTE_BYTES_MAX, ATTRIBUTES_MAX, CONVERTED_BYTES_MAX, CONVERTED_FIELDS_MAX,
    CONVERTED_VALUE_BYTES_MAX, FIELDS_BYTES_MAX, FIELDS_MAX, VALUE_BYTES_MAX, shorten,
};
use crate::text::Text;
use oaimend_repository::RecordView;
use oaimend_repository::xml::{NamespaceReader, StartTag, XmlError, XmlEvent, XmlReader, declared_prefix};
use std::sync::Arc;

/// The elements of a record.
///
/// At most 10,000 elements with 512 KiB of text are kept, at most 16 KiB of each text. The rest is counted.
/// [`RecordDocument::read_for_conversion`] keeps more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordDocument {
    /// The identifier in the header.
    pub identifier: String,
    /// The datestamp in the header, as written.
    pub datestamp: String,
    /// The setSpecs in the header.
    pub set_specs: Vec<String>,
    /// Whether the header says that the record is deleted.
    pub is_deleted: bool,
    /// The elements inside `metadata`, in the order of their start tags.
    pub metadata: Vec<Field>,
    /// The elements inside all `about` elements.
    pub about: Vec<Field>,
    /// The number of elements that are not in `metadata` and `about`.
    pub left_out_fields: usize,
}

/// An element of a record, without its child elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The namespace; empty for none. Elements after each other share it.
    pub namespace: Arc<str>,
    /// The prefix in the record; empty for the default namespace. Elements after each other share it.
    pub prefix: Arc<str>,
    /// The name without its prefix.
    pub name: String,
    /// The number of elements around it, up to the element inside `metadata`, which has depth 0.
    pub depth: usize,
    /// The attributes, without namespace declarations. At most 32.
    pub attributes: Vec<FieldAttribute>,
    /// The text of the element, without the text of its child elements.
    pub text: Text,
}

/// An attribute of an element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldAttribute {
    /// The name with its prefix, as written.
    pub name: String,
    /// The value, at most 1 KiB.
    pub value: String,
    /// The number of bytes that `value` leaves out.
    pub left_out_bytes: usize,
}

/// Why a record cannot be read: its XML is not well-formed, or it is not a `record` element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored record cannot be read: {0}")]
pub struct UnreadableRecord(String);

impl From<XmlError> for UnreadableRecord {
    fn from(error: XmlError) -> Self {
        Self(error.to_string())
    }
}

impl RecordDocument {
    /// Reads a document with a record: one `record` element that declares its namespaces.
    ///
    /// # Errors
    ///
    /// The XML is not well-formed, or its root is not a `record`.
    pub fn read(xml: &str) -> Result<Self, UnreadableRecord> {
        Building::default().read(NamespaceReader::new(XmlReader::new(xml)))
    }

    /// Reads what follows the header of a stored record. The fields of the header stay empty.
    ///
    /// # Errors
    ///
    /// The record is not well-formed.
    pub fn read_content(record: &RecordView<'_>) -> Result<Self, UnreadableRecord> {
        Building::after_header(KeptMax::default()).read(record.content_with_namespaces()?)
    }

    /// The same for a record that becomes a record in another format: at most 50,000 elements with 4 MiB of text, at most
    /// 1 MiB of each text. [`RecordDocument::is_whole`] says whether this was enough.
    ///
    /// # Errors
    ///
    /// The record is not well-formed.
    pub fn read_for_conversion(record: &RecordView<'_>) -> Result<Self, UnreadableRecord> {
        let kept = KeptMax {
            fields: CONVERTED_FIELDS_MAX,
            value_bytes: CONVERTED_VALUE_BYTES_MAX,
            all_bytes: CONVERTED_BYTES_MAX,
        };
        Building::after_header(kept).read(record.content_with_namespaces()?)
    }

    /// Whether no element and no text of the metadata was left out.
    pub fn is_whole(&self) -> bool {
        self.left_out_fields == 0 && self.metadata.iter().all(|field| field.text.left_out_bytes == 0)
    }

    /// The element inside `metadata`.
    pub fn payload(&self) -> Option<&Field> {
        self.metadata.first()
    }
}

impl Field {
    /// The name with its prefix, as written.
    pub fn qualified_name(&self) -> String {
        if self.prefix.is_empty() { self.name.clone() } else { [&self.prefix, ":", &self.name].concat() }
    }
}

/// The part of the record that contains an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    Header,
    Metadata,
    About,
    #[default]
    Other,
}

/// The limits of the texts and elements of a record that are kept.
#[derive(Clone, Copy, Debug)]
struct KeptMax {
    /// Maximum number of elements.
    fields: usize,
    /// Longest text, in bytes.
    value_bytes: usize,
    /// Longest sum of all texts and attributes, in bytes.
    all_bytes: usize,
}

impl Default for KeptMax {
    fn default() -> Self {
        Self { fields: FIELDS_MAX, value_bytes: VALUE_BYTES_MAX, all_bytes: FIELDS_BYTES_MAX }
    }
}

/// The document up to the current event.
#[derive(Debug, Default)]
struct Building<'x> {
    max: KeptMax,
    document: RecordDocument,
    open: Vec<OpenElement<'x>>,
    section: Section,
    /// The text of the innermost element of the header.
    header_text: Text,
    /// The sum of all kept texts, in bytes.
    kept_bytes: usize,
    is_record: bool,
}

#[derive(Debug)]
struct OpenElement<'x> {
    name: &'x str,
    /// Its index in the fields of its section; `None` if it is not kept.
    field: Option<usize>,
    language: Option<String>,
}

impl<'x> Building<'x> {
    /// Inside the record element, after its header.
    fn after_header(max: KeptMax) -> Self {
        let root = OpenElement { name: "record", field: None, language: None };
        Self { max, open: vec![root], is_record: true, ..Self::default() }
    }

    fn read(mut self, mut reader: NamespaceReader<'x>) -> Result<RecordDocument, UnreadableRecord> {
        while let Some(event) = reader.read()? {
            match event {
                XmlEvent::Start(tag) => self.open(&reader, tag)?,
                XmlEvent::End(_) => self.close(),
                XmlEvent::Text(text) => self.add(&text.resolve()?),
                XmlEvent::Doctype => return Err(UnreadableRecord("a document type declaration".to_owned())),
                XmlEvent::Other => {}
            }
        }
        self.finish()
    }

    fn open(&mut self, reader: &NamespaceReader<'x>, tag: StartTag<'x>) -> Result<(), UnreadableRecord> {
        let name = tag.local_name();
        match self.open.len() {
            0 if name == "record" && !self.is_record => self.is_record = true,
            0 => return Err(UnreadableRecord(format!("<{name}> is not a single record element"))),
            1 => {
                self.section = match name {
                    "header" => Section::Header,
                    "metadata" => Section::Metadata,
                    "about" => Section::About,
                    _ => Section::Other,
                };
                self.document.is_deleted |=
                    self.section == Section::Header && tag.attribute("status")?.as_deref() == Some("deleted");
            }
            2 if self.section == Section::Header => self.header_text = Text::default(),
            _ => {}
        }
        let mut opened = OpenElement { name, field: None, language: self.language() };
        if self.open.len() >= 2 && matches!(self.section, Section::Metadata | Section::About) {
            self.open_field(reader, tag, &mut opened)?;
        }
        self.open.push(opened);
        Ok(())
    }

    fn language(&self) -> Option<String> {
        self.open.last().and_then(|parent| parent.language.clone())
    }

    fn open_field(
        &mut self,
        reader: &NamespaceReader<'x>,
        tag: StartTag<'x>,
        opened: &mut OpenElement<'x>,
    ) -> Result<(), UnreadableRecord> {
        let fields_count = self.document.metadata.len() + self.document.about.len();
        if fields_count >= self.max.fields || self.kept_bytes >= self.max.all_bytes {
            self.document.left_out_fields += 1;
            return Ok(());
        }
        let before = self.fields().last();
        let mut field = Field {
            namespace: shared(reader.namespace(tag)?, before.map(|field| &field.namespace)),
            prefix: shared(tag.prefix().trim_end_matches(':'), before.map(|field| &field.prefix)),
            name: opened.name.to_owned(),
            depth: self.open.len() - 2,
            attributes: Vec::new(),
            text: Text::default(),
        };
        for attribute in tag.attributes() {
            let (name, value) = attribute?;
            if name == "xml:lang" {
                opened.language = language_tag(&value);
            }
            if declared_prefix(name).is_none() && field.attributes.len() < ATTRIBUTES_MAX {
                let (kept, left_out_bytes) = shorten(&value, ATTRIBUTE_BYTES_MAX);
                self.kept_bytes += name.len() + kept.len();
                field.attributes.push(FieldAttribute {
                    name: name.to_owned(),
                    value: kept.to_owned(),
                    left_out_bytes,
                });
            }
        }
        field.text.language.clone_from(&opened.language);
        self.kept_bytes += field.namespace.len() + field.name.len();
        let fields = self.fields();
        fields.push(field);
        opened.field = Some(fields.len() - 1);
        Ok(())
    }

    fn fields(&mut self) -> &mut Vec<Field> {
        match self.section {
            Section::About => &mut self.document.about,
            _ => &mut self.document.metadata,
        }
    }

    fn add(&mut self, characters: &str) {
        let space = self.max.all_bytes.saturating_sub(self.kept_bytes);
        let value_bytes_max = self.max.value_bytes;
        match self.section {
            Section::Header if self.open.len() == 3 => self.header_text.push(characters, VALUE_BYTES_MAX),
            Section::Metadata | Section::About => {
                let Some(index) = self.open.last().and_then(|open| open.field) else { return };
                let Some(field) = self.fields().get_mut(index) else { return };
                let before = field.text.value.len();
                field.text.push(characters, value_bytes_max.min(before + space));
                let kept = field.text.value.len() - before;
                self.kept_bytes += kept;
            }
            _ => {}
        }
    }

    fn close(&mut self) {
        let Some(closed) = self.open.pop() else { return };
        match (self.section, self.open.len()) {
            (Section::Header, 2) => {
                self.header_text.trim();
                let value = std::mem::take(&mut self.header_text.value);
                match closed.name {
                    "identifier" => self.document.identifier = value,
                    "datestamp" => self.document.datestamp = value,
                    "setSpec" => self.document.set_specs.push(value),
                    _ => {}
                }
            }
            (_, 1) => self.section = Section::Other,
            _ => {
                if let Some(field) = closed.field.and_then(|index| self.fields().get_mut(index)) {
                    field.text.trim();
                }
            }
        }
    }

    fn finish(self) -> Result<RecordDocument, UnreadableRecord> {
        match self.open.last() {
            Some(open) => Err(UnreadableRecord(format!("it ends within <{}>", open.name))),
            None if self.is_record => Ok(self.document),
            None => Err(UnreadableRecord("no element".to_owned())),
        }
    }
}

/// The text of the element before, if it is the same.
fn shared(text: &str, before: Option<&Arc<str>>) -> Arc<str> {
    before.filter(|before| &***before == text).map_or_else(|| text.into(), Arc::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(metadata: &str) -> RecordDocument {
        let xml = format!(
            "<o:record xmlns:o='http://www.openarchives.org/OAI/2.0/'><o:header><o:identifier>oai:x:1</o:identifier>\
             <o:datestamp>2024-05-06</o:datestamp><o:setSpec>a:b</o:setSpec><o:setSpec>c</o:setSpec></o:header>\
             <o:metadata>{metadata}</o:metadata></o:record>"
        );
        RecordDocument::read(&xml).expect("the record is well-formed")
    }

    fn names(fields: &[Field]) -> Vec<(usize, String, &str)> {
        fields.iter().map(|field| (field.depth, field.qualified_name(), field.text.value.as_str())).collect()
    }

    #[test]
    fn the_header_is_read_with_any_prefix() {
        let document = record("");
        assert_eq!((document.identifier.as_str(), document.datestamp.as_str()), ("oai:x:1", "2024-05-06"));
        assert_eq!(
            (document.set_specs, document.is_deleted),
            (vec!["a:b".to_owned(), "c".to_owned()], false)
        );
        let deleted =
            "<record><header status=\"deleted\"><identifier>\n a&amp;b </identifier></header></record>";
        let deleted = RecordDocument::read(deleted).expect("the record is well-formed");
        assert_eq!((deleted.identifier.as_str(), deleted.is_deleted), ("a&b", true));
    }

    #[test]
    fn the_elements_of_any_format_are_in_order() {
        let document = record(
            "<m:r xmlns:m='urn:m' version='1'><m:leader> 00 </m:leader><m:f tag='245'><m:s code='a'>A &lt;b&gt; \
             <![CDATA[<c>]]>&#x263a;</m:s></m:f>t<x xmlns='urn:x'>y</x> u</m:r>",
        );
        assert_eq!(
            names(&document.metadata),
            [
                (0, "m:r".into(), "t u"),
                (1, "m:leader".into(), "00"),
                (1, "m:f".into(), ""),
                (2, "m:s".into(), "A <b> <c>\u{263a}"),
                (1, "x".into(), "y"),
            ]
        );
        let namespaces: Vec<&str> = document.metadata.iter().map(|field| &*field.namespace).collect();
        assert_eq!(namespaces, ["urn:m", "urn:m", "urn:m", "urn:m", "urn:x"]);
        let attribute = FieldAttribute { name: "tag".into(), value: "245".into(), left_out_bytes: 0 };
        assert_eq!(document.metadata.get(2).map(|field| field.attributes.clone()), Some(vec![attribute]));
    }

    #[test]
    fn elements_share_only_the_same_namespaces_and_prefixes() {
        let document = record(
            "<p:a xmlns:p='urn:1' xmlns='urn:d'><p:b xmlns:p='urn:2'><p:c/></p:b><p:d>&amp;<!-- <x> --><![CDATA[<y>]]></p:d>\
             <q:e xmlns:q='urn:1'/><f><g xmlns=''/></f> t</p:a>",
        );
        let named = |field: &Field| (field.qualified_name(), field.namespace.to_string());
        let names: Vec<(String, String)> = document.metadata.iter().map(named).collect();
        let expected = [
            ("p:a", "urn:1"),
            ("p:b", "urn:2"),
            ("p:c", "urn:2"),
            ("p:d", "urn:1"),
            ("q:e", "urn:1"),
            ("f", "urn:d"),
            ("g", ""),
        ];
        assert_eq!(names, expected.map(|(name, namespace)| (name.to_owned(), namespace.to_owned())));
        let texts: Vec<&str> = document.metadata.iter().map(|field| field.text.value.as_str()).collect();
        assert_eq!(texts, ["t", "", "", "&<y>", "", "", ""]);
    }

    #[test]
    fn languages_are_inherited() {
        let document =
            record("<a xml:lang='ger'><b/><c xml:lang='fr'><d/></c><e xml:lang=''/><f xml:lang='\"x'/></a>");
        let languages: Vec<Option<&str>> =
            document.metadata.iter().map(|field| field.text.language.as_deref()).collect();
        assert_eq!(languages, [Some("de"), Some("de"), Some("fr"), Some("fr"), None, None]);
    }

    #[test]
    fn abouts_are_apart_from_the_metadata() {
        let xml = "<record><header/><metadata><a>1</a></metadata><about><b>2</b></about><about><c>3</c></about></record>";
        let document = RecordDocument::read(xml).expect("the record is well-formed");
        assert_eq!(names(&document.metadata), [(0, "a".into(), "1")]);
        assert_eq!(names(&document.about), [(0, "b".into(), "2"), (0, "c".into(), "3")]);
        assert_eq!(document.payload().map(|field| field.name.as_str()), Some("a"));
    }

    #[test]
    fn long_values_and_many_elements_are_shortened_and_counted() {
        let long = "é".repeat(VALUE_BYTES_MAX);
        let document = record(&format!("<a b='{long}'>{long}&amp;{long}</a>"));
        let field = document.payload().expect("an element");
        assert_eq!(
            (field.text.value.len(), field.text.left_out_bytes),
            (VALUE_BYTES_MAX, 3 * VALUE_BYTES_MAX + 1)
        );
        let attribute = field.attributes.first().expect("an attribute");
        assert_eq!(
            (attribute.value.len(), attribute.left_out_bytes),
            (ATTRIBUTE_BYTES_MAX, 31 * ATTRIBUTE_BYTES_MAX)
        );
        let many = record(&format!("<a>{}</a>", "<b/>".repeat(FIELDS_MAX)));
        assert_eq!((many.metadata.len(), many.left_out_fields), (FIELDS_MAX, 1));
    }

    #[test]
    fn a_record_of_5_mb_stays_in_its_limits() {
        let metadata = format!("<a>{}</a>", format!("<b>{}</b>", "x".repeat(10_000)).repeat(500));
        let document = record(&metadata);
        let kept: usize = document.metadata.iter().map(|field| field.text.value.len()).sum();
        assert!(kept <= FIELDS_BYTES_MAX, "{kept}");
        assert_eq!(document.metadata.len() + document.left_out_fields, 501);
        assert!(document.metadata.len() < 60, "{} fields", document.metadata.len());
        let many_attributes = (0..5_000).map(|number| format!(" a{number}='x'")).collect::<String>();
        assert_eq!(
            record(&format!("<a{many_attributes}/>")).metadata.first().map(|f| f.attributes.len()),
            Some(32)
        );
    }

    #[test]
    fn other_texts_are_unreadable() {
        for xml in [
            "",
            "text",
            "<html/>",
            "<record>",
            "<record/><record/>",
            "<record><metadata><a></b></metadata></record>",
            "<record><metadata><p:a/></metadata></record>",
            "<record><metadata><a>&nbsp;</a></metadata></record>",
            "<record><metadata><a b='1' b='2'/></metadata></record>",
            "<!DOCTYPE record [<!ENTITY a 'b'>]><record/>",
        ] {
            assert!(RecordDocument::read(xml).is_err(), "{xml}");
        }
    }
}
