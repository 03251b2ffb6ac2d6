//! DataCite, kernels 3 and 4, also in the wrapper `oai_datacite`.

use super::element::{Element, joined};
use crate::agent::{Agent, AgentKind, Orcid};
use crate::container::Container;
use crate::standard_number::read_issn;
use crate::text::Text;
use crate::work_fields::{AddText as _, WorkFields};

/// Reads `oai_datacite`, whose `payload` contains the resource.
pub(super) fn read_wrapped(wrapper: Element<'_>, fields: &mut WorkFields) {
    if let Some(resource) = wrapper.first("payload/resource") {
        read(resource, fields);
    }
}

pub(super) fn read(resource: Element<'_>, fields: &mut WorkFields) {
    read_agents(resource, fields);
    read_dates(resource, fields);
    read_relations(resource, fields);
    let core = &mut fields.core;
    let (others, main): (Vec<_>, Vec<_>) =
        resource.at("titles/title").into_iter().partition(|title| title.attribute("titleType").is_some());
    core.titles.extend(main.into_iter().chain(others).filter_map(Element::text));
    for element in resource.named("identifier").chain(resource.at("alternateIdentifiers/alternateIdentifier"))
    {
        let is_handle =
            element.attribute("identifierType").is_some_and(|kind| kind.eq_ignore_ascii_case("handle"));
        match element.text() {
            Some(text) if is_handle && !text.value.contains(':') => {
                core.identifiers.push(Text { value: format!("hdl:{}", text.value), ..text })
            }
            text => core.identifiers.add(text),
        }
    }
    core.publishers.extend(resource.texts("publisher"));
    core.subjects.extend(resource.texts("subjects/subject"));
    core.languages.extend(resource.texts("language"));
    for element in resource.named("resourceType") {
        core.types.add_value(element.attribute("resourceTypeGeneral").unwrap_or_default());
        core.types.add(element.text());
    }
    core.formats.extend(resource.texts("formats/format"));
    core.formats.extend(resource.texts("sizes/size"));
    for element in resource.at("rightsList/rights").into_iter().chain(resource.named("rights")) {
        core.rights.add_value(element.attribute("rightsURI").unwrap_or_default());
        core.rights.add(element.text());
    }
    core.coverages.extend(resource.texts("geoLocations/geoLocation/geoLocationPlace"));
    for element in resource.at("descriptions/description") {
        match (element.attribute("descriptionType"), element.text()) {
            // The citation of the journal, as DataCite advises for articles.
            (Some("SeriesInformation"), Some(text)) => core.sources.push(text),
            _ => core.descriptions.extend(element.prose()),
        }
    }
}

fn read_agents(resource: Element<'_>, fields: &mut WorkFields) {
    let creators = resource.at("creators/creator").into_iter();
    fields.creators.extend(creators.filter_map(|creator| agent(creator, "creatorName")));
    let contributors = resource.at("contributors/contributor").into_iter();
    fields.contributors.extend(contributors.filter_map(|contributor| agent(contributor, "contributorName")));
}

fn agent(element: Element<'_>, name: &str) -> Option<Agent> {
    let named = element.first(name);
    let divided = || joined(element.texts("familyName").into_iter().chain(element.texts("givenName")), ", ");
    let found = Agent::read(&named.and_then(Element::text).or_else(divided)?);
    let orcid = element.named("nameIdentifier").find_map(|identifier| Orcid::read(identifier.value()));
    let kind = match named.and_then(|name| name.attribute("nameType")) {
        Some("Organizational") => AgentKind::Organization,
        Some("Personal") => AgentKind::Person,
        _ if element.first("givenName").is_some() || orcid.is_some() => AgentKind::Person,
        _ => found.kind,
    };
    Some(Agent { name: found.name, kind, orcid: orcid.or(found.orcid) })
}

fn read_dates(resource: Element<'_>, fields: &mut WorkFields) {
    let of_kind = |kind: &str| {
        let dates = resource.at("dates/date").into_iter();
        dates
            .filter(|date| date.attribute("dateType") == Some(kind))
            .filter_map(Element::text)
            .collect::<Vec<_>>()
    };
    let dates = &mut fields.core.dates;
    dates.extend(of_kind("Issued"));
    dates.extend(resource.texts("publicationYear"));
    dates.extend(of_kind("Created"));
    dates.extend(of_kind("Available"));
}

fn read_relations(resource: Element<'_>, fields: &mut WorkFields) {
    for element in resource.at("relatedIdentifiers/relatedIdentifier") {
        let is_host = matches!(element.attribute("relationType"), Some("IsPartOf" | "IsPublishedIn"));
        match read_issn(element.value()) {
            Some(issn) if is_host => {
                fields.container.complete(Container { issns: vec![issn], ..Container::default() })
            }
            _ => {}
        }
        fields.core.relations.add(element.text());
    }
    for item in resource.at("relatedItems/relatedItem") {
        let value = |path: &str| item.first(path).and_then(Element::text).map(|text| text.value);
        if matches!(item.attribute("relationType"), Some("IsPublishedIn" | "IsPartOf")) {
            fields.container.complete(Container {
                title: value("titles/title"),
                volume: value("volume"),
                issue: value("issue"),
                first_page: value("firstPage"),
                last_page: value("lastPage"),
                issns: value("relatedItemIdentifier").and_then(|text| read_issn(&text)).into_iter().collect(),
            });
            fields.core.sources.extend(item.texts("titles/title"));
        } else {
            fields.core.relations.extend(item.texts("titles/title"));
        }
    }
}
