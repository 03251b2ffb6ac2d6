//! MARCXML (MARC 21), as the crosswalk of the Library of Congress reads it, and the fields that Invenio uses for
//! articles.

use super::element::{Element, joined};
use crate::agent::{Agent, AgentKind, Orcid};
use crate::container::Container;
use crate::standard_number::{read_isbn, read_issn};
use crate::text::Text;
use crate::work_fields::{AddText as _, WorkFields};

pub(super) fn read(payload: Element<'_>, fields: &mut WorkFields) {
    let record = if payload.name() == "record" { Some(payload) } else { payload.first("record") };
    let Some(record) = record else { return };
    for field in record.named("datafield") {
        let Some(tag) = field.attribute("tag") else { continue };
        read_names_and_titles(tag, field, fields);
        read_description(tag, field, fields);
        read_identification(tag, field, fields);
    }
    for leader in record.named("leader") {
        fields.core.types.add_value(type_of(leader.value()));
    }
    for control in record.named("controlfield").filter(|field| field.attribute("tag") == Some("008")) {
        let part = |start: usize, end: usize| control.value().get(start..end).unwrap_or_default();
        if fields.core.dates.is_empty() && part(7, 11).bytes().all(|byte| byte.is_ascii_digit()) {
            fields.core.dates.add_value(part(7, 11));
        }
        let language = part(35, 38);
        if fields.core.languages.is_empty() && language.bytes().all(|byte| byte.is_ascii_lowercase()) {
            fields.core.languages.add_value(language);
        }
    }
}

/// The texts of the subfields with one of these codes, in the order of the record.
fn subfields(field: Element<'_>, codes: &str) -> Vec<Text> {
    let is_named =
        |subfield: &Element<'_>| subfield.attribute("code").is_some_and(|code| codes.contains(code));
    field.named("subfield").filter(is_named).filter_map(Element::text).collect()
}

fn subfield(field: Element<'_>, codes: &str) -> Option<Text> {
    subfields(field, codes).into_iter().next()
}

/// A text without the punctuation that catalogues write between fields.
fn without_punctuation(mut text: Text) -> Text {
    text.value = text.value.trim_end_matches([' ', '/', ':', ';', ',', '=']).to_owned();
    text
}

fn read_names_and_titles(tag: &str, field: Element<'_>, fields: &mut WorkFields) {
    match tag {
        "245" => fields.core.titles.add(joined(subfields(field, "abnp"), " ").map(without_punctuation)),
        "246" => fields.core.titles.add(joined(subfields(field, "ab"), " ").map(without_punctuation)),
        "100" | "110" | "111" => fields.creators.extend(agent(tag, field)),
        // With a title the field names a related work.
        "700" | "710" | "711" if subfield(field, "t").is_none() => {
            let agent = agent(tag, field);
            if is_creator(tag, field) {
                fields.creators.extend(agent)
            } else {
                fields.contributors.extend(agent)
            }
        }
        _ => {}
    }
}

fn agent(tag: &str, field: Element<'_>) -> Option<Agent> {
    let is_person = tag.ends_with("00");
    let name = joined(subfields(field, if is_person { "a" } else { "ab" }), " ").map(without_punctuation)?;
    let orcid = subfields(field, "01j").iter().find_map(|text| Orcid::read(&text.value));
    let kind = if is_person { AgentKind::Person } else { AgentKind::Organization };
    Some(Agent { name, kind, orcid })
}

/// Whether an added entry is a creator: a person without role is one.
fn is_creator(tag: &str, field: Element<'_>) -> bool {
    let roles = subfields(field, "e4");
    let names_creator = |role: &Text| {
        let role = role.value.trim_end_matches('.').to_lowercase();
        let role = role.rsplit('/').next().unwrap_or_default();
        ["aut", "cre", "author", "creator", "verfasser", "verfasserin", "auteur", "autor"].contains(&role)
    };
    if roles.is_empty() { tag == "700" } else { roles.iter().any(names_creator) }
}

fn read_description(tag: &str, field: Element<'_>, fields: &mut WorkFields) {
    let core = &mut fields.core;
    match tag {
        "260" | "264" => {
            core.publishers.add(subfield(field, "b").map(without_punctuation));
            core.dates.add(subfield(field, "c"));
        }
        "269" => core.dates.add(subfield(field, "c")),
        "300" => core.formats.add(joined(subfields(field, "abc"), " ")),
        "041" => core.languages.extend(subfields(field, "a")),
        "500" | "505" => core.descriptions.add(joined(subfields(field, "agrt"), " ")),
        "520" => core.descriptions.add(joined(subfields(field, "ab"), " ")),
        "502" => {
            core.types.add_value("Thesis");
            core.publishers.add(subfield(field, "c").map(without_punctuation));
            core.dates.add(subfield(field, "d"));
        }
        "506" | "540" => core.rights.extend(subfields(field, "afu")),
        "600" | "610" | "611" | "630" | "647" | "648" | "650" => core
            .subjects
            .add(joined(subfields(field, "abcdtvxyz").into_iter().map(without_punctuation), "--")),
        "653" => core.subjects.extend(subfields(field, "a")),
        "651" | "751" => core.coverages.add(joined(subfields(field, "axyz"), "--")),
        "655" => core.types.add(subfield(field, "a")),
        "773" => read_host(field, fields),
        _ => {}
    }
}

/// The journal or book: `773` of catalogues (title in `t`, parts in `g`) and of Invenio (`p`, `v`, `n`, `c`).
fn read_host(field: Element<'_>, fields: &mut WorkFields) {
    let value = |codes| subfield(field, codes).map(|text| without_punctuation(text).value);
    let related = value("g").map(|text| Container::read_parts(&text)).unwrap_or_default();
    let mut container = Container {
        title: value("t").or_else(|| value("p")),
        volume: value("v"),
        issue: value("n"),
        issns: subfields(field, "x").iter().filter_map(|text| read_issn(&text.value)).collect(),
        ..Container::default()
    };
    if let Some(pages) = value("c") {
        container.read_pages(&pages);
    }
    container.complete(related);
    fields.container.complete(container);
    fields.core.sources.add(joined(subfields(field, "tpgvnc").into_iter().map(without_punctuation), ", "));
}

fn read_identification(tag: &str, field: Element<'_>, fields: &mut WorkFields) {
    let core = &mut fields.core;
    match tag {
        "020" => {
            for text in subfields(field, "a") {
                // A text such as `(pbk.)` may follow.
                let number = text.value.split(" (").next().unwrap_or_default();
                if let Some(isbn) = read_isbn(&format!("isbn:{number}")) {
                    core.identifiers.add_value(&format!("urn:isbn:{isbn}"));
                }
            }
        }
        "022" => {
            for issn in subfields(field, "a").iter().filter_map(|text| read_issn(&text.value)) {
                core.identifiers.add_value(&format!("urn:issn:{issn}"));
            }
        }
        "024" => {
            let scheme = subfield(field, "2").map(|text| text.value.to_lowercase());
            for text in subfields(field, "a") {
                let is_handle = matches!(scheme.as_deref(), Some("hdl" | "handle"));
                let is_bare = is_handle && !text.value.contains(':');
                core.identifiers.add_value(&if is_bare { format!("hdl:{}", text.value) } else { text.value });
            }
        }
        "856" => {
            // A second indicator of 2 is a related resource.
            let is_related = field.attribute("ind2") == Some("2");
            let list = if is_related { &mut core.relations } else { &mut core.identifiers };
            let urls = subfields(field, "u");
            if !is_related && subfields(field, "3yz").iter().any(|text| names_full_text(&text.value)) {
                fields.full_texts.extend(urls.iter().map(|text| text.value.clone()));
            }
            list.extend(urls);
            core.formats.extend(subfields(field, "q"));
        }
        _ => {}
    }
}

/// Whether a note on a link says that it is the full text.
fn names_full_text(note: &str) -> bool {
    let note = note.to_lowercase();
    ["full text", "fulltext", "full-text", "volltext", "texte intégral", "texto completo", "testo completo"]
        .iter()
        .any(|words| note.contains(words))
}

/// The type of a leader: the type of record and the bibliographic level.
fn type_of(leader: &str) -> &'static str {
    match (leader.get(6..7), leader.get(7..8)) {
        (Some("a" | "t"), Some("m")) => "Book",
        (Some("a"), Some("a")) => "Book chapter",
        (Some("a"), Some("b")) => "Article",
        (Some("e" | "f"), _) => "Map",
        (Some("g"), _) => "Moving image",
        (Some("i" | "j"), _) => "Sound",
        (Some("k"), _) => "Image",
        (Some("m"), _) => "Software",
        _ => "",
    }
}
