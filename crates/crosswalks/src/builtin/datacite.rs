//! DataCite 4.6 in the wrapper `oai_datacite` 1.1.
//!
//! A mandatory property without a value gets `:unav`, the code of the standard for a value that is not available (DataCite
//! Metadata Schema 4.6, appendix 3). The year must have four digits, so an unknown one is `0000`.

use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use crate::xml_writer::{Root, XmlWriter};
use oaimend_record::{Agent, AgentKind, Link, LinkKind, Text, WorkDescription, WorkType};

pub(crate) const WRAPPER_NAMESPACE: &str = "http://schema.datacite.org/oai/oai-1.1/";
pub(crate) const WRAPPER_SCHEMA: &str = "http://schema.datacite.org/oai/oai-1.1/oai.xsd";
const NAMESPACE: &str = "http://datacite.org/schema/kernel-4";
const SCHEMA: &str = "http://schema.datacite.org/meta/kernel-4/metadata.xsd";
const VERSION: &str = "4.6";

/// The code for a value that is not available.
const UNAVAILABLE: &str = ":unav";
/// The year of a work whose year is not known. The schema allows only digits.
const UNKNOWN_YEAR: &str = "0000";

const WRAPPER: Root<'static> = Root {
    name: "oai_datacite",
    namespaces: &[("", WRAPPER_NAMESPACE)],
    schemas: &[(WRAPPER_NAMESPACE, WRAPPER_SCHEMA)],
    attributes: &[],
};
const RESOURCE: Root<'static> = Root {
    name: "resource",
    namespaces: &[("", NAMESPACE)],
    schemas: &[(NAMESPACE, SCHEMA)],
    attributes: &[],
};

pub(crate) fn convert(record: &SourceRecord<'_>) -> Result<String, Unconverted> {
    let work = record.work()?;
    Ok(WRAPPER.write(|xml| {
        xml.leaf("schemaVersion", &[], VERSION);
        xml.leaf("datacentreSymbol", &[], UNAVAILABLE);
        xml.element("payload", &[], |xml| RESOURCE.write_into(xml, |xml| write_resource(&work, xml)));
    }))
}

fn write_resource(work: &WorkDescription, xml: &mut XmlWriter) {
    let core = &work.core;
    write_identifiers(work, xml);
    xml.element("creators", &[], |xml| {
        work.creators.iter().for_each(|agent| write_agent(agent, CREATOR, xml));
        if work.creators.is_empty() {
            xml.element("creator", &[], |xml| xml.leaf("creatorName", &[], UNAVAILABLE));
        }
    });
    xml.element("titles", &[], |xml| {
        core.titles.iter().for_each(|title| xml.text("title", &[], title));
        if core.titles.is_empty() {
            xml.leaf("title", &[], UNAVAILABLE);
        }
    });
    match core.publishers.first() {
        Some(publisher) => xml.text("publisher", &[], publisher),
        None => xml.leaf("publisher", &[], UNAVAILABLE),
    }
    let year = work.published.map_or(UNKNOWN_YEAR.to_owned(), |date| date.year().to_string());
    xml.leaf("publicationYear", &[], &year);
    let kind = core.types.first().map_or(UNAVAILABLE, |kind| kind.value.as_str());
    xml.leaf("resourceType", &[("resourceTypeGeneral", general_type(work.work_type))], kind);
    xml.list("subjects", &core.subjects, |xml, subject| xml.text("subject", &[], subject));
    if !work.contributors.is_empty() {
        xml.element("contributors", &[], |xml| {
            work.contributors.iter().for_each(|agent| write_agent(agent, CONTRIBUTOR, xml));
        });
    }
    write_dates(work, xml);
    if let Some(language) = work.language() {
        xml.leaf("language", &[], &language);
    }
    xml.list("formats", &core.formats, |xml, format| xml.leaf("format", &[], &format.value));
    xml.list("rightsList", &core.rights, |xml, rights| match Link::read(&rights.value) {
        Some(link) => xml.text("rights", &[("rightsURI", &link.url)], rights),
        None => xml.text("rights", &[], rights),
    });
    if !core.descriptions.is_empty() || !core.sources.is_empty() {
        xml.element("descriptions", &[], |xml| {
            let mut write = |kind: &str, texts: &[Text]| {
                for text in texts {
                    xml.text("description", &[("descriptionType", kind)], text);
                }
            };
            write("Other", &core.descriptions);
            // The citation of the journal, as DataCite advises for articles.
            write("SeriesInformation", &core.sources);
        });
    }
}

/// The DOI, else the first identifier that is a link, else that of the record; and the others.
fn write_identifiers(work: &WorkDescription, xml: &mut XmlWriter) {
    let of_work = work.core.identifiers.iter().map(|text| (text.value.as_str(), Link::read(&text.value)));
    let mut identifiers: Vec<(&str, String)> = of_work
        .map(|(value, link)| match link {
            Some(Link { kind: LinkKind::Doi, name, .. }) => ("DOI", name),
            Some(Link { kind: LinkKind::Handle, name, .. }) => ("Handle", name),
            Some(Link { kind: LinkKind::Urn, name, .. }) => ("URN", name),
            Some(Link { kind: LinkKind::Url, url, .. }) => ("URL", url),
            None => ("Other", value.to_owned()),
        })
        .collect();
    identifiers.push(("OAI", work.identifier.clone()));
    let main = identifiers.iter().position(|(kind, _)| *kind == "DOI");
    let main = main.or_else(|| identifiers.iter().position(|(kind, _)| *kind != "Other"));
    let (kind, value) = identifiers.remove(main.unwrap_or_default());
    xml.leaf("identifier", &[("identifierType", kind)], &value);
    if !identifiers.is_empty() {
        xml.element("alternateIdentifiers", &[], |xml| {
            for (kind, value) in &identifiers {
                xml.leaf("alternateIdentifier", &[("alternateIdentifierType", kind)], value);
            }
        });
    }
}

/// How an agent is written: the element, the element of its name, and the attributes of the first.
type AgentForm = (&'static str, &'static str, &'static [(&'static str, &'static str)]);
const CREATOR: AgentForm = ("creator", "creatorName", &[]);
/// The record does not say what a contributor did.
const CONTRIBUTOR: AgentForm = ("contributor", "contributorName", &[("contributorType", "Other")]);

fn write_agent(agent: &Agent, (element, name, attributes): AgentForm, xml: &mut XmlWriter) {
    xml.element(element, attributes, |xml| {
        match agent.kind {
            AgentKind::Person => xml.text(name, &[("nameType", "Personal")], &agent.name),
            AgentKind::Organization => xml.text(name, &[("nameType", "Organizational")], &agent.name),
            AgentKind::Unknown => xml.text(name, &[], &agent.name),
        }
        if let Some(orcid) = &agent.orcid {
            let scheme = [("nameIdentifierScheme", "ORCID"), ("schemeURI", "https://orcid.org")];
            xml.leaf("nameIdentifier", &scheme, &orcid.url());
        }
    });
}

fn write_dates(work: &WorkDescription, xml: &mut XmlWriter) {
    let issued = work.published.map(|date| date.in_iso_8601());
    let others = work.core.dates.iter().map(|date| date.value.as_str());
    let others: Vec<&str> = others.filter(|date| Some(*date) != issued.as_deref()).collect();
    if issued.is_none() && others.is_empty() {
        return;
    }
    xml.element("dates", &[], |xml| {
        if let Some(date) = &issued {
            xml.leaf("date", &[("dateType", "Issued")], date);
        }
        for date in others {
            xml.leaf("date", &[("dateType", "Other")], date);
        }
    });
}

/// The type of DataCite. An article may be a preprint or a paper of a conference, so it is a text.
const fn general_type(kind: WorkType) -> &'static str {
    match kind {
        WorkType::Article => "Text",
        WorkType::Thesis => "Dissertation",
        WorkType::Book => "Book",
        WorkType::Chapter => "BookChapter",
        WorkType::Report => "Report",
        WorkType::Dataset => "Dataset",
        WorkType::Software => "Software",
        WorkType::Image => "Image",
        WorkType::Video => "Audiovisual",
        WorkType::Audio => "Sound",
        WorkType::Map | WorkType::Other => "Other",
    }
}
