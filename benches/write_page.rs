//! Writes a page of benches/pages.rs to stdout: `write_page oai_dc|marcxml RECORDS PER_MILLE_BROKEN`.

mod pages;

use std::io::Write as _;

use pages::{Format, page};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [format, records, broken] = &arguments[..] else {
        return Err("usage: write_page oai_dc|marcxml RECORDS PER_MILLE_BROKEN".into());
    };
    let format = match &format[..] {
        "oai_dc" => Format::OaiDc,
        "marcxml" => Format::Marcxml,
        other => return Err(format!("no such format: {other}").into()),
    };
    let page = page(format, records.parse()?, broken.parse()?, 20_261_121);
    std::io::stdout().write_all(&page)?;
    Ok(())
}
