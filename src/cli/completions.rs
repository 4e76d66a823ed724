//! `muster completions`: what a shell needs to complete the command line.

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use serde_json::json;

use super::{Arguments, Output};

/// Print a script with which a shell completes this command line
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
    /// Complete `muster-host` instead of `muster`
    #[arg(long)]
    host: bool,
}

impl Completions {
    pub(super) fn run(&self) -> Output {
        let (mut command, name) = if self.host {
            (muster_host::command_line(), "muster-host")
        } else {
            let host = |_: clap::Command| {
                muster_host::command_line().about("Run agents on this machine, for a control plane")
            };
            (Arguments::command().mut_subcommand("host", host), "muster")
        };
        let mut script = Vec::new();
        generate(self.shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        Output::with_text(json!({ "shell": self.shell.to_string(), "script": script }), script)
    }
}
