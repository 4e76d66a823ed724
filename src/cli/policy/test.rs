//! `muster policy test`.

use std::fmt::Write;

use serde_json::json;

use super::{Cli, Failure, Output, check::Check};
use crate::{
    base::{numerals::counted, plain::plain_lines},
    core::policy::Report,
};

#[derive(Debug, clap::Args)]
pub struct Test {
    #[command(flatten)]
    of: Check,
}

impl Test {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let Report { ok, expectations, problems, .. } = self.of.report(cli).await?;
        let mut text: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        let _ =
            write!(text, "{}, {}", counted(expectations, "expectation"), counted(problems.len(), "problem"));
        let json = json!({ "ok": ok, "expectations": expectations, "problems": problems });
        Ok(Output::with_text(json, plain_lines(&text)).failed_if(!ok))
    }
}
