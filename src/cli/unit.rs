//! `muster unit`: a systemd unit for the service. The service needs no privileges, and no more of the machine than the
//! network, its settings and its own folder, so the unit takes everything else away. `muster host unit` is the one for
//! a host, whose agents need more.

use std::path::Path;

use muster_host::systemd_path;
use serde_json::json;

use super::{Cli, Failure, Output};

/// The settings file, unless `--config` names another.
const SETTINGS: &str = "/etc/muster/muster.toml";

/// Print a systemd unit for the service
#[derive(Debug, clap::Args)]
pub struct Unit {
    /// An existing user for the service; by default systemd makes one while the service runs
    #[arg(long)]
    user: Option<String>,
}

impl Unit {
    pub(super) fn run(&self, cli: &Cli) -> Result<Output, Failure> {
        let program = std::env::current_exe()?;
        let settings = std::path::absolute(cli.config.as_deref().unwrap_or(Path::new(SETTINGS)))?;
        let text = unit(&program, &settings, self.user.as_deref());
        Ok(Output::with_text(json!({ "unit": text }), text))
    }
}

/// The unit, for the program and the settings at these absolute paths.
fn unit(program: &Path, settings: &Path, user: Option<&str>) -> String {
    let user = match user {
        Some(user) => format!("User={user}\n"),
        None => "# A user that exists while the service runs.\nDynamicUser=yes\nUser=muster\n".to_owned(),
    };
    let (program, settings) = (systemd_path(program), systemd_path(settings));
    format!(
        "\
[Unit]
Description=Muster
Wants=network-online.target
After=network-online.target postgresql.service

[Service]
Type=exec
ExecStart={program} serve --config {settings}
# Variables, for secrets: systemd reads this file as root, so that only root has to read it.
EnvironmentFile=-/etc/muster/muster.env
Environment=MUSTER_DATA_DIR=%S/muster
ConfigurationDirectory=muster
StateDirectory=muster
StateDirectoryMode=0700
{user}Restart=always
RestartSec=2
LimitNOFILE=65536
UMask=0077
# Everything else of the machine is out of reach.
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateDevices=yes
PrivateMounts=yes
PrivateTmp=yes
PrivateUsers=yes
RemoveIPC=yes
KeyringMode=private
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources

[Install]
WantedBy=multi-user.target
"
    )
}
