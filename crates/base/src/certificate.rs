//! A certificate and its private key in PEM files, read again when they change.
//!
//! Sources that require a client certificate and the TLS listener use it.
//!
//! Invariants: no message and no `Debug` output contains the key. New files that cannot be used leave the previous pair
//! in effect.

use crate::clock;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_cert::der::Decode as _;

/// How long before the end of a certificate the warnings begin.
pub const EXPIRY_WARNING: Duration = Duration::from_secs(14 * SECS_PER_DAY);
const SECS_PER_DAY: u64 = 86_400;
/// Maximum number of bytes of a file with certificates or with a key.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// The files of a certificate and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those that lead to a root, in PEM.
    pub certificate: PathBuf,
    /// The private key in PEM, without a passphrase.
    pub key: PathBuf,
}

/// A certificate and its private key, ready for use.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The chain and the key.
    pub certified: Arc<CertifiedKey>,
    /// The end of the validity of the first certificate; `None` if it cannot be read.
    pub expires: Option<SystemTime>,
}

/// Why the files cannot be used. The text follows the path of the file, and names the expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// The fault is in the file of the certificate.
    Certificate(String),
    /// The fault is in the file of the key.
    Key(String),
}

impl Certificate {
    /// The warning if the certificate has expired or expires soon. `now` is the current time.
    pub fn expiry_warning(&self, now: SystemTime) -> Option<String> {
        let expires = self.expires?;
        let at = clock::utc_datetime(expires);
        match expires.duration_since(now) {
            Ok(left) if left >= EXPIRY_WARNING => None,
            Ok(left) => {
                let days = left.as_secs() / SECS_PER_DAY;
                Some(format!("the certificate expires at {at}, in {days} days; replace it by a new one"))
            }
            Err(_) => Some(format!("the certificate has expired at {at}; replace it by a new one")),
        }
    }
}

impl CertificateFiles {
    /// Reads both files.
    ///
    /// # Errors
    ///
    /// A file cannot be read, contains something else, or the key is not that of the certificate.
    pub fn load(&self) -> Result<Certificate, CertificateFault> {
        let chain = read_chain(&self.certificate).map_err(CertificateFault::Certificate)?;
        let key = read_key(&self.key).map_err(CertificateFault::Key)?;
        let signing = ring().key_provider.load_private_key(key).map_err(|_| {
            CertificateFault::Key(
                "is not a key that can be used; expected RSA with 2048 bits or more, ECDSA (P-256, P-384) or Ed25519"
                    .to_owned(),
            )
        })?;
        let expires = chain.first().and_then(|leaf| expiry(leaf));
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => {
                let certificate = self.certificate.display();
                return Err(CertificateFault::Key(format!(
                    "does not belong to the certificate; expected the key of the first certificate in {certificate}"
                )));
            }
            Err(error) => {
                return Err(CertificateFault::Certificate(format!(
                    "contains a certificate that cannot be used ({error}); expected one of X.509 version 3"
                )));
            }
        }
        Ok(Certificate { certified: Arc::new(certified), expires })
    }

    /// The text of a fault, with the path of its file.
    pub fn explain(&self, fault: &CertificateFault) -> String {
        match fault {
            CertificateFault::Certificate(why) => format!("{} {why}", self.certificate.display()),
            CertificateFault::Key(why) => format!("{} {why}", self.key.display()),
        }
    }

    /// The line at which the first certificate begins in its file, from 1.
    pub fn first_line(&self) -> usize {
        let text = read_limited(&self.certificate).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        1 + text.lines().position(|line| line.starts_with(CERTIFICATE_START)).unwrap_or(0)
    }

    fn stamps(&self) -> [FileStamp; 2] {
        [&self.certificate, &self.key].map(|path| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok(), meta.len(), meta.ino()))
        })
    }
}

/// Modification time, length and inode of a file; a difference means that it changed. `None`: it cannot be read.
type FileStamp = Option<(Option<SystemTime>, u64, u64)>;

/// The pair that is in effect.
#[derive(Debug)]
pub struct CurrentCertificate {
    files: CertificateFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    seen: [FileStamp; 2],
    current: Certificate,
}

/// The result of [`CurrentCertificate::refresh`].
#[derive(Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// The files have not changed.
    Unchanged,
    /// The new pair is in effect.
    Changed,
    /// The files have changed and cannot be used. The previous pair stays in effect.
    Kept(String),
}

impl CurrentCertificate {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// As [`CertificateFiles::load`].
    pub fn load(files: &CertificateFiles) -> Result<Self, CertificateFault> {
        // Stamps first: a change while the files are read is found later.
        let seen = files.stamps();
        let current = files.load()?;
        Ok(Self { files: files.clone(), state: Mutex::new(State { seen, current }) })
    }

    /// Reads the files again if one of them has changed.
    pub fn refresh(&self) -> Refreshed {
        let now = self.files.stamps();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now == state.seen {
            return Refreshed::Unchanged;
        }
        state.seen = now;
        match self.files.load() {
            Ok(pair) => {
                state.current = pair;
                Refreshed::Changed
            }
            Err(fault) => Refreshed::Kept(self.files.explain(&fault)),
        }
    }

    /// The pair that is in effect.
    pub fn current(&self) -> Certificate {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).current.clone()
    }
}

/// The cryptography of all TLS connections.
pub fn ring() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let expected = "expected a file with PEM certificates, that of this program first";
    let pem = read_limited(path).map_err(|why| format!("cannot be read: {why}; {expected}"))?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(format!("contains no certificate; {expected}")),
        Err(error) => Err(format!("contains broken PEM ({error}); {expected}")),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let expected = "expected a file with a private key in PEM, without a passphrase";
    let pem = read_limited(path).map_err(|why| format!("cannot be read: {why}; {expected}"))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
        let is_encrypted = pem.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED);
        let found =
            if is_encrypted { "contains an encrypted private key" } else { "contains no private key" };
        format!("{found}; {expected}")
    })
}

fn read_limited(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(PEM_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > PEM_BYTES_MAX {
        return Err(format!("it is longer than {PEM_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

fn expiry(certificate: &[u8]) -> Option<SystemTime> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    let since_1970: Duration = certificate.tbs_certificate.validity.not_after.to_unix_duration();
    UNIX_EPOCH.checked_add(since_1970)
}

const CERTIFICATE_START: &str = "-----BEGIN CERTIFICATE-----";
/// Part of the first line of an encrypted key, and of the header of an older form.
const ENCRYPTED: &[u8] = b"ENCRYPTED";
