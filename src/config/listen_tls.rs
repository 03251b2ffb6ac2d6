//! The listener with TLS: the table `[listen_tls]` of `oaimend.toml`.

use super::certificate_files;
use super::file::{Table, read_address};
use oaimend_base::certificate::CertificateFiles;
use std::net::SocketAddr;
use std::path::Path;

/// The listener with TLS, beside the one without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// Its address.
    pub address: SocketAddr,
    /// Its certificate and key. They are read again when they change.
    pub files: CertificateFiles,
}

impl ListenTls {
    /// Reads `[listen_tls]`, if it exists. Relative paths start at `folder`.
    pub(super) fn read(root: &mut Table<'_, '_>, folder: &Path) -> Option<Self> {
        let mut table = root.take_table("listen_tls");
        let address = table.read_parsed("address", read_address);
        let files = certificate_files::read(&mut table, folder, "certificate", "key");
        for (key, expected) in
            [("address", "an address such as \"0.0.0.0:8443\""), ("certificate", "a PEM file")]
        {
            let is_wanted = root.has_key("listen_tls") && !table.has_key(key);
            // A key without a certificate has a fault already.
            if is_wanted && !(key == "certificate" && table.has_key("key")) {
                table.report_missing(format!("listen_tls.{key} is missing; expected {expected}"));
            }
        }
        table.finish();
        Some(Self { address: address?, files: files? })
    }
}
