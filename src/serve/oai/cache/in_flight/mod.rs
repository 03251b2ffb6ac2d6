//! Pages in flight: each is written once, at the speed of its source, and read by any number of harvesters.

mod memory;
mod page;
mod reader;
mod writer;

#[cfg(test)]
pub(super) use memory::IN_FLIGHT_BYTES_MAX;
pub(super) use memory::SharedMemory;
pub(super) use page::InFlightOptions;
pub(in crate::serve::oai) use page::{InFlightPage, PageError};
pub(in crate::serve::oai) use reader::Reader;
pub(super) use writer::Writer;
