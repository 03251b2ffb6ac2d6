//! Checks the addresses of a source.
//!
//! A public base URL must not give access to private networks, neither by a redirect nor by DNS. The resolver of
//! the connection checks the addresses, so the checked address is the connected one. An address in a URL needs no
//! resolver. It is checked before each request.

use hyper_util::client::legacy::connect::dns::Name;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_service::Service;
use url::{Host, Url};

/// The addresses that connections may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public addresses only.
    Public,
    /// Any address.
    Any,
}

/// An address that connections must not use.
#[derive(Debug)]
pub(crate) struct Refused {
    host: String,
    address: IpAddr,
}

/// A name that cannot be resolved.
#[derive(Debug)]
pub(crate) struct Unresolved(std::io::Error);

impl Reach {
    /// The addresses that a base URL allows. A base URL with a private host allows any address, because a person
    /// has configured it.
    pub(crate) fn for_base_url(base_url: &Url, allow_private: bool) -> Self {
        if allow_private || names_private_host(base_url) { Self::Any } else { Self::Public }
    }

    /// Checks a URL whose host is written as an address.
    pub(crate) fn check_literal(self, url: &Url) -> Result<(), Refused> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        self.check(address, &address.to_string())
    }

    fn check(self, address: IpAddr, host: &str) -> Result<(), Refused> {
        if is_public(address) || self == Self::Any && !is_link_local(address) {
            return Ok(());
        }
        Err(Refused { host: host.to_owned(), address })
    }
}

impl Service<Name> for Reach {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = *self;
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host, 0)).await.map_err(Unresolved)?.collect();
            // A single private address is refused too, because the connection tries all addresses.
            for address in &found {
                reach.check(address.ip(), host)?;
            }
            Ok(found.into_iter())
        })
    }
}

/// Whether an address is on the public internet.
///
/// Follows the special-purpose registries of IANA (RFC 6890). An IPv6 address that contains an IPv4 address is
/// judged by the IPv4 address.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether an address belongs to the link. Cloud providers serve the secrets of a machine at such addresses, and at one
/// unique-local address.
fn is_link_local(address: IpAddr) -> bool {
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address == METADATA,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let inner = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        // v4-mapped, v4-compatible (with loopback and the unspecified address), NAT64, 6to4
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => inner(g, h),
        (0x2002, ..) => inner(b, c),
        // local NAT64, Teredo, documentation
        (0x64, 0xff9b, 1, ..) | (0x2001, 0 | 0xdb8, ..) => false,
        // global unicast, without unique-local, link-local and multicast addresses
        _ => a & 0xe000 == 0x2000,
    }
}

/// Whether the host of a URL is private: a private address, a name without a dot, or a name in a domain that is
/// never public (RFC 6761, RFC 6762, RFC 8375, and `internal`).
pub(crate) fn names_private_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !is_public_v4(address),
        Some(Host::Ipv6(address)) => !is_public_v6(address),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            !name.contains('.') || PRIVATE_DOMAINS.iter().any(|domain| name.ends_with(domain))
        }
        None => false,
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address } = self;
        if is_link_local(*address) {
            return write!(f, "{host} is at {address}, a link-local address, which is never requested");
        }
        write!(
            f,
            "{host} is at {address}, which is not a public address; if this is intended, set allow_private = true in the mapping"
        )
    }
}

impl std::error::Error for Refused {}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unresolved {}

const PRIVATE_DOMAINS: &[&str] = &[".localhost", ".local", ".internal", ".home.arpa", ".test"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_never_requested() {
        for host in ["169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"] {
            let url = Url::parse(&format!("http://{host}/latest/meta-data")).expect("a literal");
            let refused = Reach::Any.check_literal(&url).expect_err(host);
            assert!(refused.to_string().contains("never requested"), "{refused}");
        }
        let url = Url::parse("http://10.0.0.1/").expect("a literal");
        assert!(Reach::Any.check_literal(&url).is_ok());
    }

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for address in ["1.1.1.1", "188.184.9.234", "2606:4700::1111", "::ffff:1.1.1.1", "2002:101:101::"] {
            assert!(is_public(address.parse().expect("a literal")), "{address}");
        }
        let special = "0.0.0.0 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9 169.254.169.254
            172.16.0.1 192.0.0.1 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1
            240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.1.2.3 64:ff9b::10.0.0.1
            64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: fc00::1 fd00:ec2::254 fe80::1 ff02::1";
        for address in special.split_whitespace() {
            assert!(!is_public(address.parse().expect("a literal")), "{address}");
        }
    }

    #[test]
    fn a_base_url_with_a_private_host_allows_private_addresses() {
        let reach = |url: &str| Reach::for_base_url(&Url::parse(url).expect("a literal"), false);
        for url in
            ["http://127.0.0.1/", "http://[::1]/", "http://dspace:8080/", "http://x.svc.cluster.local/"]
        {
            assert_eq!(reach(url), Reach::Any, "{url}");
        }
        for url in [
            "https://zenodo.org/oai2d",
            "http://1.1.1.1/",
            "http://local.example/",
            "http://127.0.0.1.nip.io/",
        ] {
            assert_eq!(reach(url), Reach::Public, "{url}");
        }
    }

    #[test]
    fn literal_addresses_are_checked_in_every_spelling() {
        for url in ["http://127.0.0.1/", "http://0x7f.1/", "http://2130706433/", "http://[::ffff:7f00:1]/"] {
            let url = Url::parse(url).expect("a literal");
            assert!(Reach::Public.check_literal(&url).is_err(), "{url}");
            assert!(Reach::Any.check_literal(&url).is_ok(), "{url}");
        }
    }

    #[tokio::test]
    async fn names_are_checked_by_the_resolver() {
        let resolve = |mut reach: Reach| reach.call("localhost".parse().expect("a literal"));
        let error = resolve(Reach::Public).await.expect_err("localhost is not public");
        assert!(error.downcast_ref::<Refused>().is_some(), "{error}");
        assert!(resolve(Reach::Any).await.is_ok());
    }
}
