//! Images: pulled if missing, pinned by digest, refused with a reason. The registry is Debian's.

use std::{
    fs,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use muster_protocol::{HostEvent, event::EndReason};

use crate::{
    engine::{Contained, PROBE, docker, plan, says},
    support::Plane,
};

/// A registry on this machine.
struct Registry {
    _folder: tempfile::TempDir,
    address: String,
    child: Child,
}

impl Registry {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (address, root) = (format!("127.0.0.1:{port}"), folder.path().join("data"));
        let config = folder.path().join("config.yml");
        let storage = root.display();
        let text = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {storage}\nhttp:\n  addr: {address}\n"
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        for _ in 0..100 {
            if std::net::TcpStream::connect(&address).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { _folder: folder, address, child }
    }

    /// The digest of a pushed image. Engines know it after a pull.
    fn digest(&self, repository: &str, tag: &str) -> String {
        let url = format!("http://{}/v2/{repository}/manifests/{tag}", self.address);
        let kinds = "Accept: application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json";
        let answer = Command::new("curl").args(["-fsSI", "-H", kinds, &url]).output().unwrap();
        let head = String::from_utf8(answer.stdout).unwrap().to_lowercase();
        let digest = head.lines().find_map(|line| line.strip_prefix("docker-content-digest:"));
        digest.unwrap().trim().to_owned()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds an image from the lines of a Dockerfile.
fn build(socket: &str, name: &str, lines: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Dockerfile"), lines).unwrap();
    let mut build = Command::new("docker");
    build.env("DOCKER_BUILDKIT", "0").args(["--host", &format!("unix://{socket}")]);
    build.args(["build", "--quiet", "--network", "none", "--tag", name]).arg(folder.path());
    let built = build.output().unwrap();
    assert!(built.status.success(), "{built:?}");
}

async fn refused(plane: &Plane, agent_id: i64) -> String {
    let ended = plane.wait("it is refused", |state| state.ended(agent_id, 1)).await;
    let HostEvent::Ended { reason, detail, .. } = ended else { panic!("{ended:?}") };
    assert_eq!(reason, EndReason::ImageNotFound, "{detail:?}");
    detail.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_missing_image_is_pulled_and_its_digest_checked() {
    let plane = Plane::start().await;
    let registry = Registry::start();
    let host = Contained::start(&plane, &[]);
    let name = format!("{}/team/agent:1", registry.address);
    let repository = format!("{}/team/agent", registry.address);
    // An image of its own: Podman removes a shared one for all its users.
    build(&host.socket, &name, "FROM muster-test/probe\nLABEL test=pulled\n");
    says(&host.socket, &["push", &name]);
    let digest = &registry.digest("team/agent", "1");
    let forget = async || {
        for _ in 0..100 {
            let names = [name.clone(), format!("{repository}@{digest}")];
            if !names.iter().any(|name| docker(&host.socket, &["image", "inspect", name]).status.success()) {
                return;
            }
            for name in &names {
                docker(&host.socket, &["rmi", name]);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the image is not forgotten");
    };
    // By tag only.
    forget().await;
    plane.begin(7, 1, &name);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    assert!(host.log().contains(&format!("{repository}@{digest}")), "the used image is logged");
    plane.order(7, 1, muster_protocol::Command::Stop);
    plane.wait("it ends", |state| state.ended(7, 1)).await;
    // By digest.
    forget().await;
    plan(&plane, 8, |plan| plan.digest = Some(digest.clone()));
    plane.begin(8, 1, &name);
    plane.wait("it runs", |state| state.started(8, 1).then_some(())).await;
    // The tag exists, with another digest than the record's.
    let other = format!("sha256:{}", "0".repeat(64));
    plan(&plane, 9, |plan| plan.digest = Some(other.clone()));
    plane.begin(9, 1, &name);
    let why = refused(&plane, 9).await;
    assert!(why.contains(&other), "{why}");
    // It exists nowhere.
    plane.begin(10, 1, &format!("{}/team/nothing:1", registry.address));
    let why = refused(&plane, 10).await;
    assert!(why.contains("team/nothing:1"), "{why}");
    plane.begin(11, 1, "muster/agent:no-such-version");
    let why = refused(&plane, 11).await;
    assert!(why.contains("muster host build-image"), "{why}");
}

/// A third-party image: its health check would run as root, next to the shim, and plant a link in the host's folder.
const CHECKED: &str = r#"FROM muster-test/probe
VOLUME /data
HEALTHCHECK --interval=1s --timeout=5s CMD ["/busybox", "sh", "-c", "/busybox id >/tmp/checked; \
    /busybox rm -f /.muster/launch/stderr; /busybox ln -s /SECRET /.muster/launch/stderr"]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn an_images_health_check_is_off_and_its_volumes_are_removed() {
    let plane = Plane::start().await;
    let host = Contained::start(&plane, &[]);
    let name = "muster-test/checked";
    let secret = host.path().join("identity.json").display().to_string();
    build(&host.socket, name, &CHECKED.replace("/SECRET", &secret));
    plane.begin(7, 1, name);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    let container = host.name(7, 1);
    // Enough time for three of them.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let checked = host.as_agent(7, 1, &["/busybox", "cat", "/tmp/checked"]);
    assert!(!checked.status.success(), "{checked:?}");
    let launch = host.launch(7, 1);
    assert!(!fs::symlink_metadata(launch.join("stderr")).is_ok_and(|about| about.is_symlink()));
    // Its volume is anonymous, and nothing else would remove it.
    let mounts = host.says(&["inspect", "--format", "{{range .Mounts}}{{.Name}} {{end}}", &container]);
    let volumes: Vec<&str> = mounts.split_whitespace().collect();
    let is_there = |name: &&&str| docker(&host.socket, &["volume", "inspect", name]).status.success();
    assert_eq!(volumes.iter().filter(is_there).count(), 2, "its own and the image's: {mounts}");
    plane.order(7, 1, muster_protocol::Command::Stop);
    plane.wait("it ends", |state| state.ended(7, 1)).await;
    for _ in 0..100 {
        if host.containers().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let left: Vec<&&str> = volumes.iter().filter(is_there).collect();
    assert!(matches!(left[..], [home] if home.starts_with("muster-")), "its home stays: {left:?}");
    docker(&host.socket, &["rmi", name]);
}

/// An attacker in a launch's folder can't read files with the host's rights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn links_in_a_launchs_folder_lead_the_host_nowhere() {
    let plane = Plane::start().await;
    let host = Contained::start(&plane, &[]);
    plane.begin(7, 1, PROBE);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    let (launch, identity) = (host.launch(7, 1), host.path().join("identity.json"));
    for name in ["stderr", "stderr.1"] {
        let _ = fs::remove_file(launch.join(name));
        std::os::unix::fs::symlink(&identity, launch.join(name)).unwrap();
    }
    host.says(&["kill", &host.name(7, 1)]);
    let ended = plane.wait("it ends", |state| state.ended(7, 1)).await;
    assert!(!format!("{ended:?}").contains("machine_id"), "{ended:?}");
    assert!(!host.log().contains("machine_id"));
}
