//! Writes the metadata of converted records.

use oaimend_oai::escape;
use oaimend_record::Text;
use oaimend_repository::rebase_namespaces::XSI;

/// Writes one element with its content. All characters are legal in XML, and every element that is opened is closed.
#[derive(Debug)]
pub(crate) struct XmlWriter {
    xml: String,
}

/// A guess of the bytes of the metadata of a record.
const METADATA_BYTES: usize = 4 << 10;

/// Attributes: their names and values.
pub(crate) type Attributes<'a> = &'a [(&'a str, &'a str)];

/// The root of a format.
pub(crate) struct Root<'a> {
    /// The name with its prefix, if it has one.
    pub(crate) name: &'static str,
    /// Prefixes with their namespaces, the empty one for the default namespace.
    pub(crate) namespaces: Attributes<'a>,
    /// Namespaces with the URLs of their schemas.
    pub(crate) schemas: Attributes<'a>,
    /// Other attributes.
    pub(crate) attributes: Attributes<'a>,
}

impl Root<'_> {
    /// The element with this content.
    pub(crate) fn write(&self, content: impl FnOnce(&mut XmlWriter)) -> String {
        let mut writer = XmlWriter { xml: String::with_capacity(METADATA_BYTES) };
        self.write_into(&mut writer, content);
        writer.xml
    }

    /// Writes the element with this content into another one.
    pub(crate) fn write_into(&self, writer: &mut XmlWriter, content: impl FnOnce(&mut XmlWriter)) {
        writer.xml.push('<');
        writer.xml.push_str(self.name);
        for (prefix, namespace) in self.namespaces.iter().chain(&[("xsi", XSI)]) {
            let colon = if prefix.is_empty() { "" } else { ":" };
            writer.attribute(&["xmlns", colon, prefix], namespace);
        }
        writer.xml.push_str(" xsi:schemaLocation=\"");
        for (number, (namespace, url)) in self.schemas.iter().enumerate() {
            writer.xml.push_str(if number == 0 { "" } else { " " });
            escape(namespace, &mut writer.xml);
            writer.xml.push(' ');
            escape(url, &mut writer.xml);
        }
        writer.xml.push('"');
        for (name, value) in self.attributes {
            writer.attribute(&[name], value);
        }
        writer.xml.push('>');
        content(writer);
        writer.end(self.name);
    }
}

impl XmlWriter {
    /// Writes an element with this content.
    pub(crate) fn element(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        content: impl FnOnce(&mut Self),
    ) {
        self.xml.push('<');
        self.xml.push_str(name);
        for (name, value) in attributes {
            self.attribute(&[name], value);
        }
        self.xml.push('>');
        content(self);
        self.end(name);
    }

    /// Writes an element with this text.
    pub(crate) fn leaf(&mut self, name: &'static str, attributes: Attributes<'_>, text: &str) {
        self.element(name, attributes, |writer| writer.characters(text));
    }

    /// Writes an element with a text of a record in its language.
    pub(crate) fn text(&mut self, name: &'static str, attributes: Attributes<'_>, text: &Text) {
        match &text.language {
            None => self.leaf(name, attributes, &text.value),
            Some(language) => {
                let attributes = [attributes, &[("xml:lang", language.as_str())]].concat();
                self.leaf(name, &attributes, &text.value);
            }
        }
    }

    /// Writes an element with the texts of a record; nothing if there are none.
    pub(crate) fn list(
        &mut self,
        name: &'static str,
        texts: &[Text],
        mut item: impl FnMut(&mut Self, &Text),
    ) {
        if !texts.is_empty() {
            self.element(name, &[], |writer| texts.iter().for_each(|text| item(writer, text)));
        }
    }

    /// Writes a text.
    pub(crate) fn characters(&mut self, text: &str) {
        escape(text, &mut self.xml);
    }

    /// Writes XML as it is. It must be well-formed, and declare its namespaces.
    pub(crate) fn xml(&mut self, xml: &str) {
        self.xml.push_str(xml);
    }

    fn attribute(&mut self, name: &[&str], value: &str) {
        self.xml.push(' ');
        name.iter().for_each(|part| self.xml.push_str(part));
        self.xml.push_str("=\"");
        escape(value, &mut self.xml);
        self.xml.push('"');
    }

    fn end(&mut self, name: &str) {
        self.xml.push_str("</");
        self.xml.push_str(name);
        self.xml.push('>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let root = Root {
            name: "a:b",
            namespaces: &[("", "urn:d"), ("a", "urn:a&")],
            schemas: &[("urn:d", "http://d"), ("urn:a&", "http://a")],
            attributes: &[("c", "\"<\n")],
        };
        let text =
            Text { value: "]]> & \u{1}\u{fffe}<é".into(), language: Some("de".into()), left_out_bytes: 0 };
        let xml = root.write(|xml| {
            xml.text("t", &[("k", "v")], &text);
            xml.list("none", &[], |_, _| {});
            xml.list("l", &[Text::default()], |xml, item| xml.text("i", &[], item));
        });
        assert_eq!(
            xml,
            format!(
                "<a:b xmlns=\"urn:d\" xmlns:a=\"urn:a&amp;\" xmlns:xsi=\"{XSI}\" xsi:schemaLocation=\"urn:d http://d \
                 urn:a&amp; http://a\" c=\"&quot;&lt;&#10;\"><t k=\"v\" xml:lang=\"de\">]]&gt; &amp; \
                 \u{fffd}\u{fffd}&lt;é</t><l><i></i></l></a:b>"
            )
        );
    }
}
