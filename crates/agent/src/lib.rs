//! Muster's reference agent (`docs/agents.md`, "The reference agent").
//!
//! The agent speaks the Agent Client Protocol, version 1, on standard input and output. With access to a model it is a
//! small but complete agent: it answers, and calls the tools of its sessions' MCP servers after asking for permission.
//! Without a model, documented words in a prompt trigger normal and faulty behaviour deterministically, for hosts,
//! tests and demonstrations.
//!
//! | Module | Purpose |
//! |---|---|
//! | `protocol` | the methods of the protocol |
//! | `options` | a session's options: model and mode |
//! | `wire` | standard input and output |
//! | `session`, `history` | sessions, and their files |
//! | `turn` | the actions of a turn: messages, tool calls, questions |
//! | `words`, `deterministic` | the words, and their execution |
//! | `demo` | answers about the demo's orders, by rules |
//! | `model` | answers with a model, by OpenAI's and Anthropic's APIs |
//! | `mcp`, `skills`, `outbound`, `settings` | tools, skills, HTTP client, environment |

#![forbid(unsafe_code)]

mod bounds;
mod demo;
mod deterministic;
mod history;
mod mcp;
mod model;
mod options;
mod outbound;
mod output;
mod protocol;
mod session;
mod settings;
mod skills;
mod turn;
mod wire;
mod words;

use std::{ffi::OsString, process::ExitCode};

pub use crate::settings::DEMO_MODEL;
use crate::settings::Settings;

const HELP: &str = "\
muster-agent: the reference agent of Muster

It speaks the Agent Client Protocol on its standard input and output, and ends when its input does.

Environment:
  HOME                      where it keeps its sessions (.muster-agent) and finds its skills (skills)
  MUSTER_AGENT_MODEL        the model to use; without it, words in the prompt say what to do; muster-demo: the
                            rules of the demo
  MUSTER_AGENT_PROVIDER     openai or anthropic
  OPENAI_API_KEY, OPENAI_BASE_URL
  ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
";

/// Runs the agent until its standard input ends. `args` are the arguments after the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match args.into_iter().next() {
        None => {}
        Some(arg) if arg == "--help" || arg == "-h" => {
            return output::print(HELP);
        }
        Some(arg) if arg == "--version" || arg == "-V" => {
            return output::print(concat!("muster-agent ", env!("CARGO_PKG_VERSION"), "\n"));
        }
        Some(arg) => {
            output::report_error(format_args!(
                "unknown argument {}: it takes none (see --help)",
                arg.display()
            ));
            return ExitCode::from(2);
        }
    }
    let settings = match Settings::read() {
        Ok(settings) => settings,
        Err(error) => {
            output::report_error(error);
            return ExitCode::from(2);
        }
    };
    match serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::report_error(error);
            ExitCode::FAILURE
        }
    }
}

fn serve(settings: Settings) -> Result<(), protocol::ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(protocol::serve(settings));
    // A turn can hang.
    runtime.shutdown_background();
    result
}
