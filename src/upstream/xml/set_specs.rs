//! The setSpecs of an item that look escaped.

use crate::oai::set_spec;
use crate::store::SetUsage;
use crate::upstream::xml::text::text_after;
use quick_xml::events::Event;
use std::collections::BTreeMap;

/// The setSpecs of an item that look escaped. Each occurrence in `written`, the texts that we wrote into
/// the item, stands in place of another setSpec; further occurrences are the source's own.
pub(crate) fn sets_of(item: &[u8], written: &[Vec<u8>]) -> BTreeMap<String, SetUsage> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let text = String::from_utf8_lossy(item);
    let mut reader = quick_xml::Reader::from_str(&text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) if tag.local_name().as_ref() == "setSpec" => {
                let name = text_after(&text, reader.buffer_position());
                if let Some(name) = name.filter(|name| set_spec::unescape(name).is_some()) {
                    *counts.entry(name).or_default() += 1;
                }
            }
            // The header ends before these.
            Ok(Event::End(tag)) if tag.local_name().as_ref() == "header" => break,
            Ok(Event::Start(tag)) if matches!(tag.local_name().as_ref(), "setName" | "metadata") => break,
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let seen = counts.into_iter().map(|(name, count)| {
        // The text of a setSpec, or the element that was moved.
        let element = format!(">{name}<");
        let in_text = |text: &Vec<u8>| match text == name.as_bytes() {
            true => 1,
            false => memchr::memmem::find_iter(text, &element).count(),
        };
        let ours: usize = written.iter().map(in_text).sum();
        (name, SetUsage { escaped: ours > 0, legal: count > ours })
    });
    seen.collect()
}
