//! A small, deliberately broken data provider for `oaimend demo`, and the file of a static repository beside it.
//!
//! The pages are compiled in from corpus/demo, so that it works from any folder. It answers all six
//! verbs on loopback, in plain HTTP/1.1, with one thread per connection: enough for a demonstration
//! only.

mod http;
mod pages;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

pub use http::{Fetched, fetch};

/// The static repository: the catalogue of a library, one record of which names an article of the provider.
pub const CATALOGUE: &[u8] = include_bytes!("../../corpus/demo/catalogue.xml");

/// Path of the base URL.
const PATH: &str = "/oai";

/// The running provider. Its thread ends with the process.
#[derive(Clone, Debug)]
pub struct Provider {
    address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
}

impl Provider {
    /// Starts the provider on that port of 127.0.0.1, or on a free one if it is taken.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub fn start(port: u16) -> io::Result<Self> {
        let listener = listen(port)?;
        let address = listener.local_addr()?;
        let provider = Self { address, is_stopped: Arc::default() };
        let (base_url, is_stopped) = (provider.base_url(), Arc::clone(&provider.is_stopped));
        thread::Builder::new().name("demo-provider".to_owned()).spawn(move || {
            let answer = move |arguments: &_| pages::answer(&base_url, arguments);
            http::serve(&listener, PATH, &is_stopped, answer);
        })?;
        Ok(provider)
    }

    /// Closes every connection without a response, until [`Provider::resume`] is called.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Answers requests again.
    pub fn resume(&self) {
        self.is_stopped.store(false, Ordering::SeqCst);
    }

    /// Its base URL.
    pub fn base_url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }
}

/// A listener on that port of 127.0.0.1, or on a free one if it is taken.
///
/// # Errors
///
/// No port is free.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => {
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        }
        _ => Err(error),
    })
}
