//! Pages in flight: each is written once, at the speed of its source, and read by any number of harvesters.

mod page;
mod reader;
mod writer;

pub(super) use page::InFlightOptions;
pub(in crate::serve::oai) use page::{InFlightPage, PageError};
pub(in crate::serve::oai) use reader::Reader;
pub(super) use writer::Writer;
