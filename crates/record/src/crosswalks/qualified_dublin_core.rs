//! Dublin Core: `oai_dc`, and formats whose payload has child elements in a namespace of Dublin Core.

use super::element::Element;
use crate::agent::{Agent, AgentKind, Orcid};
use crate::container::Container;
use crate::text::Text;
use crate::work_fields::{AddText as _, WorkFields};

const ELEMENTS: &str = "http://purl.org/dc/elements/1.1/";
const TERMS: &str = "http://purl.org/dc/terms/";

pub(super) fn read(payload: Element<'_>, fields: &mut WorkFields) {
    let mut later_dates = Vec::new();
    for element in payload.children().filter(|element| [ELEMENTS, TERMS].contains(&element.namespace())) {
        match element.name() {
            // They say less about the publication than `date` and `issued`.
            "created" | "dateCopyrighted" => later_dates.add(element.text()),
            _ => {
                let prose = element.prose();
                if let Some(text) = prose {
                    add(element, text, fields);
                }
            }
        }
    }
    fields.core.dates.extend(later_dates);
}

/// Adds the text of an element of Dublin Core. `text` need not be its own: in RDF it is in another place.
pub(super) fn add(element: Element<'_>, text: Text, fields: &mut WorkFields) {
    let core = &mut fields.core;
    if let "description" | "abstract" | "tableOfContents" = element.name() {
        core.descriptions.push(text);
        return;
    }
    let line = text.into_one_line();
    match element.name() {
        "title" | "alternative" => core.titles.push(line),
        "creator" => fields.creators.push(agent(element, &line)),
        "contributor" => fields.contributors.push(agent(element, &line)),
        "subject" => core.subjects.push(line),
        "publisher" => core.publishers.push(line),
        "date" | "issued" => core.dates.push(line),
        "type" => core.types.push(line),
        "format" | "extent" | "medium" => core.formats.push(line),
        "language" => core.languages.push(line),
        "rights" | "license" | "accessRights" | "rightsHolder" => core.rights.push(line),
        "identifier" => core.identifiers.push(line),
        "bibliographicCitation" => {
            if let Some(container) = Container::read(&line.value) {
                fields.container.complete(container);
            }
            core.sources.push(line);
        }
        "source" => core.sources.push(line),
        "coverage" | "spatial" | "temporal" => core.coverages.push(line),
        "relation" | "isPartOf" | "hasPart" | "isVersionOf" | "hasVersion" | "isFormatOf" | "hasFormat"
        | "references" | "isReferencedBy" | "isReplacedBy" | "replaces" | "requires" | "isRequiredBy"
        | "conformsTo" => core.relations.push(line),
        _ => {}
    }
}

/// The agent in an element. Some repositories write the ORCID into an attribute.
fn agent(element: Element<'_>, line: &Text) -> Agent {
    let agent = Agent::read(line);
    match (&agent.orcid, element.attribute_values().find_map(Orcid::read)) {
        (None, Some(orcid)) => Agent { orcid: Some(orcid), kind: AgentKind::Person, ..agent },
        _ => agent,
    }
}
