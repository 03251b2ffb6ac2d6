//! The formats of the wrapped repository, and those that crosswalks add.

use crate::table::Crosswalk;
use oaimend_oai::{UnixSecs, escape};
use oaimend_repository::xml::{XmlEvent, XmlReader};
use oaimend_store::ListedFormat;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long the formats of a source are known before they are requested again, in seconds.
const FORMATS_SECS: i64 = 600;
/// Maximum number of formats of a repository.
const FORMATS_MAX: usize = 1_000;

/// The formats of sources, by the names of their repositories. Clones share them. Their number is that of the repositories.
#[derive(Clone, Debug, Default)]
pub struct FormatsCache(Arc<Mutex<HashMap<String, KnownFormats>>>);

/// Formats, and when they were read.
#[derive(Clone, Debug)]
struct KnownFormats {
    formats: Arc<[ListedFormat]>,
    read_secs: UnixSecs,
}

impl FormatsCache {
    /// The formats of a repository, if they are known and not too old.
    pub(super) fn find(&self, repository: &str, now_secs: UnixSecs) -> Option<Arc<[ListedFormat]>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(repository)?;
        let age_secs = now_secs.0 - found.read_secs.0;
        (0..FORMATS_SECS).contains(&age_secs).then(|| Arc::clone(&found.formats))
    }

    /// Notes the formats of a repository.
    pub(super) fn note(&self, repository: &str, formats: Arc<[ListedFormat]>, now_secs: UnixSecs) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(repository.to_owned(), KnownFormats { formats, read_secs: now_secs });
    }
}

/// The formats in a response to ListMetadataFormats. An error response has none.
pub(super) fn read_formats(response: &str) -> Vec<ListedFormat> {
    let mut reader = XmlReader::new(response);
    let (mut formats, mut format) = (Vec::new(), ListedFormat::default());
    let mut text = String::new();
    while let Ok(Some(event)) = reader.read() {
        match (event, reader.depth()) {
            (XmlEvent::Start(tag), 2) if tag.local_name() == "metadataFormat" => {
                format = ListedFormat::default()
            }
            (XmlEvent::Start(_), 3) => text.clear(),
            (XmlEvent::Text(part), 4) => text.push_str(&part.resolve().unwrap_or_default()),
            (XmlEvent::End(tag), 3) => {
                let value = text.trim().to_owned();
                match tag.local_name() {
                    "metadataPrefix" => format.prefix = value,
                    "schema" => format.schema = value,
                    "metadataNamespace" => format.namespace = value,
                    _ => {}
                }
            }
            (XmlEvent::End(tag), 2)
                if tag.local_name() == "metadataFormat" && formats.len() < FORMATS_MAX =>
            {
                formats.push(std::mem::take(&mut format));
            }
            _ => {}
        }
    }
    formats
}

/// The response to ListMetadataFormats with these formats at its end; unchanged if it is an error.
pub(super) fn with_formats(response: &str, added: &[&Crosswalk]) -> String {
    let mut reader = XmlReader::new(response);
    while let Ok(Some(event)) = reader.read() {
        if let (XmlEvent::End(tag), 1) = (event, reader.depth())
            && tag.local_name() == "ListMetadataFormats"
        {
            let at = reader.span().start;
            let (before, after) = response.split_at_checked(at).unwrap_or((response, ""));
            let mut xml = before.trim_ascii_end().to_owned();
            xml.push('\n');
            added.iter().for_each(|crosswalk| write_format(crosswalk, tag.prefix(), &mut xml));
            xml.push_str("  ");
            xml.push_str(after);
            return xml;
        }
    }
    response.to_owned()
}

fn write_format(crosswalk: &Crosswalk, prefix: &str, xml: &mut String) {
    xml.push_str(&format!("    <{prefix}metadataFormat>\n"));
    for (name, value) in [
        ("metadataPrefix", &crosswalk.prefix),
        ("schema", &crosswalk.schema),
        ("metadataNamespace", &crosswalk.namespace),
    ] {
        xml.push_str(&format!("      <{prefix}{name}>"));
        escape(value, xml);
        xml.push_str(&format!("</{prefix}{name}>\n"));
    }
    xml.push_str(&format!("    </{prefix}metadataFormat>\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::find_built_in;

    const RESPONSE: &str = "<o:OAI-PMH xmlns:o='urn:o'><o:responseDate/><o:request/><o:ListMetadataFormats>\
        <o:metadataFormat><o:metadataPrefix> a&amp;b </o:metadataPrefix><o:schema>http://s</o:schema>\
        <o:metadataNamespace>urn:n</o:metadataNamespace></o:metadataFormat></o:ListMetadataFormats></o:OAI-PMH>";

    #[test]
    fn formats_are_read_and_added_with_the_prefix_of_the_response() {
        let format = |prefix: &str, schema: &str, namespace: &str| ListedFormat {
            prefix: prefix.to_owned(),
            schema: schema.to_owned(),
            namespace: namespace.to_owned(),
        };
        let known = format("a&b", "http://s", "urn:n");
        assert_eq!(read_formats(RESPONSE), std::slice::from_ref(&known));
        let row = find_built_in("schema_org").expect("a row");
        let crosswalk = Crosswalk::built_in(row, "http://x?a&b");
        let added = with_formats(RESPONSE, &[&crosswalk]);
        assert_eq!(added.matches("<o:metadataFormat>").count(), 2, "{added}");
        let schema = "http://x?a&b/_crosswalks/schema_org.xsd";
        assert_eq!(read_formats(&added), [known, format("schema_org", schema, "urn:x-oaimend:json-ld:1")]);
        let error = "<OAI-PMH><responseDate/><request/><error code='idDoesNotExist'/></OAI-PMH>";
        assert_eq!((with_formats(error, &[&crosswalk]), read_formats(error)), (error.to_owned(), Vec::new()));
    }

    #[test]
    fn formats_of_sources_are_known_for_ten_minutes() {
        let cache = FormatsCache::default();
        cache.note("x", Arc::from([]), UnixSecs(1_000));
        for (now_secs, is_known) in [(999, false), (1_000, true), (1_599, true), (1_600, false)] {
            assert_eq!(cache.find("x", UnixSecs(now_secs)).is_some(), is_known, "{now_secs}");
        }
        assert!(cache.find("y", UnixSecs(1_000)).is_none());
    }
}
