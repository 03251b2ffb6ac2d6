//! A stored record, read once for all who show a part of it: views of the mirror, pages, titles and provenance.
//!
//! Most readers need only the header and copy the rest, so [`RecordView::read`] stops after the header. The readers of the
//! content continue from there.

use crate::rebase_namespaces::NamespaceScope;
use crate::xml::{NamespaceReader, StartTag, XmlError, XmlEvent, XmlReader};
use oaimend_oai::{UnixSecs, datestamp};
use std::ops::Range;

/// A `record` element with a header, as an item of a list of our own.
#[derive(Clone, Debug)]
pub struct RecordView<'r> {
    text: &'r str,
    root: StartTag<'r>,
    header: Range<usize>,
    identifier: Option<Range<usize>>,
    datestamp: Option<Range<usize>>,
    set_specs: Vec<Range<usize>>,
    /// The start of the end tag.
    end: usize,
    /// After the header.
    content: XmlReader<'r>,
}

impl<'r> RecordView<'r> {
    /// Reads a record up to the end of its header. `None` if it is not a record with a header and an end tag. What follows
    /// the header may be malformed.
    pub fn read(text: &'r str) -> Option<Self> {
        let mut reader = XmlReader::new(text);
        let (mut root, mut header_start, mut field_start) = (None, None, 0);
        let (mut identifier, mut datestamp, mut set_specs) = (None, None, Vec::new());
        loop {
            let event = reader.read().ok()??;
            let Range { start, end } = reader.span();
            match (event, reader.depth()) {
                (XmlEvent::Start(tag), 0) if tag.local_name() == "record" => root = Some(tag),
                (XmlEvent::Start(tag), 1) if tag.local_name() == "header" => header_start = Some(start),
                (XmlEvent::Start(_), 0 | 1) => return None,
                (XmlEvent::Start(_), 2) => field_start = end,
                (XmlEvent::End(tag), 2) => match tag.local_name() {
                    "identifier" => identifier = Some(field_start..start),
                    "datestamp" => datestamp = Some(field_start..start),
                    "setSpec" => set_specs.push(field_start..start),
                    _ => {}
                },
                (XmlEvent::End(_), 1) => {
                    let header = header_start?..end;
                    let end = text.rfind("</").filter(|&end| end >= header.end)?;
                    return Some(Self {
                        text,
                        root: root?,
                        header,
                        identifier,
                        datestamp,
                        set_specs,
                        end,
                        content: reader,
                    });
                }
                _ => {}
            }
        }
    }

    /// The record.
    pub const fn text(&self) -> &'r str {
        self.text
    }

    /// Its start tag.
    pub const fn root(&self) -> StartTag<'r> {
        self.root
    }

    /// The place of the header element.
    pub fn header(&self) -> Range<usize> {
        self.header.clone()
    }

    /// The place of the identifier in the header; `None` if it has none.
    pub fn identifier(&self) -> Option<Range<usize>> {
        self.identifier.clone()
    }

    /// The place of the datestamp in the header; `None` if it has none.
    pub fn datestamp(&self) -> Option<Range<usize>> {
        self.datestamp.clone()
    }

    /// The datestamp in the header, in seconds since 1970. `None` if it is not legal.
    pub fn datestamp_secs(&self) -> Option<UnixSecs> {
        datestamp::to_secs(self.text.get(self.datestamp()?)?.trim())
    }

    /// The setSpecs in the header, as written.
    pub fn set_specs(&self) -> impl Iterator<Item = &'r str> {
        self.set_specs.iter().filter_map(|place| Some(self.text.get(place.clone())?.trim()))
    }

    /// The start of the end tag of the record: the place of a further `about`.
    pub const fn end(&self) -> usize {
        self.end
    }

    /// Reads on after the header.
    pub fn content(&self) -> XmlReader<'r> {
        self.content.clone()
    }

    /// Reads on after the header, with the namespaces of the record and of a list of our own.
    ///
    /// # Errors
    ///
    /// Those of [`NamespaceReader::inside`].
    pub fn content_with_namespaces(&self) -> Result<NamespaceReader<'r>, XmlError> {
        NamespaceReader::inside(self.root, NamespaceScope::of_own_list().declarations(), self.content())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rebase_namespaces::{OAI, XSI};

    #[test]
    fn the_header_is_read_and_the_content_follows() {
        for (before, header) in [
            (
                "<record>",
                "<header><datestamp> 1970-01-02</datestamp><setSpec> a </setSpec><setSpec>b</setSpec></header>",
            ),
            (
                "<o:record a='>'>\n <!-- <header> --> ",
                "<o:header\n><x><![CDATA[</header>]]><setSpec/></x><o:setSpec>a</o:setSpec><o:datestamp>1970-01-02\
                 </o:datestamp><setSpec>b</setSpec></o:header >",
            ),
        ] {
            let prefix = if before.contains(':') { "o:" } else { "" };
            let text =
                format!("{before}{header}\n<{prefix}metadata><p:a/></{prefix}metadata></{prefix}record>");
            let view = RecordView::read(&text).expect("a record");
            assert_eq!((view.root().prefix(), text.get(view.header())), (prefix, Some(header)));
            assert_eq!(view.datestamp().and_then(|place| text.get(place)).map(str::trim), Some("1970-01-02"));
            assert_eq!(view.datestamp_secs(), Some(UnixSecs(86_400)));
            assert_eq!(view.set_specs().collect::<Vec<_>>(), ["a", "b"]);
            assert_eq!(text.get(view.end()..), Some(format!("</{prefix}record>").as_str()));
            let mut content = view.content();
            assert!(matches!(content.read(), Ok(Some(XmlEvent::Text(_)))));
            assert_eq!((content.span(), content.depth()), (view.header().end..view.header().end + 1, 1));
        }
    }

    #[test]
    fn the_content_is_in_the_namespaces_of_a_list() {
        let text = "<record xmlns:p='urn:p'><header></header><metadata/><p:a/><xsi:b/></record>";
        let view = RecordView::read(text).expect("a record");
        let mut content = view.content_with_namespaces().expect("legal declarations");
        let mut namespaces = Vec::new();
        while let Ok(Some(event)) = content.read() {
            if let XmlEvent::Start(tag) = event {
                namespaces.extend(content.namespace(tag).map(str::to_owned));
            }
        }
        assert_eq!(namespaces, [OAI, "urn:p", XSI]);
    }

    #[test]
    fn other_texts_are_no_records() {
        for text in [
            "",
            "text",
            "<record/>",
            "<record></record>",
            "<x><header></header></x>",
            "<record><header>",
            "<record><header></header>",
        ] {
            assert!(RecordView::read(text).is_none(), "{text}");
        }
    }
}
