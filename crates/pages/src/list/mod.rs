//! The lists of the records of a repository: months, and fixed ranges of sequence numbers inside them.
//!
//! The store gives each change of a record the next sequence number, at the time of the commit. A changed record moves to
//! the end. A list of the records of one month and one range of sequences is called a bin. New records never enter the
//! range of an old bin, so the URL of a bin stays the same while records are added, and a bin has at most 1,000 records.
//!
//! Pure: no I/O, no clock.

mod address;
mod browse;
mod month;
mod range;
mod title;

pub use address::{ListAddress, ListPart, ListTarget, SetFeedAddress, SetsAddress};
pub use browse::{BrowseAddress, BrowsedField};
pub use month::Month;
pub use range::{LINKS_MAX, SequenceRange};
pub use title::{first_title, title_of};
