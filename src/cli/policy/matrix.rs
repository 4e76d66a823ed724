//! `muster policy matrix`.

use serde_json::json;

use super::{
    Cli, Failure, Output,
    source::{Source, shown_problems},
};
use crate::core::policy::{matrix, matrix_table};

#[derive(Debug, clap::Args)]
pub struct Matrix {
    #[command(flatten)]
    source: Source,
}

impl Matrix {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let org = self.source.organization(cli).await?;
        let policy = self.source.policy(cli, org).await?;
        let rows = matrix(&policy, org);
        let mut text = matrix_table(&rows);
        if rows.iter().flat_map(|row| &row.cells).any(|cell| cell.own) {
            text.push_str("\n* by the organization's own rules\n");
        }
        text.push_str(&shown_problems(&policy, org));
        Ok(Output::with_text(json!({ "organization_id": org, "permissions": rows }), text))
    }
}
