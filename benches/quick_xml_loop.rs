//! The baseline of `benches/compare`: copies stdin to stdout through quick-xml, event by event.

use std::io::{self, BufReader, BufWriter, Write as _};

use quick_xml::events::Event;
use quick_xml::{Reader, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = Reader::from_reader(BufReader::with_capacity(256 << 10, io::stdin().lock()));
    let mut writer = Writer::new(BufWriter::with_capacity(256 << 10, io::stdout().lock()));
    let mut buffer = Vec::new();
    loop {
        match reader.read_event_into(&mut buffer)? {
            Event::Eof => break,
            event => writer.write_event(event)?,
        }
        buffer.clear();
    }
    writer.into_inner().flush()?;
    Ok(())
}
