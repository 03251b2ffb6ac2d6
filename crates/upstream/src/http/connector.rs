//! Makes and keeps the connections to a server: name resolution within its [`Reach`], TCP, TLS.
//!
//! The client follows no redirect and decodes nothing. The readers of responses do that.

use crate::http::address::Reach;
use crate::http::proxy::{BoxError, Proxies, Route, RoutedStream};
use crate::settings::SourceMapping;
use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use oaimend_base::certificate::{CurrentCertificate, Refreshed, ring};
use oaimend_base::clock;
use oaimend_repository::{Failure, Reason};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;
use url::{Origin, Url};

/// An HTTP client that keeps the connections of one server open.
pub(crate) type Http = Client<Connector, Full<Bytes>>;

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of idle connections to one server. Each holds a buffer of [`BUFFER_BYTES_MAX`].
const IDLE_CONNECTIONS_MAX: usize = 16;
/// Maximum number of bytes of a response that are read at once, and of the headers of a response.
const BUFFER_BYTES_MAX: usize = 128 << 10;
/// TCP keepalive: the idle time before the first probe, the time between probes, and their number.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 3;
/// The TCP user timeout. Without it, a connection of HTTP/2 to a vanished server would be reused
/// repeatedly.
#[cfg(target_os = "linux")]
const UNHEARD_MAX: Duration = Duration::from_secs(30);

/// How connections are made.
#[derive(Debug)]
pub(crate) struct ConnectOptions<'a> {
    /// The addresses that connections may use.
    pub(crate) reach: Reach,
    /// A file of PEM certificates that may sign the certificate of the server, in addition to the usual ones.
    pub(crate) ca_file: Option<&'a Path>,
    /// Whether the certificate of the server is verified.
    pub(crate) verify: bool,
    /// The longest time for a connection, TLS included.
    pub(crate) timeout: Duration,
    /// The proxies of requests.
    pub(crate) proxies: Proxies,
    /// The client certificate, and the only origin that receives it.
    pub(crate) client_certificate: Option<(Origin, CurrentCertificate)>,
}

impl<'a> ConnectOptions<'a> {
    /// The options for the source of a mapping.
    ///
    /// # Errors
    ///
    /// Its client certificate cannot be read.
    pub(crate) fn of_source(
        mapping: &'a SourceMapping,
        reach: Reach,
        proxies: Proxies,
    ) -> Result<Self, Failure> {
        let client_certificate = match &mapping.access.tls.client_certificate {
            None => None,
            Some(files) => {
                let certificate = CurrentCertificate::load(files).map_err(|fault| {
                    unusable(&format!("tls.client_certificate cannot be used: {}", files.explain(&fault)))
                })?;
                if let Some(warning) = certificate.current().expiry_warning(clock::now()) {
                    tracing::warn!(repository = mapping.id, "tls.client_certificate: {warning}");
                }
                Some((mapping.base_url.origin(), certificate))
            }
        };
        let (ca_file, timeout) = (mapping.access.tls.ca_file.as_deref(), mapping.timeouts.connect);
        Ok(Self { reach, ca_file, verify: mapping.access.tls.verify, timeout, proxies, client_certificate })
    }
}

/// A client with these options.
///
/// # Errors
///
/// Its certificates cannot be read.
pub(crate) fn http(options: ConnectOptions<'_>) -> Result<Http, Failure> {
    let ConnectOptions { reach, timeout, .. } = options;
    let proxies = options.proxies.clone();
    let route = Route { direct: tcp(reach, timeout), to_proxy: tcp(Reach::Any, timeout), proxies };
    let over_tls = |config: ClientConfig| {
        let tls = HttpsConnectorBuilder::new().with_tls_config(config);
        tls.https_or_http().enable_all_versions().wrap_connector(route.clone())
    };
    let mut config = tls(&options)?;
    let others = over_tls(config.clone());
    let authenticated = match options.client_certificate {
        None => None,
        Some((origin, certificate)) => {
            config.client_auth_cert_resolver = Arc::new(ClientCertificate(certificate));
            // A resumed session would identify oaimend by the certificate of its first handshake.
            config.resumption = Resumption::disabled();
            Some((origin, over_tls(config)))
        }
    };
    Ok(Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_timer(TokioTimer::new())
        .http1_max_buf_size(BUFFER_BYTES_MAX)
        .build(Connector { authenticated, others, timeout }))
}

fn tcp(reach: Reach, timeout: Duration) -> HttpConnector<Reach> {
    let mut tcp = HttpConnector::new_with_resolver(reach);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNHEARD_MAX));
    // The time is shared by all addresses of a name.
    tcp.set_connect_timeout(Some(timeout));
    tcp
}

/// The TLS settings: the roots of Mozilla and those of `ca_file`, or no verification. Without a client certificate.
fn tls(options: &ConnectOptions<'_>) -> Result<ClientConfig, Failure> {
    let ring = Arc::new(ring());
    let config = ClientConfig::builder_with_provider(Arc::clone(&ring)).with_safe_default_protocol_versions();
    let config = config.map_err(|error| unusable(&format!("no client can be created: {error}")))?;
    if !options.verify {
        let accept_any = Arc::new(AcceptAny(ring));
        return Ok(config.dangerous().with_custom_certificate_verifier(accept_any).with_no_client_auth());
    }
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    if let Some(path) = options.ca_file {
        add_roots(&mut roots, path)
            .map_err(|why| unusable(&format!("ca_file {} cannot be used: {why}", path.display())))?;
    }
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn add_roots(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let (pem, before) = (std::fs::read(path).map_err(|error| error.to_string())?, roots.len());
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
    }
    if roots.len() > before { Ok(()) } else { Err("it contains no certificate in PEM".to_owned()) }
}

fn unusable(details: &str) -> Failure {
    Failure::new(Reason::Configuration, details)
}

/// Makes a connection, TLS included, within its time.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    /// To the source itself, with the client certificate. No other origin gets the certificate after a redirect.
    authenticated: Option<(Origin, HttpsConnector<Route>)>,
    others: HttpsConnector<Route>,
    timeout: Duration,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<RoutedStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.others.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let is_origin = |origin: &Origin| Url::parse(&to.to_string()).is_ok_and(|to| to.origin() == *origin);
        let connector = match &mut self.authenticated {
            Some((origin, authenticated)) if is_origin(origin) => authenticated,
            _ => &mut self.others,
        };
        let connecting = tokio::time::timeout(self.timeout, connector.call(to));
        Box::pin(async {
            connecting.await.unwrap_or_else(|_| Err(io::Error::from(ErrorKind::TimedOut).into()))
        })
    }
}

/// The client certificate of a mapping, for each handshake as its files are then.
#[derive(Debug)]
struct ClientCertificate(CurrentCertificate);

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        if let Refreshed::Kept(why) = self.0.refresh() {
            tracing::error!("the previous client certificate stays in effect: {why}");
        }
        Some(self.0.current().certified)
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Accepts any certificate: `tls.verify = false`.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        // A source that is not verified may be old too.
        let mut schemes = self.0.signature_verification_algorithms.supported_schemes();
        schemes.extend([SignatureScheme::RSA_PKCS1_SHA1, SignatureScheme::ECDSA_SHA1_Legacy]);
        schemes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_names_a_ca_file_without_a_certificate() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ca.pem");
        let limits = crate::settings::Limits::default();
        let mut mapping =
            SourceMapping::new("x", "https://x.example/oai".parse().expect("a literal URL"), &limits);
        mapping.access.tls.ca_file = Some(path.clone());
        for (text, why) in [
            (None, "No such file"),
            (Some("no PEM"), "it contains no certificate"),
            (Some(HALF), "cannot be used"),
        ] {
            if let Some(text) = text {
                std::fs::write(&path, text).expect("writable");
            }
            let options = ConnectOptions::of_source(&mapping, Reach::Any, Proxies::new(&mapping));
            let failure = options.and_then(http).expect_err("no roots");
            assert_eq!(failure.reason, Reason::Configuration);
            assert!(failure.details.contains(why) && failure.details.contains("ca_file"), "{failure:?}");
        }
    }

    const HALF: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
}
