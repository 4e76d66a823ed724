//! A control plane whose certificate is of an authority of the operator's own, and certificates that are refused.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use muster_testing::servers::{Flaw, TlsFront, certificates};

use crate::support::{Host, Plane, within};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// TLS in front of the control plane.
async fn front(plane: &Plane, flaw: Flaw) -> TlsFront {
    let address = plane.lock().url.trim_start_matches("http://").parse().unwrap();
    TlsFront::start(flaw, address).await
}

/// A file with the authority's certificate, beside the host's folder.
fn authority(host: &Host) -> PathBuf {
    let file = host.path().with_file_name("authority.pem");
    fs::write(&file, &certificates().root).unwrap();
    file
}

fn join(host: &Host, url: &str, token: &str, ca_file: Option<&Path>) -> Output {
    let mut command = host.command("join");
    command.args(["--url", url]).env("MUSTER_HOST_TOKEN", token);
    if let Some(file) = ca_file {
        command.arg("--ca-file").arg(file);
    }
    within(|| command.output().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_given_to_join_is_kept() {
    let plane = Plane::start().await;
    let front = front(&plane, Flaw::None).await;
    let (mut host, token) = (Host::empty(), plane.token());
    let refused = said(&join(&host, &front.url(), &token, None));
    for part in ["can't be reached: its certificate is signed by \"Tests' CA\"", "with `--ca-file FILE`"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let file = authority(&host);
    let joined = join(&host, &front.url(), &token, Some(&file));
    assert!(joined.status.success(), "{}", said(&joined));
    fs::remove_file(file).unwrap();
    host.options = vec!["--isolation".to_owned(), "none".to_owned()];
    host.run();
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    let doctor = within(|| host.command("doctor").output().unwrap());
    let text = said(&doctor);
    assert!(doctor.status.success() && text.contains("accepts the host's token"), "{text}");
    assert!(text.contains("ca.pem vouch for the control plane"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refused_certificate_says_why() {
    let plane = Plane::start().await;
    let cases = [
        (Flaw::Expired, "was valid until 2020-02-01T00:00:00Z"),
        (Flaw::OtherName, "is for other.test, and not for localhost"),
        (Flaw::SignedByItself, "is signed only by itself"),
        (Flaw::IsAuthority, "is an authority's own (CA:TRUE)"),
    ];
    for (flaw, expected) in cases {
        let (host, front, token) = (Host::empty(), front(&plane, flaw).await, plane.token());
        let file = authority(&host);
        let refused = join(&host, &front.url(), &token, Some(&file));
        assert!(
            !refused.status.success() && said(&refused).contains(expected),
            "{flaw:?}: {}",
            said(&refused)
        );
        assert!(!host.path().join("ca.pem").exists(), "a file that didn't help is not kept");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_host_logs_why_a_certificate_is_refused() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    host.terminate();
    let (expired, file) = (front(&plane, Flaw::Expired).await, authority(&host));
    let more = ["--url".to_owned(), expired.url(), "--ca-file".to_owned(), file.display().to_string()];
    host.options.extend(more);
    host.run();
    plane.wait("it says why", |_| host.log().contains("was valid until 2020").then_some(())).await;
    let doctor = within(|| host.command("doctor").output().unwrap());
    assert!(!doctor.status.success() && said(&doctor).contains("was valid until 2020"), "{}", said(&doctor));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_without_certificates_is_named() {
    let (plane, host) = (Plane::start().await, Host::empty());
    let (token, url) = (plane.token(), plane.lock().url.clone());
    let file = host.path().with_file_name("no.pem");
    let missing = said(&join(&host, &url, &token, Some(&file)));
    assert!(missing.contains("no.pem can't be read"), "{missing}");
    fs::write(&file, "nothing").unwrap();
    let empty = said(&join(&host, &url, &token, Some(&file)));
    assert!(empty.contains("no.pem has no certificate"), "{empty}");
}
