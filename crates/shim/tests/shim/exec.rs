//! Settings of the agent's own process.

use std::{fs, process::Command};

use muster_shim::isolate::{Bubblewrap, Sandbox, isolation};

use crate::harness::{Shim, Talk, program, until};

#[test]
fn an_agent_has_its_limits_and_no_privileges_to_gain() {
    let mut shim = Shim::of(
        "ulimit -n; ulimit -c; ulimit -t; ulimit -f; umask; grep NoNewPrivs /proc/self/status; ps -o pgid= -p $$ || cut -d' ' -f5 /proc/$$/stat; cat",
    );
    shim.launch.spec.limits.nofile = Some(123);
    shim.launch.spec.limits.cpu_seconds = Some(77);
    // In blocks of 512 bytes. The spool may be larger.
    shim.launch.spec.limits.file_bytes = Some(8192);
    let shim = shim.start();
    let (mut client, _) = shim.hello(1);
    let texts = client.texts(7);
    assert_eq!(texts[..6], ["123", "0", "77", "16", "0077", "NoNewPrivs:\t1"]);
    assert_eq!(texts[6].trim(), shim.record().agent.pid.to_string(), "it leads its process group");
    let line = vec![b'x'; 20_000];
    client.line(1, &line).unwrap();
    assert_eq!(client.lines(1), [(8, line)]);
}

#[test]
fn a_limit_above_what_is_allowed_becomes_what_is_allowed() {
    let script = "ulimit -n 200; exec \"$0\" exec --nofile 999999 -- sh -c 'ulimit -n'";
    let output =
        Command::new("sh").arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_muster-shim")).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "200\n");
}

#[test]
fn an_agent_has_the_environment_that_was_given_and_nothing_else() {
    let shim = Shim::of("env | grep -v -e ^_= -e ^PWD= -e ^OLDPWD= -e ^SHLVL=; pwd; ls /proc/self/fd");
    let path = std::env::var_os("PATH").unwrap();
    // Descriptors left open by the starter.
    let mut starter = Command::new("sh");
    starter.env_clear().env("PATH", &path).env("TOKEN", "a secret");
    starter.arg("-c").arg("exec 5</etc/passwd 7</etc/passwd; exec \"$0\" run \"$@\"");
    starter.arg(env!("CARGO_BIN_EXE_muster-shim")).args(shim.launch.to_args());
    assert!(starter.status().unwrap().success());
    let (mut client, _) = shim.hello(1);
    let texts: Vec<String> =
        client.rest().0.into_iter().map(|(_, text)| String::from_utf8(text).unwrap()).collect();
    let path = format!("PATH={}", path.to_str().unwrap());
    let mut variables = texts[..2].to_vec();
    variables.sort();
    assert_eq!(variables, [path, "TOKEN=a secret".to_owned()]);
    assert_eq!(texts[2], fs::canonicalize(shim.home()).unwrap().to_str().unwrap());
    // The last is the folder's descriptor, opened by `ls`.
    assert_eq!(texts[3..], ["0", "1", "2", "3"]);
    let held = fs::read_dir(format!("/proc/{}/fd", shim.record().shim.pid)).unwrap().flatten();
    let held: Vec<_> = held.filter_map(|fd| fs::read_link(fd.path()).ok()).collect();
    assert!(!held.iter().any(|file| file.ends_with("passwd")), "{held:?}");
}

#[test]
fn isolation_is_described() {
    let output = program().arg("isolation").output().unwrap();
    let says = String::from_utf8(output.stdout).unwrap();
    let expected = match isolation().bubblewrap {
        Bubblewrap::Works(path) => format!("bubblewrap: {}\n", path.display()),
        Bubblewrap::Fails { .. } => "can't make a sandbox: ".to_owned(),
        Bubblewrap::Absent => "bubblewrap: no: bwrap is not on the PATH\n".to_owned(),
    };
    assert!(says.contains(&expected), "{says}");
}

#[test]
fn a_sandbox_without_bubblewrap_is_refused_at_once() {
    let mut shim = Shim::of("cat");
    shim.launch.spec.sandbox = Some(Sandbox::default());
    let folder = shim.home().join("bin");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.join("sh")).unwrap();
    let output = program().arg("run").args(shim.launch.to_args()).env("PATH", &folder).output().unwrap();
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && says.contains("bwrap is not on the PATH: install bubblewrap"),
        "{says}"
    );
    assert!(!shim.dir().exists());
}

#[test]
#[ignore = "needs bubblewrap"]
fn bwrap_an_agent_sees_home_and_system_and_dies_with_its_shim() {
    let mut shim = Shim::of("");
    // Not in /tmp, since the sandbox has its own.
    let home = shim.home().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(shim.home().join("secret"), "of another user").unwrap();
    let script = format!(
        "echo mine >own; cat own; cat {}/secret || echo hidden; touch /usr/x || echo read-only; \
         cat /etc/shadow || echo not for agents; \
         ls -d /proc/[0-9]* | wc -l; grep CapEff /proc/self/status; cat",
        shim.home().display()
    );
    shim.launch.spec.args = vec!["-c".into(), script.into()];
    shim.launch.spec.sandbox =
        Some(Sandbox { writable: vec![home.clone()], readable: Vec::new(), no_network: false });
    shim.launch.cwd = Some(home.clone());
    let shim = shim.start();
    let (mut client, _) = shim.hello(1);
    let texts = client.texts(6);
    assert_eq!(texts[..4], ["mine", "hidden", "read-only", "not for agents"]);
    assert!(texts[4].parse::<u32>().unwrap() < 8, "it sees {} processes", texts[4]);
    assert_eq!(texts[5], "CapEff:\t0000000000000000");
    assert_eq!(fs::read_to_string(home.join("own")).unwrap(), "mine\n");
    client.line(1, b"hello").unwrap();
    assert_eq!(client.texts(1), ["hello"]);
    let record = shim.kill();
    until("the sandbox dies with its shim", || !record.agent.is_alive());
    until("and so does what is in it", || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        !all.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok()).any(|cwd| cwd == home)
    });
}
