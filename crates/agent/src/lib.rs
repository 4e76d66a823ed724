//! Muster's reference agent (`docs/agents.md`, "The reference agent").
//!
//! It speaks the Agent Client Protocol, version 1, on its standard input and output. With access to a model it is a
//! small but complete agent: it answers, and uses the tools of its sessions' MCP servers after asking for permission.
//! Without one, documented words in a prompt make it do what agents do, and misbehave as agents do, always in the same
//! way: that is what hosts, tests and demonstrations need.
//!
//! | Module | What it is for |
//! |---|---|
//! | `protocol` | the methods of the protocol |
//! | `options` | what can be chosen in a session: model and mode |
//! | `wire` | lines in and out, bounded |
//! | `session`, `history` | what a session is, and what of it is kept in a file |
//! | `turn` | what the agent can do while it answers: say, call, ask |
//! | `words`, `deterministic` | the words, and what they do |
//! | `model` | the same with a model: OpenAI's and Anthropic's interfaces |
//! | `mcp`, `skills`, `outbound`, `settings` | tools, skills, HTTP, environment |

#![forbid(unsafe_code)]

mod bounds;
mod deterministic;
mod history;
mod mcp;
mod model;
mod options;
mod outbound;
mod protocol;
mod say;
mod session;
mod settings;
mod skills;
mod turn;
mod wire;
mod words;

use std::{ffi::OsString, process::ExitCode};

use crate::settings::Settings;

const HELP: &str = "\
muster-agent: the reference agent of Muster

It speaks the Agent Client Protocol on its standard input and output, and ends when its input does.

Environment:
  HOME                      where it keeps its sessions (.muster-agent) and finds its skills (skills)
  MUSTER_AGENT_MODEL        the model to use; without it, words in the prompt say what to do
  MUSTER_AGENT_PROVIDER     openai or anthropic
  OPENAI_API_KEY, OPENAI_BASE_URL
  ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
";

/// Runs the agent until its standard input ends. `args` are the arguments after the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match args.into_iter().next() {
        None => {}
        Some(arg) if arg == "--help" || arg == "-h" => {
            return say::print(HELP);
        }
        Some(arg) if arg == "--version" || arg == "-V" => {
            return say::print(concat!("muster-agent ", env!("CARGO_PKG_VERSION"), "\n"));
        }
        Some(arg) => {
            say::complain(format_args!("unknown argument {}: it takes none (see --help)", arg.display()));
            return ExitCode::from(2);
        }
    }
    let settings = match Settings::read() {
        Ok(settings) => settings,
        Err(error) => {
            say::complain(error);
            return ExitCode::from(2);
        }
    };
    match serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::complain(error);
            ExitCode::FAILURE
        }
    }
}

fn serve(settings: Settings) -> Result<(), protocol::ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(protocol::serve(settings));
    // A turn may be told to hang.
    runtime.shutdown_background();
    served
}
