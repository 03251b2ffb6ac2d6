//! A record of the wrapped repository, as conversions read it.

use crate::unconverted::Unconverted;
use oaimend_record::{RecordDocument, WorkDescription};
use oaimend_repository::rebase_namespaces::{NamespaceScope, OAI, XSI};
use oaimend_repository::xml::XmlEvent;
use oaimend_repository::{DeliveredRecord, RecordView};
use std::ops::Range;

/// A record with metadata, in a format of the wrapped repository.
#[derive(Debug)]
pub struct SourceRecord<'r> {
    /// The identifier in its header, with references resolved.
    pub identifier: &'r str,
    /// The datestamp in its header.
    pub datestamp: &'r str,
    /// Its format.
    pub prefix: &'r str,
    view: RecordView<'r>,
    /// The place of the content of `metadata`.
    content: Range<usize>,
}

impl<'r> SourceRecord<'r> {
    /// Finds the parts of a record in this format.
    ///
    /// # Errors
    ///
    /// It is no record element with metadata.
    pub fn read(record: &'r DeliveredRecord, prefix: &'r str) -> Result<Self, Unconverted> {
        let view = RecordView::read(&record.xml).ok_or(Unconverted::Unreadable)?;
        let content = content_of(&view).ok_or(Unconverted::Unreadable)?;
        Ok(Self { identifier: &record.identifier, datestamp: &record.datestamp, prefix, view, content })
    }

    /// The elements of the metadata.
    ///
    /// # Errors
    ///
    /// They cannot be read, or they are too many or too long: a text that is cut would be a wrong claim.
    pub fn document(&self) -> Result<RecordDocument, Unconverted> {
        let document =
            RecordDocument::read_for_conversion(&self.view).map_err(|_| Unconverted::Unreadable)?;
        if !document.is_whole() {
            return Err(Unconverted::TooLong);
        }
        let (identifier, datestamp) = (self.identifier.to_owned(), self.datestamp.to_owned());
        Ok(RecordDocument { identifier, datestamp, ..document })
    }

    /// What the metadata says of the work, without its links.
    ///
    /// # Errors
    ///
    /// Those of [`SourceRecord::document`]; and the format has no crosswalk, or the record has no texts.
    pub fn work(&self) -> Result<WorkDescription, Unconverted> {
        let work = WorkDescription::without_links(&self.document()?);
        if work.core.is_empty() { Err(Unconverted::NothingRead) } else { Ok(work) }
    }

    /// The same with its links.
    ///
    /// # Errors
    ///
    /// Those of [`SourceRecord::work`].
    pub fn work_with_links(&self) -> Result<WorkDescription, Unconverted> {
        let work = WorkDescription::of(&self.document()?);
        if work.core.is_empty() { Err(Unconverted::NothingRead) } else { Ok(work) }
    }

    /// The element inside `metadata`, with declarations for all namespaces that it needs but `xsi`, which the elements of
    /// all formats declare.
    ///
    /// # Errors
    ///
    /// There is no element.
    pub fn payload(&self) -> Result<String, Unconverted> {
        self.payload_in(&NamespaceScope::new([("xsi", XSI)].into_iter()))
    }

    /// The same element with declarations for all namespaces that it needs.
    ///
    /// # Errors
    ///
    /// There is no element.
    pub fn standalone_payload(&self) -> Result<String, Unconverted> {
        self.payload_in(&NamespaceScope::new(std::iter::empty()))
    }

    /// The element with the declarations that this scope lacks.
    fn payload_in(&self, scope: &NamespaceScope) -> Result<String, Unconverted> {
        let text = self.view.text();
        let mut reader = self.view.content();
        let start = loop {
            match reader.read() {
                Ok(Some(XmlEvent::Start(_))) if reader.depth() == 2 => break reader.span().start,
                Ok(Some(XmlEvent::End(_))) if reader.depth() <= 1 => return Err(Unconverted::Unreadable),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return Err(Unconverted::Unreadable),
            }
        };
        let around = text.get(..start).unwrap_or_default();
        let around = NamespaceScope::parse(&format!("<r xmlns=\"{OAI}\" xmlns:xsi=\"{XSI}\">{around}"));
        let payload = text.get(start..self.content.end).unwrap_or_default().trim_end();
        Ok(around.rebase(payload, scope))
    }

    /// The record with another content of `metadata`.
    pub(crate) fn with_content(&self, content: &str) -> String {
        let text = self.view.text();
        let before = text.get(..self.content.start).unwrap_or_default();
        let after = text.get(self.content.end..).unwrap_or_default();
        [before, content, after].concat()
    }
}

/// The place of the content of `metadata`; `None` without such an element.
fn content_of(view: &RecordView<'_>) -> Option<Range<usize>> {
    let text = view.text();
    let mut reader = view.content();
    let start = loop {
        match reader.read().ok()?? {
            XmlEvent::Start(tag) if tag.local_name() == "metadata" && !tag.is_empty() => {
                break reader.span().end;
            }
            XmlEvent::Start(_) | XmlEvent::End(_) => return None,
            _ => {}
        }
    };
    // Most records have nothing after their metadata, so their content need not be read to find its end.
    let before_end = text.get(start..view.end())?.trim_ascii_end();
    if let Some(at) = before_end.rfind("</")
        && before_end.get(at..)? == format!("</{}metadata>", view.root().prefix())
    {
        return Some(start..start + at);
    }
    loop {
        if let XmlEvent::End(_) = reader.read().ok()??
            && reader.depth() == 1
        {
            return Some(start..reader.span().start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(xml: &str) -> DeliveredRecord {
        DeliveredRecord {
            identifier: "oai:x:1".to_owned(),
            datestamp: "2024-05-06".to_owned(),
            deleted: false,
            set_specs: Vec::new(),
            xml: xml.to_owned(),
            datestamp_at: 0..0,
            repairs: oaimend_store::RecordRepairs::default(),
        }
    }

    #[test]
    fn only_the_content_of_the_metadata_is_replaced() {
        for (before, payload, after) in [
            ("<record><header></header><metadata>", "<a/>", "</metadata></record>"),
            ("<record><header></header>\n<metadata>", " <a>b</a> ", "</metadata>\n</record>"),
            (
                "<o:record xmlns:o='urn:o'><o:header></o:header><o:metadata>",
                "<a/>",
                "</o:metadata></o:record>",
            ),
            (
                "<record><header></header><metadata>",
                "<metadata><![CDATA[</metadata></record>]]></metadata>",
                "</metadata><about><metadata></metadata></about></record>",
            ),
            ("<record><header></header><metadata>", "<a/>", "</metadata ><about><a/></about></record>"),
            ("<record><header></header><metadata>", "<a/>", "</metadata><!-- </metadata>--></record>"),
        ] {
            let record = delivered(&[before, payload, after].concat());
            let source = SourceRecord::read(&record, "x").expect("a record");
            assert_eq!(source.with_content("<b/>"), [before, "<b/>", after].concat());
        }
        for xml in [
            "<record><header></header></record>",
            "<record><header></header><metadata/></record>",
            "<record><header></header><about><a/></about></record>",
            "<record><header></header><metadata><a></metadata></record>",
            "<header></header>",
        ] {
            let record = delivered(xml);
            let read = SourceRecord::read(&record, "x").and_then(|source| source.document());
            assert!(read.is_err(), "{xml}");
        }
    }

    #[test]
    fn a_payload_keeps_its_namespaces() {
        let record = delivered(
            "<record xmlns:p='urn:p' xmlns:q='urn:q'><header></header><metadata xmlns:q='urn:r'> <!-- <x> --> \
             <p:a xmlns:s='urn:s' xsi:type='p:b'><q:b/><c/></p:a></metadata></record>",
        );
        let payload = SourceRecord::read(&record, "x").expect("a record").payload().expect("an element");
        for declaration in
            ["xmlns:p=\"urn:p\"", "xmlns:q=\"urn:r\"", "xmlns:s='urn:s'", &format!("xmlns=\"{OAI}\"")]
        {
            assert!(payload.contains(declaration), "{declaration} {payload}");
        }
        assert!(!payload.contains("xmlns:xsi"), "{payload}");
        assert!(payload.starts_with("<p:a ") && payload.ends_with("</p:a>"), "{payload}");
        let empty = delivered("<record><header></header><metadata> text </metadata></record>");
        let empty = SourceRecord::read(&empty, "x").expect("a record").payload();
        assert_eq!(empty, Err(Unconverted::Unreadable));
    }
}
