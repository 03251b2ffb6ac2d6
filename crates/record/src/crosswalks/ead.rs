//! EAD 2002 and EAD3: finding aids of archives. The record is the collection as a whole, without its components.

use super::element::{Element, joined};
use crate::agent::{Agent, AgentKind};
use crate::work_fields::{AddText as _, WorkFields};

pub(super) fn read(ead: Element<'_>, fields: &mut WorkFields) {
    for archive in ead.named("archdesc") {
        for did in archive.named("did") {
            read_identification(did, fields);
        }
        read_description(archive, fields);
        fields.core.types.add_value(archive.attribute("level").unwrap_or_default());
    }
    for header in ead.named("eadheader").chain(ead.named("control")) {
        if fields.core.titles.is_empty() {
            let titles = header.at("filedesc/titlestmt/titleproper").into_iter();
            fields.core.titles.extend(titles.filter_map(Element::whole_text));
        }
        for id in header.named("eadid").chain(header.named("recordid")) {
            let url = id.attribute("url").or_else(|| id.attribute("instanceurl")).unwrap_or_default();
            fields.core.identifiers.add_value(url);
            fields.core.identifiers.add(id.text());
        }
    }
}

fn read_identification(did: Element<'_>, fields: &mut WorkFields) {
    let core = &mut fields.core;
    for element in did.children() {
        match element.name() {
            "unittitle" => core.titles.add(element.whole_text()),
            "unitdate" => {
                let start = element.attribute("normal").and_then(|dates| dates.split('/').next());
                core.dates.add_value(start.unwrap_or_default());
                core.dates.add(element.text());
            }
            "unitid" => core.identifiers.add(element.text()),
            "origination" => fields.creators.extend(agents(element)),
            "physdesc" | "physdescstructured" => core.formats.add(element.whole_text()),
            "langmaterial" => {
                for language in element.all("language") {
                    core.languages.add_value(language.attribute("langcode").unwrap_or(language.value()));
                }
            }
            "repository" => core.publishers.add(element.whole_text()),
            "abstract" => core.descriptions.add(element.whole_text()),
            "dao" => core.identifiers.add_value(element.attribute("href").unwrap_or_default()),
            _ => {}
        }
    }
}

/// The names in an element, or the only name that it is.
fn agents(origination: Element<'_>) -> Vec<Agent> {
    let named: Vec<Agent> = origination
        .children()
        .filter_map(|name| {
            let kind = match name.name() {
                "persname" | "famname" => AgentKind::Person,
                "corpname" => AgentKind::Organization,
                _ => AgentKind::Unknown,
            };
            Some(Agent { kind, ..Agent::read(&name.whole_text()?) })
        })
        .collect();
    if named.is_empty() { origination.text().iter().map(Agent::read).collect() } else { named }
}

fn read_description(archive: Element<'_>, fields: &mut WorkFields) {
    let core = &mut fields.core;
    for element in archive.children() {
        let paragraphs = || joined(element.named("p").filter_map(Element::whole_text), "\n");
        match element.name() {
            "scopecontent" | "bioghist" => core.descriptions.extend(paragraphs()),
            "accessrestrict" | "userestrict" => core.rights.add(paragraphs()),
            "controlaccess" => {
                for name in ["subject", "persname", "corpname", "famname"] {
                    core.subjects.extend(element.all(name).into_iter().filter_map(Element::whole_text));
                }
                core.coverages.extend(element.all("geogname").into_iter().filter_map(Element::whole_text));
                core.types.extend(element.all("genreform").into_iter().filter_map(Element::whole_text));
            }
            _ => {}
        }
    }
}
