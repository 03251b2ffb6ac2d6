//! What wrappers of records have in common: an identifier of their own, and those of their content.

use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use blake2::digest::consts::U16;
use blake2::{Blake2s, Digest};
use oaimend_oai::datestamp::{Granularity, from_secs, to_secs};
use oaimend_record::{DublinCore, RecordLinks};

/// The identifier of the wrapper of a record: a UUID of version 8 (RFC 9562, section 5.8), as a URN. It is the same for
/// the same version of a record in the same format, and another one for every other version.
pub(super) fn wrapper_identifier(record: &SourceRecord<'_>, format: &str) -> String {
    let mut hash = Blake2s::<U16>::new();
    for part in [format, record.prefix, record.identifier, record.datestamp] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes: [u8; 16] = hash.finalize().into();
    bytes[6] = bytes[6] & 0x0F | 0x80;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let digits = hex::encode(bytes);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// The identifier of the record, and the URLs by which its metadata identifies the work.
///
/// # Errors
///
/// Those of [`SourceRecord::document`].
pub(super) fn content_identifiers(record: &SourceRecord<'_>) -> Result<Vec<String>, Unconverted> {
    let core = DublinCore::of(&record.document()?);
    let links = RecordLinks::identifying(&core).identifying.into_iter().map(|link| link.url);
    Ok(std::iter::once(record.identifier.to_owned()).chain(links).collect())
}

/// The datestamp of a record as a time of XML Schema.
pub(super) fn date_time(datestamp: &str) -> String {
    to_secs(datestamp).map_or_else(|| datestamp.to_owned(), |secs| from_secs(secs, Granularity::Second))
}
