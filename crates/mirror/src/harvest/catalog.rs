//! The formats and sets in the responses of a source, which were repaired.

use oaimend_store::{ListedFormat, ListedSet};
use quick_xml::Reader;
use quick_xml::events::Event;

/// The formats in a response to `ListMetadataFormats`.
pub fn read_formats(document: &str) -> Vec<ListedFormat> {
    let items = read_items(document, "metadataFormat", ["metadataPrefix", "schema", "metadataNamespace"]);
    items.into_iter().map(|[prefix, schema, namespace]| ListedFormat { prefix, schema, namespace }).collect()
}

/// The sets in a response to `ListSets`.
pub fn read_sets(document: &str) -> Vec<ListedSet> {
    let items = read_items(document, "set", ["setSpec", "setName"]);
    items.into_iter().map(|[set_spec, name]| ListedSet { set_spec, name }).collect()
}

/// The texts of the children with these names, of each element with the name `item`.
fn read_items<const N: usize>(document: &str, item: &str, fields: [&str; N]) -> Vec<[String; N]> {
    let mut reader = Reader::from_str(document);
    let (mut items, mut path, mut text): (Vec<[String; N]>, Vec<String>, String) = Default::default();
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                // OAI-PMH, the verb element, the item.
                if path.len() == 2 && name == item {
                    items.push(std::array::from_fn(|_| String::new()));
                }
                path.push(name);
                text.clear();
            }
            Event::Text(part) => text.push_str(part.as_ref()),
            Event::CData(part) => text.push_str(part.as_ref()),
            Event::GeneralRef(name) => {
                let reference = format!("&{};", name.as_ref() as &str);
                text.push_str(&quick_xml::escape::unescape(&reference).unwrap_or_default());
            }
            Event::End(_) => {
                let Some(name) = path.pop() else { break };
                let is_field = path.len() == 3 && path.last().is_some_and(|parent| parent == item);
                let index = fields.iter().position(|field| *field == name).filter(|_| is_field);
                if let Some(field) = index.and_then(|index| items.last_mut()?.get_mut(index)) {
                    *field = text.trim().to_owned();
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_sets_are_read_with_references() {
        let document = "<o:OAI-PMH><o:ListMetadataFormats><o:metadataFormat><o:metadataPrefix>a</o:metadataPrefix>\
            <o:schema> http://s?a&amp;b </o:schema><o:metadataNamespace>n</o:metadataNamespace></o:metadataFormat>\
            </o:ListMetadataFormats></o:OAI-PMH>";
        let format =
            ListedFormat { prefix: "a".into(), schema: "http://s?a&b".into(), namespace: "n".into() };
        assert_eq!(read_formats(document), [format]);
        let document = "<OAI-PMH><ListSets><set><setSpec>a:b</setSpec><setName>A &lt; B</setName><setDescription>\
            <x><setSpec>c</setSpec></x></setDescription></set><set><setSpec>d</setSpec><setName/></set></ListSets></OAI-PMH>";
        let sets: Vec<_> = read_sets(document).into_iter().map(|set| (set.set_spec, set.name)).collect();
        assert_eq!(sets, [("a:b".to_owned(), "A < B".to_owned()), ("d".to_owned(), String::new())]);
    }
}
