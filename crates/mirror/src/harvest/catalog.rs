//! The formats and sets in the responses of a source, which were repaired.

use oaimend_repository::xml::{XmlEvent, XmlReader};
use oaimend_store::{ListedFormat, ListedSet};

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
    let mut reader = XmlReader::new(document);
    let (mut items, mut is_item, mut text): (Vec<[String; N]>, bool, String) = Default::default();
    while let Ok(Some(event)) = reader.read() {
        match (event, reader.depth()) {
            (XmlEvent::Start(tag), depth) => {
                // OAI-PMH, the verb element, the item.
                if depth == 2 {
                    is_item = tag.local_name() == item;
                    items.extend(is_item.then(|| std::array::from_fn(|_| String::new())));
                }
                // A line break of HTML does not divide a name.
                if depth <= 3 || !tag.is_empty() {
                    text.clear();
                }
            }
            (XmlEvent::Text(part), _) => text.push_str(&part.resolve().unwrap_or_default()),
            (XmlEvent::End(tag), 3) if is_item => {
                let name = tag.local_name();
                let index = fields.iter().position(|field| *field == name);
                if let Some(field) = index.and_then(|index| items.last_mut()?.get_mut(index)) {
                    *field = text.trim().to_owned();
                }
            }
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
