//! The keys of a certificate and its private key, as the mapping and `oaimend.toml` have them.

use super::file::{Located, Table};
use oaimend_base::certificate::{CertificateFault, CertificateFiles};
use std::path::Path;

/// Reads the paths of two keys, relative to `folder`, and checks the files. One key without the other is a fault.
pub(super) fn read(
    table: &mut Table<'_, '_>,
    folder: &Path,
    certificate_key: &'static str,
    key_key: &'static str,
) -> Option<CertificateFiles> {
    let certificate = table.read_string(certificate_key);
    let key = table.read_string(key_key);
    for (given, missing) in [(certificate_key, key_key), (key_key, certificate_key)] {
        if table.has_key(given) && !table.has_key(missing) {
            let [given, missing] = [given, missing].map(|key| table.full_key(key));
            table.report_missing(format!("{given} is set without {missing}; expected both"));
        }
    }
    let (certificate, key) = (certificate?, key?);
    let files =
        CertificateFiles { certificate: folder.join(&certificate.value), key: folder.join(&key.value) };
    let report = |name: &str, path: &Located<String>, why: &str| {
        let value = path.value.escape_debug();
        table.report_fault(path.span.clone(), format!("{} = \"{value}\" {why}", table.full_key(name)));
    };
    match files.load() {
        Ok(_) => return Some(files),
        Err(CertificateFault::Certificate(why)) => report(certificate_key, &certificate, &why),
        Err(CertificateFault::Key(why)) => report(key_key, &key, &why),
    }
    None
}
