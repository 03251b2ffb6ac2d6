//! A work as JSON-LD in the vocabulary of schema.org.

use super::limits::META_VALUES_MAX;
use oaimend_record::LinkKind;
use oaimend_record::Text;
use oaimend_record::WorkDescription;
use oaimend_record::WorkType;
use serde_json::{Map, Value, json};

/// The JSON-LD of a work. `page_url` is the absolute URL of its page.
///
/// A name with a comma is the name of a person. Other names have no type, because they can be those of organizations.
pub fn json_ld(work: &WorkDescription, page_url: &str) -> Value {
    let core = &work.core;
    let mut object = Object(Map::new());
    object.add("@context", json!("https://schema.org"));
    object.add("@type", json!(work.work_type.schema_org()));
    let persistent = work.links.persistent().map_or(page_url, |link| link.url.as_str());
    object.add("@id", json!(persistent));
    object.add("url", json!(page_url));
    object.add_list("name", strings(&core.titles));
    if work.work_type == WorkType::Article {
        object
            .add_list("headline", core.titles.first().map(|title| json!(title.value)).into_iter().collect());
    }
    object.add_list("author", names(&core.creators));
    object.add_list("contributor", names(&core.contributors));
    if let Some(date) = work.published {
        object.add("datePublished", json!(date.in_iso_8601()));
    }
    object.add_list("description", strings(&core.descriptions));
    object.add_list("keywords", strings(&core.subjects));
    let publishers = core.publishers.iter().take(META_VALUES_MAX);
    object.add_list(
        "publisher",
        publishers.map(|text| json!({"@type": "Organization", "name": text.value})).collect(),
    );
    if let Some(language) = work.language() {
        object.add("inLanguage", json!(language));
    }
    object.add_list("identifier", identifiers(work));
    object.add_list("sameAs", work.links.identifying.iter().map(|link| json!(link.url)).collect());
    if let Some(license) = &work.links.license {
        object.add("license", json!(license.url));
    }
    if let Some(pdf) = work.links.pdf() {
        let file =
            json!({"@type": "MediaObject", "contentUrl": pdf.url, "encodingFormat": "application/pdf"});
        object.add("encoding", file);
    }
    Value::Object(object.0)
}

/// JSON that can be written into a `script` element: it contains no `<`, so neither `</script>` nor `<!--` can end or
/// change the element.
pub(crate) fn script_text(value: &Value) -> String {
    let json = value.to_string();
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)))
            }
            _ => text.push(character),
        }
    }
    text
}

struct Object(Map<String, Value>);

impl Object {
    fn add(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Adds nothing for no value, and a single value without an array.
    fn add_list(&mut self, name: &str, mut values: Vec<Value>) {
        match values.len() {
            0 => {}
            1 => self.add(name, values.remove(0)),
            _ => self.add(name, Value::Array(values)),
        }
    }
}

fn strings(texts: &[Text]) -> Vec<Value> {
    texts.iter().take(META_VALUES_MAX).map(|text| json!(text.value)).collect()
}

fn names(texts: &[Text]) -> Vec<Value> {
    let name = |text: &Text| {
        if text.value.contains(',') {
            json!({"@type": "Person", "name": text.value})
        } else {
            json!({"name": text.value})
        }
    };
    texts.iter().take(META_VALUES_MAX).map(name).collect()
}

/// The identifier of the record, and the persistent identifiers.
fn identifiers(work: &WorkDescription) -> Vec<Value> {
    let property =
        |id: &str, value: &str| json!({"@type": "PropertyValue", "propertyID": id, "value": value});
    let mut found = vec![property("OAI", &work.identifier)];
    for link in &work.links.identifying {
        match link.kind {
            LinkKind::Doi => found.push(property("DOI", &link.name)),
            LinkKind::Handle => found.push(property("Handle", &link.name)),
            LinkKind::Urn => found.push(property("URN", &link.name)),
            LinkKind::Url => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_record::RecordDocument;

    fn json_of(fields: &str) -> Value {
        let xml = format!(
            "<record><header><identifier>oai:x:1</identifier></header><metadata>\
             <a xmlns='http://purl.org/dc/elements/1.1/'>{fields}</a></metadata></record>"
        );
        let document = RecordDocument::read(&xml).expect("the record is well-formed");
        json_ld(&WorkDescription::of(&document), "https://e.org/x/record/1")
    }

    #[test]
    fn a_work_has_the_properties_of_schema_org() {
        let json = json_of(
            "<title>T</title><creator>C, D</creator><creator>E</creator><type>article</type><date>2014-05</date>\
             <identifier>doi:10.1000/1</identifier><identifier>https://e.org/1.pdf</identifier><publisher>P</publisher>\
             <language>en_US</language><rights>https://creativecommons.org/licenses/by/4.0/</rights><subject>s</subject>",
        );
        let expected = json!({
            "@context": "https://schema.org",
            "@type": "ScholarlyArticle",
            "@id": "https://doi.org/10.1000/1",
            "url": "https://e.org/x/record/1",
            "name": "T",
            "headline": "T",
            "author": [{"@type": "Person", "name": "C, D"}, {"name": "E"}],
            "datePublished": "2014-05",
            "keywords": "s",
            "publisher": {"@type": "Organization", "name": "P"},
            "inLanguage": "en-US",
            "identifier": [
                {"@type": "PropertyValue", "propertyID": "OAI", "value": "oai:x:1"},
                {"@type": "PropertyValue", "propertyID": "DOI", "value": "10.1000/1"}
            ],
            "sameAs": ["https://doi.org/10.1000/1", "https://e.org/1.pdf"],
            "license": "https://creativecommons.org/licenses/by/4.0/",
            "encoding":
                {"@type": "MediaObject", "contentUrl": "https://e.org/1.pdf", "encodingFormat": "application/pdf"},
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn an_empty_record_has_its_identifier() {
        let json = json_of("");
        assert_eq!(json["@type"], "CreativeWork");
        assert_eq!(json["identifier"]["value"], "oai:x:1");
        assert_eq!(json.get("name"), None);
    }

    #[test]
    fn nothing_in_a_record_ends_the_script_element() {
        let title = "&lt;/script>&lt;!-- &lt;SCRIPT> ]]&gt; &amp;lt; \u{2028} \" \\";
        let json = json_of(&format!("<title>{title}</title>"));
        let text = script_text(&json);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("it is JSON"), json);
    }
}
