//! `muster policy test`.

use std::fmt::Write;

use serde_json::json;

use super::{Cli, Failure, Output, check::Check};
use crate::{
    base::{numerals::with_noun, plain::lines_without_controls},
    core::policy::Report,
};

#[derive(Debug, clap::Args)]
pub struct Test {
    #[command(flatten)]
    of: Check,
}

impl Test {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let Report { expectations, problems, warnings, .. } = self.of.report(cli).await?;
        let problems = [problems, warnings].concat();
        let ok = problems.is_empty();
        let mut text: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        let _ = write!(
            text,
            "{}, {}",
            with_noun(expectations, "expectation"),
            with_noun(problems.len(), "problem")
        );
        let json = json!({ "ok": ok, "expectations": expectations, "problems": problems });
        Ok(Output::with_text(json, lines_without_controls(&text)).failed_if(!ok))
    }
}
