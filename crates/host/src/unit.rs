//! A systemd unit for a host. Agents outlive the host, so systemd may end the host's own process alone, and leaves the
//! control groups below it to it. Nothing is hardened that agents need: they build and run programs, and a sandbox needs
//! a /proc without anything mounted over it, which rules out ProtectKernelTunables and ProtectKernelLogs.

use std::path::Path;

/// The unit for this program, the words after it, and this folder.
pub fn unit(program: &Path, words: &[&str], user: Option<&str>, dir: &Path, list: Option<&Path>) -> String {
    let (program, dir) = (quoted(program), quoted(dir));
    let words: String = words.iter().map(|word| format!(" {word}")).collect();
    let list = list.map(|path| format!(" --programs {}", quoted(path))).unwrap_or_default();
    let user = user.map(|user| format!("User={user}\n")).unwrap_or_default();
    format!(
        "\
[Unit]
Description=Muster host
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart={program}{words} run --dir {dir}{list}
{user}Restart=always
RestartSec=2
# Agents outlive the host: only its own process is ended, and it takes them up again.
KillMode=process
Delegate=yes
TimeoutStopSec=15
LimitNOFILE=65536
TasksMax=infinity
UMask=0077
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=read-only
ReadWritePaths={dir}
ProtectKernelModules=yes
RestrictRealtime=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
"
    )
}

/// A path as systemd reads it: quoted, without its specifiers and variables.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", path.replace('%', "%%").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_systemd_reads_it() {
        assert_eq!(quoted(Path::new("/a b/50%/$x\"y")), r#""/a b/50%%/$$x\"y""#);
    }
}
