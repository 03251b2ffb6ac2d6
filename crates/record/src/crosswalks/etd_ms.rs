//! ETD-MS 1.0 and 1.1: electronic theses and dissertations.

use super::element::Element;
use super::qualified_dublin_core;
use crate::work_fields::{AddText as _, WorkFields};

pub(super) fn read(thesis: Element<'_>, fields: &mut WorkFields) {
    for element in thesis.children() {
        match (element.name(), element.prose()) {
            ("alternativeTitle", text) => fields.core.titles.add(text.map(|text| text.on_one_line())),
            ("degree", _) => {
                fields.core.subjects.extend(element.texts("discipline"));
                fields.core.publishers.extend(element.texts("grantor"));
            }
            (_, Some(text)) => qualified_dublin_core::add(element, text, fields),
            (_, None) => {}
        }
    }
    fields.core.types.add_value("Thesis");
}
