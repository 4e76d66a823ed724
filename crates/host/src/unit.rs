//! A systemd unit for a host. Agents outlive the host, so systemd may end the host's own process alone, and leaves the
//! control groups below it to it. Nothing is hardened here that agents need: they build, run and write programs.

use std::path::Path;

/// The unit for this program and folder.
pub fn unit(
    program: &str,
    user: Option<&str>,
    dir: &Path,
    programs: Option<&Path>,
    writable: bool,
) -> String {
    let quoted = |text: &str| {
        format!(
            "\"{}\"",
            text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$")
        )
    };
    let dir = dir.display().to_string();
    let list = programs
        .map(|path| format!(" --programs {}", quoted(&path.display().to_string())))
        .unwrap_or_default();
    let user = user.map(|user| format!("User={user}\n")).unwrap_or_default();
    let home = if writable { "read-only" } else { "yes" };
    format!(
        "\
[Unit]
Description=Muster host
Documentation=https://github.com/muster/muster/blob/main/docs/hosts.md
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart={program} run --dir {folder}{list}
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
ProtectHome={home}
ReadWritePaths={folder}
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
RestrictRealtime=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
",
        folder = quoted(&dir),
    )
}
