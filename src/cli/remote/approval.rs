//! `muster approval …`.

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{Remote, Target, shown};
use crate::cli::{Cli, Failure, Output, read_id};

#[derive(Debug, clap::Args)]
pub struct Approval {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the pending requests, the riskiest first
    List {
        /// Decided ones as well
        #[arg(long)]
        all: bool,
    },
    /// Show a request
    Show {
        /// The request's id
        #[arg(value_parser = read_id)]
        id: i64,
    },
    /// Approve an action
    Approve {
        /// The request's id
        #[arg(value_parser = read_id)]
        id: i64,
    },
    /// Deny an action
    Deny {
        /// The request's id
        #[arg(value_parser = read_id)]
        id: i64,
    },
    /// Answer a question
    #[command(group(clap::ArgGroup::new("answer").required(true).multiple(true).args(["option", "text"])))]
    Answer {
        /// The request's id
        #[arg(value_parser = read_id)]
        id: i64,
        /// The id or label of an option; may be repeated
        #[arg(long)]
        option: Vec<String>,
        /// Text, where the question allows it
        #[arg(long)]
        text: Option<String>,
    },
    /// Dismiss a request that no longer applies; its action is not carried out
    Dismiss(Closing),
    /// Mark a request as resolved, after fixing what it was about
    Resolve(Closing),
}

#[derive(Debug, clap::Args)]
struct Closing {
    /// The request's id
    #[arg(value_parser = read_id)]
    id: i64,
    /// A comment
    #[arg(long)]
    comment: Option<String>,
}

impl Approval {
    pub(in crate::cli) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let remote = self.target.connect(cli).await?;
        let chosen = |option: &str| json!({ "options": [option] });
        match self.what {
            What::List { all } => list(&remote, all).await,
            What::Show { id } => show(&remote, id).await,
            What::Approve { id } => answer(&remote, id, chosen("approve")).await,
            What::Deny { id } => answer(&remote, id, chosen("deny")).await,
            What::Answer { id, option, text } => {
                let options = (!option.is_empty()).then_some(option);
                answer(&remote, id, json!({ "options": options, "text": text })).await
            }
            What::Dismiss(Closing { id, comment }) => {
                change(&remote, "dismissApproval", id, ("comment", json!(comment))).await
            }
            What::Resolve(Closing { id, comment }) => {
                change(&remote, "resolveApproval", id, ("comment", json!(comment))).await
            }
        }
    }
}

async fn list(remote: &Remote, all: bool) -> Result<Output, Failure> {
    let mut only = Map::new();
    if !all {
        only.insert("status".to_owned(), json!(["PENDING"]));
    }
    let approvals = remote.list_where("Approvals", only).await?;
    let fields = [
        ("id", "/id"),
        ("kind", "/kind"),
        ("status", "/status"),
        ("outcome", "/outcome"),
        ("risk", "/risk"),
        ("agent", "/agent/name"),
        ("title", "/title"),
        ("expires", "/expiresAt"),
    ];
    Ok(shown::listed("approvals", fields, &approvals))
}

async fn show(remote: &Remote, id: i64) -> Result<Output, Failure> {
    let approval = remote.call("Approval", Map::from_iter([("id".to_owned(), id.into())])).await?;
    Ok(shown::whole(&approval["approval"]))
}

async fn answer(remote: &Remote, id: i64, input: Value) -> Result<Output, Failure> {
    change(remote, "answerApproval", id, ("input", input)).await
}

async fn change(
    remote: &Remote,
    operation: &str,
    id: i64,
    (name, value): (&str, Value),
) -> Result<Output, Failure> {
    let variables = Map::from_iter([("id".to_owned(), id.into()), (name.to_owned(), value)]);
    Ok(shown::whole(&remote.change(operation, variables).await?))
}
