//! The limits of tapes, each with its unit in its name.

/// Longest `tapeRecord` or `tapeAdmin` element, in bytes. The repair engine holds records of 8 MiB.
pub(crate) const RECORD_BYTES_MAX: usize = 32 << 20;
/// Longest gzip member that an index refers to, in bytes of XML: a reader inflates one member to reach a record.
pub(crate) const MEMBER_BYTES_MAX: u64 = 64 << 20;
/// A member of our tapes ends after the record with which it has this number of bytes of XML. gzip looks back 32 KiB, so
/// longer members are hardly shorter on disk, and a reader inflates a whole one for each record.
pub(crate) const MEMBER_BYTES: usize = 64 << 10;
/// Maximum number of gzip members that begin in one element of a tape, with 16 bytes of memory each. Members of our tapes
/// contain whole records.
pub(crate) const MEMBERS_HELD_MAX: usize = 1 << 20;
/// Longest catalog of an index, in bytes. It is read into memory.
pub(crate) const CATALOG_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of formats of a tape.
pub(crate) const FORMATS_MAX: usize = 1_000;
/// Maximum number of sets of a tape.
pub(crate) const SETS_MAX: usize = 200_000;
/// Maximum number of sets that a record names.
pub(crate) const RECORD_SETS_MAX: usize = 1_000;
/// Longest setSpec, in bytes.
pub(crate) const SET_SPEC_BYTES_MAX: usize = 1_024;
/// Longest metadataPrefix, in bytes.
pub(crate) const PREFIX_BYTES_MAX: usize = 256;
/// Maximum number of different combinations of sets that the records of a tape are in.
pub(crate) const SET_COMBINATIONS_MAX: usize = 2_000_000;
/// Maximum number of records of a tape in all formats.
pub(crate) const RECORDS_MAX: u64 = u32::MAX as u64;
/// Maximum number of records with an identifier that occurs again, which are held in memory while a tape is made.
pub(crate) const DUPLICATES_MAX: usize = 5_000_000;
/// Memory for the sort of an index, in bytes; longer tables are sorted in temporary files.
pub(crate) const SORT_BYTES: usize = 64 << 20;
