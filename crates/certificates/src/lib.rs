//! Certificates of servers that Muster calls: which authorities are trusted, and what is wrong with a refused
//! certificate, in words.
//!
//! rustls makes every check, and none is weakened here. Its refusals don't name the certificate's issuer, and some are
//! internals of its own; the verifier below adds what the server showed, and [`explain`] puts it into a sentence with
//! the remedy.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use jiff::Timestamp;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{self, CryptoProvider},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use webpki::EndEntityCert;

/// Why a file of certificates can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path} can't be read: {source}.")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{0} has no certificate. It must be in PEM: `-----BEGIN CERTIFICATE-----`, and so on.")]
    Empty(PathBuf),
    #[error("{path} is not valid: {reason}. It must be in PEM: `-----BEGIN CERTIFICATE-----`, and so on.")]
    Malformed { path: PathBuf, reason: String },
}

/// Where an authority is added: it follows "give the authority's certificate".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// On a host's command line, for its control plane.
    HostOption,
    /// On a host's system, for what its agents reach.
    HostSystem,
    /// In the service's settings.
    ServiceSetting,
}

impl Remedy {
    fn place(self) -> &'static str {
        match self {
            Self::HostOption => "with `--ca-file FILE`",
            Self::HostSystem => "to the system of the agent's host (Debian: `update-ca-certificates`)",
            Self::ServiceSetting => "in the service's setting `ca_file` (MUSTER_CA_FILE)",
        }
    }
}

/// Reads the certificates of a file in PEM, at least one.
pub fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    read_with_text(path).map(|(certificates, _)| certificates)
}

/// Like [`read`]; also the file's content.
pub fn read_with_text(path: &Path) -> Result<(Vec<CertificateDer<'static>>, Vec<u8>), FileError> {
    let pem =
        std::fs::read(path).map_err(|source| FileError::Unreadable { path: path.to_owned(), source })?;
    let malformed = |reason: String| FileError::Malformed { path: path.to_owned(), reason };
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| malformed(error.to_string()))?;
    if certificates.is_empty() {
        return Err(FileError::Empty(path.to_owned()));
    }
    // rustls skips what it can't read, and would then name an unknown authority.
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        store.add(certificate.clone()).map_err(|error| malformed(error.to_string()))?;
    }
    Ok((certificates, pem))
}

/// The system's authorities, read at their first use: every store begins as a copy of this one.
static SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::warn!(%error, "a certificate of the system can't be read");
    }
    of(&found.certs)
});

/// The system's authorities, and these.
pub fn with_system(more: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = SYSTEM.clone();
    roots.add_parsable_certificates(more.iter().cloned());
    roots
}

/// Only these authorities.
pub fn of(certificates: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    roots
}

/// TLS that trusts these authorities.
pub fn client_config(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(crypto::ring::default_provider());
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    // Fails only without any authority. Then nothing is trusted.
    let verifier = Verifier { webpki: webpki.ok(), provider: Arc::clone(&provider) };
    match ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
        Ok(config) => {
            config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
        }
        // The provider supports the default versions.
        Err(error) => unreachable!("TLS without versions: {error}"),
    }
}

/// What is wrong with a server's certificate, and the remedy, without a full stop. `None`: the error is another one.
pub fn explain(error: &(dyn Error + 'static), remedy: Remedy) -> Option<String> {
    if let Some(rustls::Error::InvalidCertificate(reason)) = error.downcast_ref() {
        return Some(sentence(reason, remedy));
    }
    // An io::Error skips its inner error in `source`.
    if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return explain(inner, remedy);
    }
    explain(error.source()?, remedy)
}

/// The same error, with an explanation as its text if it is about a certificate.
pub fn explained(error: io::Error, remedy: Remedy) -> io::Error {
    match explain(&error, remedy) {
        Some(text) => io::Error::new(error.kind(), text),
        None => error,
    }
}

/// rustls' checks. A refusal remembers what the server showed.
#[derive(Debug)]
struct Verifier {
    /// `None`: no authority is trusted.
    webpki: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = match &self.webpki {
            Some(webpki) => {
                webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        verified.map_err(|error| match error {
            rustls::Error::InvalidCertificate(reason) => {
                let refusal = Refusal { reason, issuer: Issuer::of(end_entity) };
                CertificateError::Other(OtherError(Arc::new(refusal))).into()
            }
            other => other,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// rustls' refusal of a certificate, and the certificate's issuer.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
struct Refusal {
    reason: CertificateError,
    issuer: Issuer,
}

/// The issuer of a certificate, as the certificate names it.
#[derive(Debug)]
struct Issuer {
    /// Its common name, or else its organization.
    name: Option<String>,
    /// Whether the certificate signs itself.
    is_itself: bool,
}

impl Issuer {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        let Ok(certificate) = EndEntityCert::try_from(certificate) else {
            return Self { name: None, is_itself: false };
        };
        let issuer = certificate.issuer();
        // The types of an X.501 name: 2.5.4.3 is the common name, 2.5.4.10 the organization.
        let name = attribute(issuer, [0x55, 0x04, 0x03]).or_else(|| attribute(issuer, [0x55, 0x04, 0x0a]));
        Self { name, is_itself: issuer == certificate.subject() }
    }
}

/// The last text of this type in a DER-encoded name. Its characters are a stranger's: controls are left out.
fn attribute(name: &[u8], kind: [u8; 3]) -> Option<String> {
    let [a, b, c] = kind;
    let start = [0x06, 0x03, a, b, c];
    let at = name.windows(start.len()).rposition(|window| window == start)?;
    let [_, length, value @ ..] = name.get(at + start.len()..)? else { return None };
    // Longer ones have a length of several bytes.
    let length = usize::from(*length).min(127);
    let text = String::from_utf8_lossy(value.get(..length)?).replace(char::is_control, "");
    (!text.is_empty()).then_some(text)
}

fn sentence(reason: &CertificateError, remedy: Remedy) -> String {
    let (reason, issuer) = match reason {
        CertificateError::Other(OtherError(inner)) => match inner.downcast_ref::<Refusal>() {
            Some(refusal) => (&refusal.reason, Some(&refusal.issuer)),
            None => (reason, None),
        },
        reason => (reason, None),
    };
    let place = remedy.place();
    match reason {
        CertificateError::UnknownIssuer => unknown_issuer(issuer, place),
        CertificateError::ExpiredContext { time, not_after } => format!(
            "its certificate was valid until {}, and it is {} by this machine's clock. Renew the server's certificate, \
             or set the clock",
            date(*not_after),
            date(*time)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "its certificate is valid from {} on, and it is {} by this machine's clock. Set the clock, or wait",
            date(*not_before),
            date(*time)
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let (expected, names) = (expected.to_str(), presented_names(presented));
            format!(
                "its certificate is for {names}, and not for {expected}. Use a name of the certificate in the address, or \
                 give the server a certificate for {expected}"
            )
        }
        reason if is_authority_itself(reason) => format!(
            "its certificate is an authority's own (CA:TRUE), which a server must not show. Make one for the server; with \
             `openssl req -x509`, add `-addext basicConstraints=critical,CA:FALSE`, and give the certificate {place}"
        ),
        reason => format!("its certificate is refused: {reason}"),
    }
}

fn unknown_issuer(issuer: Option<&Issuer>, place: &str) -> String {
    let (is_itself, name) = match issuer {
        Some(issuer) => (issuer.is_itself, issuer.name.as_deref()),
        None => (false, None),
    };
    if is_itself {
        return format!(
            "its certificate is signed only by itself, and this machine doesn't know it. If it is the right one, give it \
             (PEM) {place}"
        );
    }
    let by = name.map_or_else(|| "an authority".to_owned(), |name| format!("{name:?}"));
    format!(
        "its certificate is signed by {by}, which this machine doesn't trust. Give the authority's certificate (PEM) \
         {place}, or let the server send a missing intermediate certificate"
    )
}

fn is_authority_itself(reason: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(inner)) = reason else { return false };
    matches!(inner.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// The certificate's names: webpki writes `DnsName("a.test")` and `IpAddress(192.0.2.7)`.
fn presented_names(presented: &[String]) -> String {
    // A certificate may have thousands.
    let names = presented.iter().take(5).map(|name| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner);
        inner.trim_end_matches(')').trim_matches('"').replace(char::is_control, "")
    });
    let mut names = names.collect::<Vec<_>>();
    if presented.len() > names.len() {
        names.push(format!("{} more", presented.len() - names.len()));
    }
    if names.is_empty() { "no name at all (it has no subjectAltName)".to_owned() } else { names.join(", ") }
}

fn date(time: UnixTime) -> String {
    let time = i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "an unknown time".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use muster_testing::servers::{Flaw, TlsFront, certificates};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;

    use super::*;

    /// The error of a handshake with a server whose certificate has this flaw.
    async fn refused(flaw: Flaw, trusted: &str, name: &'static str) -> Option<String> {
        // No test calls the server behind it.
        let front = TlsFront::start(flaw, ([127, 0, 0, 1], 1).into()).await;
        let trusted = CertificateDer::pem_slice_iter(trusted.as_bytes());
        let trusted = trusted.collect::<Result<Vec<_>, _>>().unwrap();
        let stream = TcpStream::connect(front.address).await.unwrap();
        let connector = TlsConnector::from(Arc::new(client_config(of(&trusted))));
        let shaken = connector.connect(ServerName::try_from(name).unwrap(), stream).await;
        shaken.err().map(|error| explain(&error, Remedy::HostOption).unwrap())
    }

    #[tokio::test]
    async fn a_good_certificate_is_accepted() {
        let root = &certificates().root;
        for name in ["localhost", "127.0.0.1"] {
            assert_eq!(refused(Flaw::None, root, name).await, None, "{name}");
        }
        let itself = &certificates().itself;
        assert_eq!(refused(Flaw::SignedByItself, itself, "localhost").await, None);
    }

    #[tokio::test]
    async fn each_refusal_names_what_came_and_the_remedy() {
        let root = certificates().root.as_str();
        let cases = [
            (Flaw::None, "", "localhost", ["signed by \"Tests' CA\", which", "with `--ca-file FILE`"]),
            (Flaw::SignedByItself, root, "localhost", ["only by itself", "give it (PEM) with"]),
            (Flaw::Expired, root, "localhost", ["was valid until 20", "Renew the server's certificate"]),
            (
                Flaw::OtherName,
                root,
                "localhost",
                ["is for other.test, and not for localhost", "in the address"],
            ),
            (Flaw::IsAuthority, root, "localhost", ["authority's own (CA:TRUE)", "critical,CA:FALSE"]),
        ];
        for (flaw, trusted, name, expected) in cases {
            let text = refused(flaw, trusted, name).await.unwrap_or_default();
            assert!(expected.iter().all(|part| text.contains(part)), "{flaw:?}: {text}");
        }
    }

    #[test]
    fn a_stranger_names_its_certificate_without_controls() {
        let name = [&[0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 4][..], b"a\x1b[b"].concat();
        assert_eq!(attribute(&name, [0x55, 0x04, 0x03]).as_deref(), Some("a[b"));
        assert_eq!(attribute(&name, [0x55, 0x04, 0x0a]), None);
        assert_eq!(attribute(&name[..8], [0x55, 0x04, 0x03]), None, "it ends early");
    }

    #[test]
    fn errors_are_found_inside_others() {
        let inner = rustls::Error::from(CertificateError::UnknownIssuer);
        let error = io::Error::other(io::Error::other(inner));
        let text = explained(error, Remedy::ServiceSetting).to_string();
        assert!(text.contains("signed by an authority, which") && text.contains("MUSTER_CA_FILE"), "{text}");
        let other = explained(io::ErrorKind::TimedOut.into(), Remedy::ServiceSetting);
        assert_eq!(other.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let dir = std::env::temp_dir();
        let missing = read(&dir.join("muster-no-such-file.pem")).unwrap_err();
        assert!(matches!(missing, FileError::Unreadable { .. }), "{missing}");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(matches!(read(&source), Err(FileError::Empty(_))));
    }
}
