//! The terminal from which the owner started the host: no agent program can reach it, nor the keys and open files of
//! its session.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use muster_shim::isolate::Sandbox;

const SHIM: &str = env!("CARGO_BIN_EXE_muster-shim");
/// Prints whether there is a terminal.
const LOOK: &str = "if (: </dev/tty) 2>/dev/null; then echo a terminal; else echo none; fi";

/// The output of a script in a terminal, below a shell.
fn in_a_terminal(script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (file, said) = (folder.path().join("script"), folder.path().join("said"));
    fs::write(&file, script).unwrap();
    let command = format!("sh {} >{} 2>&1", file.display(), said.display());
    let ended = Command::new("script").args(["-qec", &command, "/dev/null"]).output().unwrap();
    let said = fs::read_to_string(said).unwrap();
    assert!(ended.status.success(), "{said}");
    said.trim().to_owned()
}

/// `exec` in a sandbox that shows a folder.
fn sandboxed(folder: &Path, script: &str) -> Command {
    let mut spec = muster_shim::args::ProgramSpec { program: "sh".into(), ..Default::default() };
    spec.args = vec!["-c".into(), script.into()];
    spec.sandbox = Some(Sandbox { writable: vec![folder.to_owned()], ..Sandbox::default() });
    let mut command = Command::new(SHIM);
    command.arg("exec").args(spec.to_args()).current_dir(folder);
    command
}

/// A command as shell words.
fn words(command: &Command) -> String {
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"));
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    all.map(quoted).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_program_has_no_terminal() {
    assert_eq!(in_a_terminal(LOOK), "a terminal", "the test would say nothing");
    assert_eq!(in_a_terminal(&format!("{SHIM} exec -- sh -c '{LOOK}'; true")), "none");
}

#[test]
#[ignore = "needs bubblewrap"]
fn bwrap_a_sandboxed_program_has_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let command = words(&sandboxed(folder.path(), LOOK));
    let within = format!("cd {}; {command}", folder.path().display());
    assert_eq!(in_a_terminal(&format!("{within}; true")), "none");
    // As the session leader, which can't leave its session.
    let folder = folder.path().display();
    let ended = Command::new("script")
        .args(["-qec", &format!("cd {folder}; exec {command} >{folder}/said"), "/dev/null"])
        .status();
    assert!(ended.unwrap().success());
    assert_eq!(fs::read_to_string(format!("{folder}/said")).unwrap(), "none\n");
}

#[test]
fn a_program_has_no_open_file_of_its_starters() {
    let script = format!("exec 7</etc/passwd; {SHIM} exec -- ls -l /proc/self/fd");
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let says = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && says.contains(" 2 -> ") && !says.contains("passwd"), "{says}");
}

#[test]
#[ignore = "needs bubblewrap and Python"]
fn bwrap_a_sandbox_refuses_keys_and_typing() {
    let folder = tempfile::tempdir().unwrap();
    // The numbers of x86-64 and of other architectures; elsewhere they are other calls. The filter refuses TIOCSTI even
    // without a terminal.
    let script = r#"
import ctypes, fcntl, os, platform
libc = ctypes.CDLL(None, use_errno=True)
keyctl = 250 if platform.machine() == "x86_64" else 219
print("keyctl", "worked" if libc.syscall(keyctl, 0, -3, 1) >= 0 else ctypes.get_errno())
for number in (0x5412, 0x541C, 0x541C + 2 ** 32):
    failed = libc.ioctl(0, ctypes.c_ulong(number), b"x") < 0
    print("ioctl", ctypes.get_errno() if failed else "worked")
print("another", libc.ioctl(0, ctypes.c_ulong(0x5401), b" " * 60), ctypes.get_errno())
print("files", sorted(map(int, os.listdir("/proc/self/fd"))))
"#;
    let command = sandboxed(folder.path(), &format!("exec /usr/bin/python3 -c '{script}'"));
    let within = format!("exec 7</etc/passwd; {}", words(&command));
    let mut outer = Command::new("bash");
    let output = outer.args(["-c", &within]).current_dir(folder.path()).stdin(std::process::Stdio::null());
    let output = output.output().unwrap();
    let says = String::from_utf8(output.stdout).unwrap();
    let expected = "keyctl 1\nioctl 1\nioctl 1\nioctl 1\nanother -1 25\nfiles [0, 1, 2, 3]\n";
    assert_eq!(says, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every place that starts a program, how often, and why the owner's terminal is out of reach.
const STARTS: &[(&str, usize, &str)] = &[
    ("host/src/agent/launch.rs", 1, "the shim, which leads a session from `serve` on"),
    ("host/src/gate_address.rs", 1, "`exec`, which leads a session"),
    ("shim/src/contain.rs", 1, "in a container"),
    ("shim/src/detach.rs", 2, "the shim, and what `exec` becomes"),
    ("shim/src/gate.rs", 2, "what `exec` has prepared, and this program itself"),
    ("shim/src/isolate.rs", 1, "a program of the system, in a new session"),
    ("shim/src/mcp.rs", 1, "in the agent's session"),
    ("shim/src/serve/agent.rs", 2, "below the shim, which leads a session"),
];

#[test]
fn each_start_of_a_program_is_away_from_the_terminal() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeMap::new();
    for folder in ["host/src", "shim/src", "egress/src"] {
        count(&crates.join(folder), &mut |file, count| {
            found.insert(file.strip_prefix(crates).unwrap().to_str().unwrap().to_owned(), count);
        });
    }
    let listed = STARTS.iter().map(|(file, count, _)| ((*file).to_owned(), *count)).collect();
    assert_eq!(found, listed, "say in STARTS why what is started there has no terminal");
}

/// Counts the program starts of each file, without tests.
fn count(folder: &Path, tell: &mut impl FnMut(&Path, usize)) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            count(&path, tell);
        } else if !path.ends_with("tests.rs") && path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let starts = text.matches("Command::new(").count();
            if starts > 0 {
                tell(&path, starts);
            }
        }
    }
}
