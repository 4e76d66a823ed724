//! The control plane's address. A token never travels in clear text over a network: plain HTTP is for this machine
//! only, unless the host's owner allows it.

use url::{Host, Url};

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    #[error("{0:?} is not a valid address: it should look like https://muster.example.org.")]
    Malformed(String),
    /// The address of an interface below the control plane's.
    #[error("{given} is the address of one of Muster's interfaces. Give the control plane's own: {base}.")]
    Below {
        given: Url,
        /// The address without the interface.
        base: Url,
    },
    #[error(
        "{0} is not encrypted, so the host's token could be read on the way. Use https, or, on a private network, \
         --insecure-http."
    )]
    Insecure(Url),
}

/// Path suffixes of the control plane's interfaces.
const INTERFACES: &[&str] = &["v1", "graphql", "gateway", "mcp", "health"];

/// Parses the control plane's address.
pub fn read(text: &str, insecure_http: bool) -> Result<Url, AddressError> {
    let malformed = || AddressError::Malformed(text.to_owned());
    let mut url = Url::parse(text).map_err(|_| malformed())?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !is_plain || !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(malformed());
    }
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !is_here && !insecure_http {
        return Err(AddressError::Insecure(url));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    let (above, last) = path.rsplit_once('/').unwrap_or_default();
    if INTERFACES.contains(&last) {
        let mut base = url.clone();
        base.set_path(above);
        return Err(AddressError::Below { given: url, base });
    }
    Ok(url)
}

/// A path below the control plane's address.
pub fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

/// The WebSocket's address.
pub fn socket(base: &Url) -> String {
    let url = below(base, muster_protocol::PATH).to_string();
    // `https` becomes `wss`, `http` becomes `ws`.
    url.replacen("http", "ws", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_only_sent_encrypted_or_to_this_machine() {
        for fine in ["https://a.example", "http://localhost:1", "http://127.0.0.1:1/", "http://[::1]:1"] {
            assert!(read(fine, false).is_ok(), "{fine}");
        }
        assert!(matches!(read("http://a.example", false), Err(AddressError::Insecure(_))));
        assert!(read("http://a.example", true).is_ok());
        for wrong in
            ["a.example", "ftp://a.example", "https://", "https://u@a.example", "https://a.example/?x"]
        {
            assert!(matches!(read(wrong, true), Err(AddressError::Malformed(_))), "{wrong}");
        }
    }

    #[test]
    fn an_interface_address_is_recognized() {
        let error = read("https://a.example/muster/v1/", false).unwrap_err();
        assert!(error.to_string().ends_with("own: https://a.example/muster."), "{error}");
        assert!(read("https://a.example/v12", false).is_ok());
    }

    #[test]
    fn the_socket_is_below_the_address() {
        let base = read("https://a.example/muster/", false).unwrap();
        assert_eq!(socket(&base), "wss://a.example/muster/gateway");
        assert_eq!(below(&base, "/gateway/join").as_str(), "https://a.example/muster/gateway/join");
    }
}
