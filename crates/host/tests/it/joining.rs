//! Joining, once, and what is said when it can't be done.

use std::{fs, process::Stdio};

use muster_protocol::frame::RefusedCode;

use crate::support::{Host, Plane, within};

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_repaired_by_joining_again_with_the_same_token() {
    let plane = Plane::start().await;
    let (host, token, url) = (Host::empty(), plane.token(), plane.lock().url.clone());
    plane.lock().loses_responses = true;
    let first = within(|| host.join(&url, &token));
    assert!(!first.status.success(), "{first:?}");
    let sent = plane.lock().host.clone().unwrap();
    let identity = fs::read_to_string(host.path().join("identity.json")).unwrap();
    assert!(identity.contains(&sent.0), "it was kept before it was sent");
    let second = within(|| host.join(&url, &token));
    assert!(second.status.success(), "{}", said(&second));
    assert_eq!(plane.lock().host.clone().unwrap(), sent, "the same token, the same machine");
    let third = within(|| host.join("http://localhost:1", "whatever"));
    assert!(third.status.success() && said(&third).contains("Nothing was changed"), "{}", said(&third));
    assert_eq!(fs::read_to_string(host.path().join("identity.json")).unwrap(), identity);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_says_what_to_do() {
    let plane = Plane::start().await;
    let (token, url) = (plane.token(), plane.lock().url.clone());
    let says = |url: &str, token: &str, expected: &str| {
        let output = within(|| Host::empty().join(url, token));
        assert!(!output.status.success(), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert!(!said(&output).contains(token), "the token is not printed");
    };
    says(&url, "mst_prov_short", "Copy it again");
    says("ftp://x", &token, "not a valid address");
    says("http://muster.example", &token, "not encrypted");
    says("http://127.0.0.1:1", &token, "can't be reached: Connection refused");
    let other = Host::empty();
    assert!(within(|| other.join(&url, &token)).status.success());
    says(&url, &token, "Token used. The token was used by another machine.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_host_runs_in_a_folder_and_only_after_joining() {
    let empty = Host::empty();
    let refused = within(|| empty.command("run").output().unwrap());
    assert!(said(&refused).contains("has not joined"), "{}", said(&refused));
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    let second = within(|| host.command("run").args(["--isolation", "none"]).output().unwrap());
    assert!(!second.status.success() && said(&second).contains("(process "), "{}", said(&second));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_refused_stays_up_says_what_to_do_and_comes_back() {
    let plane = Plane::start().await;
    plane.lock().refuses = Some((RefusedCode::JournalLost, Some(0)));
    let host = Host::start(&plane, &[]);
    plane.wait("it tries again", |state| (state.hellos.len() >= 3).then_some(())).await;
    assert!(host.log().contains("has forgotten what it had confirmed"), "{}", host.log());
    plane.set(|state| state.refuses = None);
    plane.wait("it is welcome", |state| (state.epoch >= 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_says_what_is_wrong_by_its_exit_code_too() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    let fine = within(|| host.command("doctor").output().unwrap());
    assert!(fine.status.success(), "{}", said(&fine));
    assert!(said(&fine).contains("accepts the host's token"), "{}", said(&fine));
    plane.lock().host.as_mut().unwrap().0 = "another".to_owned();
    let refused = within(|| host.command("doctor").output().unwrap());
    assert!(!refused.status.success() && said(&refused).contains("401"), "{}", said(&refused));
    let empty = Host::empty();
    let not_joined = within(|| empty.command("doctor").output().unwrap());
    assert!(
        !not_joined.status.success() && said(&not_joined).contains("has not joined"),
        "{}",
        said(&not_joined)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_unit_is_one_that_systemd_accepts() {
    let host = Host::empty();
    let unit = within(|| host.command("unit").args(["--user", "root"]).output().unwrap());
    let text = String::from_utf8(unit.stdout).unwrap();
    assert!(text.contains("KillMode=process") && text.contains(host.path().to_str().unwrap()), "{text}");
    let path = host.path().with_file_name("muster-host.service");
    fs::write(&path, text).unwrap();
    let verify = std::process::Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .stdin(Stdio::null())
        .output();
    let Ok(verify) = verify else {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    };
    let says = String::from_utf8_lossy(&verify.stderr).into_owned();
    assert!(!says.contains("muster-host.service:"), "{says}");
}
