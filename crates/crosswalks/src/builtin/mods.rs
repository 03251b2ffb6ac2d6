//! MODS 3.7.

use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use crate::xml_writer::{Root, XmlWriter};
use oaimend_record::{Agent, AgentKind, Container, Link, LinkKind, Text, WorkDescription, language_tag};

pub(crate) const NAMESPACE: &str = "http://www.loc.gov/mods/v3";
pub(crate) const SCHEMA: &str = "http://www.loc.gov/standards/mods/v3/mods-3-7.xsd";

const ROOT: Root<'static> = Root {
    name: "mods",
    namespaces: &[("", NAMESPACE)],
    schemas: &[(NAMESPACE, SCHEMA)],
    attributes: &[("version", "3.7")],
};

pub(crate) fn convert(record: &SourceRecord<'_>) -> Result<String, Unconverted> {
    let work = record.work()?;
    Ok(ROOT.write(|xml| {
        write_names(&work, xml);
        write_origin(&work, xml);
        write_subject(&work, xml);
        write_links(&work, xml);
        write_related(&work, xml);
        xml.element("recordInfo", &[], |xml| {
            xml.leaf("recordIdentifier", &[("source", "OAI-PMH")], record.identifier);
            xml.leaf("recordOrigin", &[], &format!("Converted by oaimend from {}", record.prefix));
        });
    }))
}

fn write_names(work: &WorkDescription, xml: &mut XmlWriter) {
    for (number, title) in work.core.titles.iter().enumerate() {
        let kind: &[_] = if number == 0 { &[] } else { &[("type", "alternative")] };
        xml.element("titleInfo", kind, |xml| xml.text("title", &[], title));
    }
    for (role, agents) in [("creator", &work.creators), ("contributor", &work.contributors)] {
        agents.iter().for_each(|agent| write_name(agent, role, xml));
    }
}

fn write_name(agent: &Agent, role: &str, xml: &mut XmlWriter) {
    let kind: &[_] = match agent.kind {
        AgentKind::Person => &[("type", "personal")],
        AgentKind::Organization => &[("type", "corporate")],
        AgentKind::Unknown => &[],
    };
    xml.element("name", kind, |xml| {
        xml.text("namePart", &[], &agent.name);
        xml.element("role", &[], |xml| xml.leaf("roleTerm", &[("type", "text")], role));
        if let Some(orcid) = &agent.orcid {
            xml.leaf("nameIdentifier", &[("type", "orcid")], &orcid.url());
        }
    });
}

fn write_origin(work: &WorkDescription, xml: &mut XmlWriter) {
    let core = &work.core;
    core.types.iter().for_each(|kind| xml.text("genre", &[], kind));
    if !core.publishers.is_empty() || !core.dates.is_empty() {
        let issued = work.published.map(|date| date.in_iso_8601());
        xml.element("originInfo", &[], |xml| {
            core.publishers.iter().for_each(|publisher| xml.text("publisher", &[], publisher));
            if let Some(date) = &issued {
                xml.leaf("dateIssued", &[("encoding", "w3cdtf")], date);
            }
            let others = core.dates.iter().map(|date| date.value.as_str());
            for date in others.filter(|date| Some(*date) != issued.as_deref()) {
                xml.leaf("dateOther", &[], date);
            }
        });
    }
    for language in &core.languages {
        xml.element("language", &[], |xml| match language_tag(&language.value) {
            Some(tag) => xml.leaf("languageTerm", &[("type", "code"), ("authority", "rfc5646")], &tag),
            None => xml.leaf("languageTerm", &[("type", "text")], &language.value),
        });
    }
}

fn write_subject(work: &WorkDescription, xml: &mut XmlWriter) {
    let core = &work.core;
    xml.list("physicalDescription", &core.formats, |xml, format| {
        let is_media_type = format.value.contains('/') && !format.value.contains(' ');
        xml.leaf(if is_media_type { "internetMediaType" } else { "note" }, &[], &format.value);
    });
    core.descriptions.iter().for_each(|description| xml.text("abstract", &[], description));
    for subject in &core.subjects {
        xml.element("subject", &[], |xml| xml.text("topic", &[], subject));
    }
    // Dublin Core does not say whether it is a place or a time.
    core.coverages.iter().for_each(|coverage| xml.text("note", &[("type", "coverage")], coverage));
    for rights in &core.rights {
        xml.text("accessCondition", &[("type", "use and reproduction")], rights);
    }
}

fn write_links(work: &WorkDescription, xml: &mut XmlWriter) {
    for text in &work.core.identifiers {
        match Link::read(&text.value) {
            Some(Link { kind: LinkKind::Url, url, .. }) => {
                xml.element("location", &[], |xml| xml.leaf("url", &[], &url));
            }
            link => write_identifier(text, link, xml),
        }
    }
}

fn write_identifier(text: &Text, link: Option<Link>, xml: &mut XmlWriter) {
    match link {
        Some(Link { kind: LinkKind::Doi, name, .. }) => xml.leaf("identifier", &[("type", "doi")], &name),
        Some(Link { kind: LinkKind::Handle, name, .. }) => xml.leaf("identifier", &[("type", "hdl")], &name),
        Some(Link { url, .. }) => xml.leaf("identifier", &[("type", "uri")], &url),
        None => xml.text("identifier", &[], text),
    }
}

fn write_related(work: &WorkDescription, xml: &mut XmlWriter) {
    let container = &work.container;
    if *container != Container::default() {
        xml.element("relatedItem", &[("type", "host")], |xml| write_host(container, xml));
    }
    // A source that is not read as a container may be anything that the work is taken from.
    if container.title.is_none() {
        for source in &work.core.sources {
            xml.element("relatedItem", &[("displayLabel", "source")], |xml| {
                xml.element("titleInfo", &[], |xml| xml.text("title", &[], source));
            });
        }
    }
    for relation in &work.core.relations {
        xml.element("relatedItem", &[], |xml| match Link::read(&relation.value) {
            Some(link) => write_identifier(relation, Some(link), xml),
            None => xml.element("titleInfo", &[], |xml| xml.text("title", &[], relation)),
        });
    }
}

fn write_host(container: &Container, xml: &mut XmlWriter) {
    if let Some(title) = &container.title {
        xml.element("titleInfo", &[], |xml| xml.leaf("title", &[], title));
    }
    for issn in &container.issns {
        xml.leaf("identifier", &[("type", "issn")], issn);
    }
    let numbers = [("volume", &container.volume), ("issue", &container.issue)];
    if numbers.iter().all(|(_, number)| number.is_none()) && container.first_page.is_none() {
        return;
    }
    xml.element("part", &[], |xml| {
        for (kind, number) in numbers {
            if let Some(number) = number {
                xml.element("detail", &[("type", kind)], |xml| xml.leaf("number", &[], number));
            }
        }
        if let Some(first) = &container.first_page {
            xml.element("extent", &[("unit", "pages")], |xml| {
                xml.leaf("start", &[], first);
                if let Some(last) = &container.last_page {
                    xml.leaf("end", &[], last);
                }
            });
        }
    });
}
