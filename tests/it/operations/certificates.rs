//! Servers whose certificates are of an authority of the operator's own.

use std::{fs, path::Path};

use http::Response;
use muster_testing::servers::{self, Flaw, Server, TlsFront, certificates, plainly};

use crate::harness::{Ran, muster};

/// `muster doctor --oidc` for a provider at `issuer`.
async fn tried(folder: &Path, issuer: &str, ca_file: Option<&Path>) -> Ran {
    let file = folder.join("oidc.toml");
    fs::write(&file, format!("[peer]\nissuer = \"{issuer}\"\nclient_id = \"muster\"\n")).unwrap();
    let mut variables = vec![
        ("MUSTER_DATA_DIR", folder.to_str().unwrap()),
        ("MUSTER_PUBLIC_URL", "https://muster.test"),
        ("MUSTER_OIDC_FILE", file.to_str().unwrap()),
    ];
    variables.extend(ca_file.map(|file| ("MUSTER_CA_FILE", file.to_str().unwrap())));
    muster(&["doctor", "--oidc"], &variables).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ca_file_is_trusted_beside_the_systems_authorities() {
    let answer = plainly(|_| Response::builder().status(404).body(servers::body("")).unwrap());
    let (place, behind) = (tempfile::tempdir().unwrap(), Server::start(answer).await);
    let authority = place.path().join("ca.pem");
    fs::write(&authority, &certificates().root).unwrap();
    let cases = [
        (Flaw::None, None, "signed by \\\"Tests' CA\\\", which this machine doesn't trust"),
        (Flaw::None, None, "in the service's setting `ca_file` (MUSTER_CA_FILE)"),
        (Flaw::Expired, Some(&*authority), "was valid until 2020-02-01T00:00:00Z"),
        (Flaw::OtherName, Some(&*authority), "is for other.test, and not for localhost"),
    ];
    for (flaw, ca_file, expected) in cases {
        let front = TlsFront::start(flaw, ([127, 0, 0, 1], behind.port).into()).await;
        let ran = tried(place.path(), &front.url(), ca_file).await;
        assert!(!ran.good() && ran.text.contains(expected), "{flaw:?}: {}", ran.text);
    }
    assert!(behind.seen().is_empty(), "nothing was sent to a server that is not trusted");
    let front = TlsFront::start(Flaw::None, ([127, 0, 0, 1], behind.port).into()).await;
    let ran = tried(place.path(), &front.url(), Some(&authority)).await;
    assert!(!behind.seen().is_empty() && !ran.text.contains("certificate"), "{}", ran.text);
}
