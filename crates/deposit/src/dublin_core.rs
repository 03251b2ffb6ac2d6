//! The `oai_dc` of items that are written in another format.

use crate::deposit::{Deposit, Payload};
use oaimend_crosswalks::{BUILT_IN, Crosswalk, NotConverted, SourceRecord};
use oaimend_oai::UnixSecs;
use oaimend_repository::{DeliveredRecord, Failure, RecordView};
use oaimend_store::{ListedFormat, RecordRepairs, StoredRecord};

/// The format that OAI-PMH 2.0 demands of each item (section 3.4).
pub(crate) const DUBLIN_CORE: &str = "oai_dc";
/// Its namespace and its schema.
pub(crate) const DUBLIN_CORE_NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
pub(crate) const DUBLIN_CORE_SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd";

/// The built-in crosswalk to `oai_dc`; `None` only if its row is missing.
pub(crate) fn crosswalk() -> Option<Crosswalk> {
    let row = BUILT_IN.iter().find(|row| row.prefix == DUBLIN_CORE)?;
    Some(Crosswalk::built_in(row, ""))
}

/// `oai_dc` of a record in another format; `None` if no crosswalk makes it.
///
/// # Errors
///
/// No record can be converted now.
pub(crate) async fn dublin_core_of(
    deposit: &Deposit,
    format: &ListedFormat,
) -> Result<Option<Payload>, Failure> {
    let Some(crosswalk) = crosswalk() else { return Ok(None) };
    if deposit.payload.is_none() || crosswalk.source.among(std::slice::from_ref(format)).is_none() {
        return Ok(None);
    }
    let record = deposit.to_record(UnixSecs(0));
    let record = DeliveredRecord {
        identifier: deposit.identifier.clone(),
        datestamp: String::new(),
        deleted: false,
        set_specs: deposit.set_specs.clone(),
        xml: String::from_utf8_lossy(&record.bytes).into_owned(),
        datestamp_at: 0..0,
        repairs: RecordRepairs::default(),
    };
    let converted = match SourceRecord::read(&record, &format.prefix) {
        Ok(source) => crosswalk.conversion.convert(&source).await,
        Err(why) => Err(why.into()),
    };
    match converted {
        Ok(xml) => Ok(Some(Payload {
            xml: format!("<metadata>{xml}</metadata>"),
            namespace: crosswalk.namespace,
            schema: Some(crosswalk.schema),
        })),
        Err(NotConverted::Record(_)) => Ok(None),
        Err(NotConverted::Now(failure)) => Err(failure),
    }
}

/// A stored record as it was written; `None` for a deleted one, and for a harvested one, whose element may declare the
/// namespaces of its content.
pub(crate) fn written(record: &StoredRecord) -> Option<Deposit> {
    let text = str::from_utf8(&record.bytes).ok().filter(|text| text.starts_with("<record>"))?;
    let view = RecordView::read(text)?;
    let end = text.rfind("</").filter(|&end| end > view.header().end)?;
    let xml = text.get(view.header().end..end)?.to_owned();
    let payload = Payload { xml, namespace: String::new(), schema: None };
    Some(Deposit {
        identifier: record.identifier.clone(),
        set_specs: record.set_specs.to_vec(),
        payload: Some(payload),
    })
}
