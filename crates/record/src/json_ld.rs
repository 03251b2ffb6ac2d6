//! A work as JSON-LD in the vocabulary of schema.org.

use crate::agent::{Agent, AgentKind};
use crate::container::Container;
use crate::links::LinkKind;
use crate::text::Text;
use crate::work::WorkDescription;
use crate::work_type::WorkType;
use serde_json::{Map, Value, json};

/// The JSON-LD of a work. `page_url` is the absolute URL of its page, if it has one.
///
/// All values of the record are in it. A name with a comma is the name of a person, unless the record says that it is an
/// organization. Other names have no type, because they can be those of organizations.
pub fn json_ld(work: &WorkDescription, page_url: Option<&str>) -> Value {
    json_ld_same_as(work, page_url, &[])
}

/// The same with the URLs of other descriptions of the work.
pub fn json_ld_same_as(work: &WorkDescription, page_url: Option<&str>, same_as: &[String]) -> Value {
    let core = &work.core;
    let mut object = Object(Map::new());
    object.add("@context", json!("https://schema.org"));
    object.add("@type", json!(work.work_type.schema_org()));
    let persistent = work.links.persistent().map(|link| link.url.as_str());
    for (name, url) in [("@id", persistent.or(page_url)), ("url", page_url)] {
        if let Some(url) = url {
            object.add(name, json!(url));
        }
    }
    object.add_list("name", strings(&core.titles));
    if work.work_type == WorkType::Article {
        object
            .add_list("headline", core.titles.first().map(|title| json!(title.value)).into_iter().collect());
    }
    object.add_list("author", agents(&work.creators));
    object.add_list("contributor", agents(&work.contributors));
    if let Some(date) = work.published {
        object.add("datePublished", json!(date.in_iso_8601()));
    }
    object.add_list("description", strings(&core.descriptions));
    object.add_list("keywords", strings(&core.subjects));
    let publishers = core.publishers.iter();
    object.add_list(
        "publisher",
        publishers.map(|text| json!({"@type": "Organization", "name": text.value})).collect(),
    );
    add_container(&mut object, &work.container);
    object.add_list("isbn", work.isbns.iter().map(|isbn| json!(isbn)).collect());
    object.add_list("spatialCoverage", strings(&core.coverages));
    if let Some(language) = work.language() {
        object.add("inLanguage", json!(language));
    }
    object.add_list("identifier", identifiers(work));
    let identifying = work.links.identifying.iter().map(|link| &link.url);
    object.add_list("sameAs", identifying.chain(same_as).map(|url| json!(url)).collect());
    if let Some(license) = &work.links.license {
        object.add("license", json!(license.url));
    }
    if work.is_open_access {
        object.add("isAccessibleForFree", json!(true));
    }
    let file = |url: &str, media_type: Option<&str>| match media_type {
        Some(name) => json!({"@type": "MediaObject", "contentUrl": url, "encodingFormat": name}),
        None => json!({"@type": "MediaObject", "contentUrl": url}),
    };
    let full_texts = work.links.full_texts.iter();
    object.add_list("encoding", full_texts.map(|link| file(&link.url, link.text_media_type())).collect());
    Value::Object(object.0)
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
    texts.iter().map(|text| json!(text.value)).collect()
}

fn agents(agents: &[Agent]) -> Vec<Value> {
    let agent = |agent: &Agent| {
        let name = &agent.name.value;
        match (agent.kind, &agent.orcid) {
            (_, Some(orcid)) => json!({"@type": "Person", "@id": orcid.url(), "name": name}),
            (AgentKind::Organization, None) => json!({"@type": "Organization", "name": name}),
            (AgentKind::Person, None) => json!({"@type": "Person", "name": name}),
            (AgentKind::Unknown, None) if name.contains(',') => json!({"@type": "Person", "name": name}),
            (AgentKind::Unknown, None) => json!({"name": name}),
        }
    };
    agents.iter().map(agent).collect()
}

/// The pages, and the issue, volume and journal that contain them.
fn add_container(object: &mut Object, container: &Container) {
    for (name, page) in [("pageStart", &container.first_page), ("pageEnd", &container.last_page)] {
        if let Some(page) = page {
            object.add(name, json!(page));
        }
    }
    let mut whole = Object(Map::new());
    if !container.issns.is_empty() || container.title.is_some() {
        let kind = if container.issns.is_empty() && container.volume.is_none() {
            "CreativeWork"
        } else {
            "Periodical"
        };
        whole.add("@type", json!(kind));
        whole.add_list("name", container.title.iter().map(|title| json!(title)).collect());
        whole.add_list("issn", container.issns.iter().map(|issn| json!(issn)).collect());
    }
    for (kind, property, number) in [
        ("PublicationVolume", "volumeNumber", &container.volume),
        ("PublicationIssue", "issueNumber", &container.issue),
    ] {
        if let Some(number) = number {
            let mut part = Object(Map::new());
            part.add("@type", json!(kind));
            part.add(property, json!(number));
            if !whole.0.is_empty() {
                part.add("isPartOf", Value::Object(whole.0));
            }
            whole = part;
        }
    }
    if !whole.0.is_empty() {
        object.add("isPartOf", Value::Object(whole.0));
    }
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
    use crate::document::RecordDocument;

    fn json_of(fields: &str) -> Value {
        let xml = format!(
            "<record><header><identifier>oai:x:1</identifier></header><metadata>\
             <a xmlns='http://purl.org/dc/elements/1.1/'>{fields}</a></metadata></record>"
        );
        let document = RecordDocument::read(&xml).expect("the record is well-formed");
        json_ld(&WorkDescription::of(&document), Some("https://e.org/x/record/1"))
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
            "isAccessibleForFree": true,
            "encoding":
                {"@type": "MediaObject", "contentUrl": "https://e.org/1.pdf", "encodingFormat": "application/pdf"},
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn agents_journals_and_access_are_typed() {
        let json = json_of(
            "<creator>Doe, Jane (ORCID: 0000-0002-1825-0097)</creator><source>Journal of X, 12(3), 45-67</source>\
             <source>0378-5955</source><identifier>urn:isbn:9783161484100</identifier><coverage>Bonn</coverage>\
             <rights>info:eu-repo/semantics/openAccess</rights>",
        );
        assert_eq!(
            json["author"],
            json!({"@type": "Person", "@id": "https://orcid.org/0000-0002-1825-0097", "name": "Doe, Jane"})
        );
        let journal = json!({"@type": "Periodical", "name": "Journal of X", "issn": "0378-5955"});
        let volume = json!({"@type": "PublicationVolume", "volumeNumber": "12", "isPartOf": journal});
        let issue = json!({"@type": "PublicationIssue", "issueNumber": "3", "isPartOf": volume});
        assert_eq!(json["isPartOf"], issue);
        assert_eq!((&json["pageStart"], &json["pageEnd"]), (&json!("45"), &json!("67")));
        assert_eq!((&json["isbn"], &json["spatialCoverage"]), (&json!("9783161484100"), &json!("Bonn")));
        assert_eq!(json["isAccessibleForFree"], true);
        assert_eq!(
            agents(&[Agent { kind: AgentKind::Organization, ..Agent::default() }])[0]["@type"],
            "Organization"
        );
    }

    #[test]
    fn all_values_are_in_it() {
        let json = json_of(&"<creator>D, E</creator><subject>s</subject>".repeat(900));
        assert_eq!(json["author"].as_array().map(Vec::len), Some(900));
        assert_eq!(json["keywords"].as_array().map(Vec::len), Some(900));
    }

    #[test]
    fn an_empty_record_has_its_identifier() {
        let json = json_of("");
        assert_eq!(json["@type"], "CreativeWork");
        assert_eq!(json["identifier"]["value"], "oai:x:1");
        assert_eq!(json.get("name"), None);
        let without_page = json_ld(&WorkDescription::default(), None);
        assert_eq!((without_page.get("@id"), without_page.get("url")), (None, None));
        let same = json_ld_same_as(&WorkDescription::default(), None, &["https://e.org/y".to_owned()]);
        assert_eq!(same["sameAs"], "https://e.org/y");
    }
}
