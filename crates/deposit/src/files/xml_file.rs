//! A file of XML: metadata, or records of OAI-PMH.

use super::FileRecord;
use super::naming::FileNaming;
use crate::deposit::{Deposit, Payload};
use crate::dublin_core::DUBLIN_CORE;
use crate::error::DepositError;
use crate::written_list::read_list;
use oaimend_repository::xml::{NamespaceReader, XmlEvent, XmlReader};

/// The namespace of OAI-PMH.
const OAI_PMH: &str = "http://www.openarchives.org/OAI/2.0/";

pub(super) fn read(content: &[u8], naming: &FileNaming<'_>) -> Result<Vec<FileRecord>, DepositError> {
    if is_response(content) {
        return of_response(content, naming);
    }
    let payload = Payload::read(content)?;
    let prefix = naming.prefix_of(&payload.namespace)?;
    let deposit = Deposit::new(&naming.identifier_of_file(), naming.set_specs, Some(payload))?;
    Ok(vec![FileRecord { prefix, deposit }])
}

/// Whether the root element is that of a response.
fn is_response(content: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content);
    let mut reader = NamespaceReader::new(XmlReader::new(&text));
    while let Ok(Some(event)) = reader.read() {
        if let XmlEvent::Start(tag) = event {
            return tag.local_name() == "OAI-PMH"
                && reader.namespace(tag).is_ok_and(|found| found == OAI_PMH);
        }
    }
    false
}

fn of_response(content: &[u8], naming: &FileNaming<'_>) -> Result<Vec<FileRecord>, DepositError> {
    let deposits = read_list(content)?;
    let live = deposits.iter().find_map(|deposit| deposit.payload.as_ref());
    // A deleted record has the format of the others.
    let common = match (live, naming.prefix) {
        (_, Some(prefix)) => prefix.to_owned(),
        (Some(payload), None) => naming.prefix_of(&payload.namespace)?,
        (None, None) => DUBLIN_CORE.to_owned(),
    };
    let record = |mut deposit: Deposit| {
        let prefix = match &deposit.payload {
            Some(payload) => naming.prefix_of(&payload.namespace)?,
            None => common.clone(),
        };
        // A deletion is in the sets that the record was in.
        if deposit.payload.is_some() && deposit.set_specs.is_empty() {
            deposit.set_specs = naming.set_specs.to_vec();
        }
        Ok(FileRecord { prefix, deposit })
    };
    deposits.into_iter().map(record).collect()
}
