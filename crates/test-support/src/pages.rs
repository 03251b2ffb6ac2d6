//! Generates the pages of docs/ about the catalog.

use std::fmt::Write;

use oaimend_repair::catalog::{CATALOG, CatalogEntry, Certainty, Effect};

/// docs/reference/repairs.md, from the catalog.
pub fn repairs() -> String {
    let mut page = String::from(INTRODUCTION);
    for (number, entry) in CATALOG.iter().enumerate() {
        section(&mut page, entry).unwrap_or_else(|error| panic!("repair {number}: {error}"));
    }
    page
}

const INTRODUCTION: &str = "\
# Repairs

This page lists every repair of oaimend, in the order in which a response meets them. It is generated from
the catalog by `OAIMEND_BLESS=1 cargo test --test program tidy`. `oaimend explain NAME`
prints one entry. [unrepairable.md](unrepairable.md) lists the defects that are never repaired.

| certainty | meaning |
|---|---|
| exact | the bytes have only one reading, or XML requires the change |
| likely | a table or a strong sign supports the reading |
| guess | the reading is plausible, but not certain. The repair is off unless a mapping enables it (`repairs.enable`) |
| rewrite | not a repair: the proxy writes its own data |

| effect | meaning |
|---|---|
| form | the notation changes, but not the characters, elements, attributes and namespaces that a reader gets |
| content | the content changes, loses a part, or is one of several readings |

A repair that can have both effects counts as a repair of content. Repairs of content inside a payload make a record
*altered*, see [provenance descriptions](report.md#provenance-descriptions).

In the examples `\\xE9` is a byte that is not UTF-8.
";

fn section(page: &mut String, entry: &CatalogEntry) -> std::fmt::Result {
    let effect = match (entry.certainty, entry.effect) {
        (Certainty::Rewrite, _) => "",
        (_, Effect::Form) => " Effect: form.",
        (_, Effect::Content) => " Effect: content.",
    };
    write!(
        page,
        "\n## {}\n\nCertainty: {}.{effect}\n\n{}\n\n{}\n\n```\nbefore: {}\nafter:  {}\n```\n",
        entry.name,
        entry.certainty.name(),
        entry.what,
        entry.why,
        example(entry.before),
        example(entry.after)
    )
}

/// An example on one line, with escapes for invisible characters.
fn example(text: &str) -> String {
    text.replace('\n', "\\n").replace('\u{feff}', "\\xEF\\xBB\\xBF")
}
