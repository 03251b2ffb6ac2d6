//! The listener with TLS: the table `[listen_tls]` of `oaimend.toml`.

use super::certificate_files;
use super::keys::{Keys, Text, declare, text};
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

/// The keys of the table. Relative paths start at `folder`.
pub(super) fn declare(listener: &mut Option<ListenTls>, keys: &mut Keys<'_, '_>, folder: &Path) {
    let (mut address, mut files) = (None, None);
    declare! { keys:
        /// IP address and port of a second listener for harvesters, with TLS.
        address: listen_address() => address,
    }
    certificate_files::declare(&mut files, keys, folder, ["certificate", "key"]);
    keys.require("address", "listen_tls.address is missing; expected an address such as \"0.0.0.0:8443\"");
    // One of the two without the other has a fault already.
    if keys.reading().is_none_or(|table| !table.has_key("key")) {
        keys.require("certificate", "listen_tls.certificate is missing; expected a PEM file");
    }
    if keys.reading().is_none_or(|table| !table.has_key("certificate")) {
        keys.require("key", "listen_tls.key is missing; expected a PEM file");
    }
    *listener = address.zip(files).map(|(address, files)| ListenTls { address, files });
}

/// The address of a listener.
pub(super) fn listen_address() -> Text<'static, SocketAddr> {
    text("address", read_address, |address| Some(address.to_string()))
}

/// Reads the address of a listener; the error text names the expected value.
pub(super) fn read_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "is not an address; expected an IP address and a port such as \"127.0.0.1:8080\"".to_owned()
    })
}
