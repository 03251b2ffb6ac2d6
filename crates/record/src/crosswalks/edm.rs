//! EDM, the Europeana Data Model, as RDF/XML.

use super::element::Element;
use super::qualified_dublin_core;
use crate::text::Text;
use crate::work_fields::{AddText as _, WorkFields};
use std::collections::HashMap;

/// The elements of a resource in the same document, by its URI.
type Labels<'d> = HashMap<&'d str, Text>;

/// Reads the object that is provided and its aggregation. Other RDF has neither of them.
pub(super) fn read(rdf: Element<'_>, fields: &mut WorkFields) {
    let labels: Labels<'_> = rdf
        .children()
        .filter_map(|resource| Some((resource.attribute("about")?, resource.first("prefLabel")?.text()?)))
        .collect();
    for object in rdf.named("ProvidedCHO") {
        for element in object.children() {
            // `edm:type` is `TEXT`, `IMAGE`, `SOUND`, `VIDEO` or `3D`.
            if let Some(text) = text_of(element, &labels) {
                qualified_dublin_core::add(element, text, fields);
            }
        }
    }
    let is_text = fields.core.types.iter().any(|text| text.value.eq_ignore_ascii_case("text"));
    for aggregation in rdf.named("Aggregation") {
        for element in aggregation.children() {
            let target = element.attribute("resource").unwrap_or_default();
            match element.name() {
                "isShownAt" => fields.core.identifiers.add_value(target),
                "isShownBy" if is_text => {
                    fields.core.identifiers.add_value(target);
                    fields.full_texts.push(target.to_owned());
                }
                "isShownBy" => fields.core.relations.add_value(target),
                "rights" => fields.core.rights.add(text_of(element, &labels)),
                "dataProvider" => fields.core.publishers.add(text_of(element, &labels)),
                _ => {}
            }
        }
    }
}

/// The text of an element, or the label of the resource to which it refers, or the URI of that resource.
fn text_of(element: Element<'_>, labels: &Labels<'_>) -> Option<Text> {
    let referred = || {
        let target = element.attribute("resource")?;
        let uri = || Text { value: target.to_owned(), ..Text::default() };
        Some(labels.get(target).cloned().unwrap_or_else(uri))
    };
    element.prose().or_else(referred)
}
