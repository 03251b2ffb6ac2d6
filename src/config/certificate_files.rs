//! The keys of a certificate and its private key, as the mapping and `oaimend.toml` have them.

use super::keys::{Keys, path};
use oaimend_base::certificate::{CertificateFault, CertificateFiles};
use std::path::Path;

/// Declares the two keys, and checks their files. One key without the other is a fault.
pub(super) fn declare(
    files: &mut Option<CertificateFiles>,
    keys: &mut Keys<'_, '_>,
    folder: &Path,
    names: [&'static str; 2],
) {
    let (mut certificate, mut key) = files.take().map(|files| (files.certificate, files.key)).unzip();
    let [certificate_key, key_key] = names;
    keys.key(
        certificate_key,
        path("file", folder),
        &mut certificate,
        "PEM file with the certificate, followed by its chain.",
    );
    keys.key(
        key_key,
        path("file", folder),
        &mut key,
        "PEM file with the private key of this certificate, without a passphrase.",
    );
    keys.pair(names, "both");
    *files = certificate.zip(key).map(|(certificate, key)| CertificateFiles { certificate, key });
    if let (Some(table), Some(files)) = (keys.reading(), files) {
        match files.load() {
            Ok(_) => {}
            Err(CertificateFault::Certificate(why)) => table.report_value(certificate_key, &why),
            Err(CertificateFault::Key(why)) => table.report_value(key_key, &why),
        }
    }
}
