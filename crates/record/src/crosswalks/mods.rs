//! MODS 3.

use super::element::{Element, joined};
use crate::agent::{Agent, AgentKind, Orcid};
use crate::container::Container;
use crate::standard_number::read_issn;
use crate::text::Text;
use crate::work_fields::{AddText as _, WorkFields};

pub(super) fn read(payload: Element<'_>, fields: &mut WorkFields) {
    let record = if payload.name() == "mods" { Some(payload) } else { payload.first("mods") };
    let Some(record) = record else { return };
    let (alternative, main): (Vec<_>, Vec<_>) =
        record.named("titleInfo").partition(|title| title.attribute("type").is_some());
    fields.core.titles.extend(main.into_iter().chain(alternative).filter_map(title));
    for element in record.children() {
        match element.name() {
            "name" => read_name(element, fields),
            "originInfo" => read_origin(element, fields),
            "identifier" => fields.core.identifiers.add(identifier(element)),
            "location" => read_location(element, fields),
            "relatedItem" => read_related(element, fields),
            _ => read_description(element, fields),
        }
    }
}

fn title(title: Element<'_>) -> Option<Text> {
    let main = joined(title.texts("nonSort").into_iter().chain(title.texts("title")), " ");
    let part = joined(title.texts("partNumber").into_iter().chain(title.texts("partName")), ", ");
    joined(main.into_iter().chain(title.texts("subTitle")).chain(part), ": ")
}

fn read_name(name: Element<'_>, fields: &mut WorkFields) {
    let part = |kind: &str| {
        let parts = name.named("namePart").filter(move |part| part.attribute("type") == Some(kind));
        joined(parts.filter_map(Element::text), " ")
    };
    let untyped = name.named("namePart").filter(|part| part.attribute("type").is_none());
    let untyped = joined(untyped.filter_map(Element::text), " ");
    let divided = joined(part("family").into_iter().chain(part("given")), ", ");
    let Some(shown) = divided.or(untyped).or_else(|| name.first("displayForm")?.text()) else { return };
    let identifiers = name.named("nameIdentifier").map(Element::value).chain(name.attribute("valueURI"));
    let found = Agent::read(&shown);
    let orcid = identifiers.filter_map(Orcid::read).next().or(found.orcid);
    let kind = match name.attribute("type") {
        Some("corporate" | "conference") => AgentKind::Organization,
        Some("personal" | "family") => AgentKind::Person,
        _ => found.kind,
    };
    let agent = Agent { name: found.name, kind, orcid };
    let roles = name.texts("role/roleTerm");
    let names_creator =
        |role: &Text| ["aut", "cre", "author", "creator"].contains(&role.value.to_lowercase().as_str());
    if roles.is_empty() || roles.iter().any(names_creator) {
        fields.creators.push(agent);
    } else {
        fields.contributors.push(agent);
    }
}

fn read_origin(origin: Element<'_>, fields: &mut WorkFields) {
    fields.core.publishers.extend(origin.texts("publisher"));
    for name in ["dateIssued", "copyrightDate", "dateCreated"] {
        let is_start = |date: &Element<'_>| date.attribute("point") != Some("end");
        // One with an encoding is for programs.
        let (encoded, others): (Vec<_>, Vec<_>) =
            origin.named(name).filter(is_start).partition(|date| date.attribute("encoding").is_some());
        fields.core.dates.extend(encoded.into_iter().chain(others).filter_map(Element::text));
    }
}

fn identifier(element: Element<'_>) -> Option<Text> {
    let text = element.text()?;
    if element.attribute("invalid") == Some("yes") {
        return None;
    }
    let kind = element.attribute("type").unwrap_or_default().to_ascii_lowercase();
    let scheme = match kind.as_str() {
        "hdl" | "doi" if !text.value.contains(':') => kind + ":",
        "isbn" | "issn" if !text.value.contains(':') => format!("urn:{kind}:"),
        _ => String::new(),
    };
    Some(Text { value: scheme + &text.value, ..text })
}

fn read_location(location: Element<'_>, fields: &mut WorkFields) {
    for url in location.named("url") {
        if url.attribute("access") == Some("raw object") {
            fields.full_texts.push(url.value().to_owned());
        }
        fields.core.identifiers.add(url.text());
    }
}

fn read_related(related: Element<'_>, fields: &mut WorkFields) {
    let name = related.first("titleInfo").and_then(title);
    if related.attribute("type") != Some("host") {
        fields.core.relations.add(name);
        fields.core.relations.extend(related.named("identifier").filter_map(identifier));
        return;
    }
    let mut container =
        Container { title: name.as_ref().map(|name| name.value.clone()), ..Container::default() };
    for part in related.named("part") {
        let number = |kind: &str| {
            let details = part.named("detail").filter(move |detail| detail.attribute("type") == Some(kind));
            details.filter_map(|detail| detail.first("number")?.text()).map(|text| text.value).next()
        };
        container.volume = container.volume.or_else(|| number("volume"));
        container.issue = container.issue.or_else(|| number("issue")).or_else(|| number("number"));
        for extent in part.named("extent") {
            let value = |name: &str| extent.first(name).and_then(Element::text).map(|text| text.value);
            match (value("start"), value("list")) {
                (None, Some(list)) => container.read_pages(&list),
                (start, _) => (container.first_page, container.last_page) = (start, value("end")),
            }
        }
        if fields.core.dates.is_empty() {
            fields.core.dates.extend(part.texts("date"));
        }
    }
    for element in related.named("identifier") {
        container.issns.extend(read_issn(element.value()));
    }
    read_host_origin(related, fields);
    fields.container.complete(container);
    fields.core.sources.add(name);
}

/// A part of a book has the date and the publisher of the book, unless it has its own.
fn read_host_origin(host: Element<'_>, fields: &mut WorkFields) {
    if fields.core.dates.is_empty() {
        for origin in host.named("originInfo") {
            read_origin(origin, fields);
        }
    }
}

fn read_description(element: Element<'_>, fields: &mut WorkFields) {
    let core = &mut fields.core;
    match element.name() {
        "abstract" => core.descriptions.extend(element.prose()),
        "tableOfContents" => core.descriptions.extend(element.prose()),
        "genre" | "typeOfResource" => core.types.add(element.text()),
        "language" => core.languages.extend(element.texts("languageTerm")),
        "physicalDescription" => {
            for name in ["internetMediaType", "form", "extent"] {
                core.formats.extend(element.texts(name));
            }
        }
        "accessCondition" => {
            core.rights.add(element.text());
            core.rights.add_value(element.attribute("href").unwrap_or_default());
        }
        "subject" => {
            let is_coverage = |part: &Element<'_>| {
                ["geographic", "temporal", "hierarchicalGeographic"].contains(&part.name())
            };
            let (coverages, topics): (Vec<_>, Vec<_>) = element.children().partition(is_coverage);
            core.subjects.add(joined(topics.into_iter().filter_map(Element::whole_text), "--"));
            core.coverages.extend(coverages.into_iter().filter_map(Element::whole_text));
        }
        _ => {}
    }
}
