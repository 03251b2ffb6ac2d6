//! The pages of docs/ that come from the catalogue.

use std::fmt::Write;

use oaimend::repair::catalogue::{CATALOGUE, Certainty, Effect, Entry};

/// docs/reference/repairs.md, from the catalogue.
pub(crate) fn repairs() -> String {
    let mut page = String::from(INTRODUCTION);
    for (number, entry) in CATALOGUE.iter().enumerate() {
        section(&mut page, entry).unwrap_or_else(|error| panic!("repair {number}: {error}"));
    }
    page
}

const INTRODUCTION: &str = "\
# Repairs

Every repair that oaimend makes, in the order in which a response meets them.
Made from src/repair/catalogue.rs by `OAIMEND_BLESS=1 cargo test --test core tidy`;
`oaimend explain NAME` prints the same. What is never repaired stands in
[unrepairable.md](unrepairable.md).

Certainty: *exact* means that only one reading fits the bytes, or that XML
itself forces the change; *likely*, that a table or a strong sign says so;
*guess*, that it is plausible and no more, so it is off unless a mapping turns
it on; *rewrite* is what the proxy says of itself and no repair at all. In the
examples `\\xE9` stands for a byte that is no UTF-8.

Most repairs are of form: what came can mean only this, and a reader gets the
characters, elements, attributes and namespaces that were meant. A repair of
content gives something else than came, leaves something out, or chooses among
readings; one that may do so is called that altogether. Where a mapping asks for
[provenance](configuration.md), these are what makes a record an altered one,
if they touch its payload.
";

fn section(page: &mut String, entry: &Entry) -> std::fmt::Result {
    let off = if entry.certainty == Certainty::Guess { ", off unless a mapping turns it on" } else { "" };
    let effect = if entry.effect == Effect::Content { " Of content." } else { "" };
    write!(
        page,
        "\n## {}\n\nCertainty: {}{off}.{effect}\n\n{}\n\n{}\n\n```\nbefore: {}\nafter:  {}\n```\n",
        entry.name,
        entry.certainty.name(),
        entry.what,
        entry.why,
        example(entry.before),
        example(entry.after)
    )
}

/// An example on one line, invisible characters spelt out.
fn example(text: &str) -> String {
    text.replace('\n', "\\n").replace('\u{feff}', "\\xEF\\xBB\\xBF")
}
