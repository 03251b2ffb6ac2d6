//! LIDO: objects of museums.

use super::element::Element;
use crate::agent::{Agent, AgentKind, Orcid};
use crate::text::Text;
use crate::work_fields::WorkFields;

pub(super) fn read(payload: Element<'_>, fields: &mut WorkFields) {
    let record = if payload.name() == "lido" { Some(payload) } else { payload.first("lido") };
    let Some(record) = record else { return };
    fields.core.identifiers.extend(record.texts("objectPublishedID"));
    for description in record.named("descriptiveMetadata") {
        read_object(description, fields);
        for event in description.at("eventWrap/eventSet/event") {
            read_event(event, fields);
        }
    }
    for administration in record.named("administrativeMetadata") {
        read_administration(administration, fields);
    }
}

/// The appellations at a path, the preferred ones first.
fn appellations(element: Element<'_>, path: &str) -> Vec<Text> {
    let found = element.at(path).into_iter();
    let (others, preferred): (Vec<_>, Vec<_>) =
        found.partition(|value| matches!(value.attribute("pref"), Some("alternate" | "alternative")));
    preferred.into_iter().chain(others).filter_map(Element::text).collect()
}

fn read_object(description: Element<'_>, fields: &mut WorkFields) {
    let core = &mut fields.core;
    core.types.extend(description.texts("objectClassificationWrap/objectWorkTypeWrap/objectWorkType/term"));
    for identification in description.named("objectIdentificationWrap") {
        core.titles.extend(appellations(identification, "titleWrap/titleSet/appellationValue"));
        let notes = "objectDescriptionWrap/objectDescriptionSet/descriptiveNoteValue";
        core.descriptions.extend(identification.at(notes).into_iter().filter_map(Element::prose));
        let sizes = "objectMeasurementsWrap/objectMeasurementsSet/displayObjectMeasurements";
        core.formats.extend(identification.texts(sizes));
        let repositories = "repositoryWrap/repositorySet/repositoryName/legalBodyName/appellationValue";
        core.publishers.extend(identification.texts(repositories));
    }
    for subject in description.at("objectRelationWrap/subjectWrap/subjectSet/subject") {
        core.subjects.extend(subject.texts("subjectConcept/term"));
        core.subjects.extend(subject.texts("subjectActor/actor/nameActorSet/appellationValue"));
        core.coverages.extend(subject.texts("subjectPlace/place/namePlaceSet/appellationValue"));
    }
}

fn read_event(event: Element<'_>, fields: &mut WorkFields) {
    // Creation and production in the terminology of LIDO, and their usual names.
    let is_creation = event.named("eventType").any(|kind| {
        let concepts = kind.named("conceptID").chain(kind.named("Concept")).map(Element::value);
        let names = kind.all("term").into_iter().chain(kind.all("prefLabel")).map(Element::value);
        concepts
            .map(|uri| uri.rsplit('/').next().unwrap_or_default())
            .any(|id| ["lido00007", "lido00012"].contains(&id))
            || names.map(str::to_lowercase).any(|name| CREATION.contains(&name.as_str()))
    });
    for actor in event.at("eventActor/actorInRole/actor") {
        let name = appellations(actor, "nameActorSet/appellationValue").into_iter().next();
        let Some(name) = name.as_ref().map(Agent::read) else { continue };
        let kind = match actor.attribute("type") {
            Some("person") => AgentKind::Person,
            Some("corporation") => AgentKind::Organization,
            _ => name.kind,
        };
        let orcid = actor.named("actorID").find_map(|id| Orcid::read(id.value())).or(name.orcid);
        let agents = if is_creation { &mut fields.creators } else { &mut fields.contributors };
        agents.push(Agent { name: name.name, kind, orcid });
    }
    let core = &mut fields.core;
    core.formats.extend(event.texts("eventMaterialsTech/displayMaterialsTech"));
    if is_creation {
        core.dates.extend(event.texts("eventDate/date/earliestDate"));
        core.dates.extend(event.texts("eventDate/displayDate"));
        core.coverages.extend(event.texts("eventPlace/place/namePlaceSet/appellationValue"));
    }
}

/// The names of the events that make an object.
const CREATION: &[&str] = &["creation", "production", "herstellung", "entstehung", "création", "creación"];

fn read_administration(administration: Element<'_>, fields: &mut WorkFields) {
    let core = &mut fields.core;
    for rights in administration.all("rightsType") {
        core.rights.extend(rights.texts("conceptID"));
        core.rights.extend(rights.texts("term"));
    }
    for record in administration.named("recordWrap") {
        core.identifiers.extend(record.texts("recordInfoSet/recordInfoLink"));
        core.identifiers.extend(record.texts("recordID"));
    }
    core.relations
        .extend(administration.texts("resourceWrap/resourceSet/resourceRepresentation/linkResource"));
}
