//! `muster apply` and `muster export`: an organization as files.
//!
//! ```text
//! files ──► wanted ──┐
//!                    ├──► plan ──► execute ──► the service
//! the service ──► existing ──┴──► export ──► a file
//! ```
//!
//! - `language`, `yaml`, `toml`: a file's values with their lines, as a `tree`
//! - `kinds`: which records and fields there are
//! - `wanted`, `existing`: both sides as `records`, in the form of files
//! - `planning`: makes a `plan` of what has to change: `compare` finds it, `words` says it, `check` checks the whole
//! - `inputs`: what is sent
//! - `execute`: step by step, to the first refusal · `policy`: the organization's own rules · `export`: the way back
//!
//! A name is a record's key, so a record that is renamed in a file is another one. A field that a record in a file
//! omits gets its default; a record that is in no file stays as it is. No state is kept between two runs.

mod check;
mod compare;
mod execute;
mod existing;
mod export;
mod inputs;
mod kinds;
mod language;
mod plan;
mod planning;
mod policy;
mod records;
mod toml;
mod tree;
mod wanted;
mod words;
mod yaml;

use std::{io::Write, path::PathBuf};

use serde_json::{Value, json};

use self::{
    existing::Existing,
    planning::PlanOptions,
    wanted::{Mistakes, Wanted},
};
use super::{Cli, Failure, Output, output, remote::Target};
use crate::graphql;

#[derive(Debug, clap::Args)]
pub struct Apply {
    #[command(flatten)]
    target: Target,
    /// Only show what would change; exit code 3 if anything would
    #[arg(long)]
    plan: bool,
    /// Write all secrets that the files refer to, even those already stored (stored values can't be compared)
    #[arg(long)]
    secrets: bool,
    /// Remove the records that are in no file, for each kind that has a section in a file
    #[arg(long)]
    prune: bool,
    /// Restart running agents if a change takes effect only at a start
    #[arg(long)]
    restart: bool,
    /// Why, for the history of the policy
    #[arg(long, default_value = "muster apply")]
    reason: String,
    /// YAML (.yaml, .yml), JSON (.json) or TOML (.toml); several files are read as one
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Export {
    #[command(flatten)]
    target: Target,
    /// Write to a new file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Apply {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let mut mistakes = Mistakes::default();
        let wanted = Wanted::read(&self.files, &mut mistakes)?;
        let remote = self.target.connect(cli).await?;
        let existing = Existing::read(&remote).await?;
        let Self { secrets, prune, restart, plan, .. } = self;
        let options = PlanOptions { secrets, prune, restart, plan };
        let catalogue = graphql::catalogue()?;
        let plan = planning::plan(&remote, &catalogue, &existing, &wanted, options, &mut mistakes).await?;
        mistakes.into_result()?;
        let mut json = plan.json();
        json["organization"] = json!({ "id": existing.id, "name": existing.name });
        json["applied"] = json!(!self.plan);
        let text = plan.in_words();
        if self.plan {
            // Documented: a plan that is not empty.
            let code = if plan.is_empty() { 0 } else { 3 };
            return Ok(Output::with_text(json, text).with_code(code));
        }
        execute::execute(&remote, &catalogue, &plan, existing, &wanted, &self.reason).await?;
        let output = Output::with_text(json, text);
        Ok(if plan.is_empty() { output } else { output.and(" All applied.") })
    }
}

impl Export {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let remote = self.target.connect(cli).await?;
        let existing = Existing::read(&remote).await?;
        let content = export::content(&existing)?;
        let text = export::text(&existing, &content);
        let Some(path) = self.out else { return Ok(Output::with_text(Value::Object(content), text)) };
        let written = output::create(&path)?.write_all(text.as_bytes());
        written.map_err(|error| Failure::of_file(&path, &error))?;
        Ok(Output::from_json(json!({ "file": path, "organization": existing.name })))
    }
}
