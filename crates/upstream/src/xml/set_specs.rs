//! The setSpecs of an item that look escaped.

use oaimend_oai::set_spec;
use oaimend_repair::Span;
use oaimend_store::SetUsage;
use std::collections::BTreeMap;

/// The setSpecs of an item that look escaped. Each occurrence in `written`, the texts that we wrote into
/// the item, replaces another setSpec; further occurrences are the source's own.
pub(crate) fn escaped_sets(
    item: &[u8],
    set_specs: &[Span],
    written: &[Vec<u8>],
) -> BTreeMap<String, SetUsage> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for span in set_specs {
        let name = String::from_utf8_lossy(span.slice(item)).trim().to_owned();
        if set_spec::unescape(&name).is_some() {
            *counts.entry(name).or_default() += 1;
        }
    }
    let seen = counts.into_iter().map(|(name, count)| {
        // The text of a setSpec, or the element that was moved.
        let element = format!(">{name}<");
        let in_text = |text: &Vec<u8>| {
            if text == name.as_bytes() { 1 } else { memchr::memmem::find_iter(text, &element).count() }
        };
        let ours: usize = written.iter().map(in_text).sum();
        (name, SetUsage { escaped: ours > 0, legal: count > ours })
    });
    seen.collect()
}
