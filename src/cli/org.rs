//! `muster org …`.

use std::{fs::File, io::Write, path::PathBuf, pin::pin, time::Duration};

use clap::Subcommand;
use futures::StreamExt;
use serde_json::json;

use super::{
    Cli, Failure, Output,
    output::{self, table},
    user::send_mail,
};
use crate::{
    base::{enums::Plan, plain::without_controls, problem::Code},
    core::access::Scope,
    domain::{
        emergency_stop,
        orgs::{self, NewOrganization},
        people, rights,
    },
};

/// Manage organizations
#[derive(Debug, Subcommand)]
pub enum Org {
    /// Create an organization with its first OWNER
    Create(Create),
    /// Change an organization's plan
    Update(Update),
    /// List every organization, with its plan and its numbers of members and agents
    List(List),
    /// Stop an organization: cancel what its agents do, and let nothing new start
    Stop(Stop),
    /// Release a stopped organization
    Release(Release),
    /// Write all data of an organization, except secrets, to a tar archive
    Export(Export),
    /// Schedule the deletion of an organization with all its data; a running service carries it out
    Delete(Delete),
    /// Cancel the scheduled deletion of an organization
    Keep(Keep),
}

#[derive(Debug, clap::Args)]
pub struct Create {
    /// The organization's name
    #[arg(long)]
    name: String,
    /// The owner's e-mail address; an unknown one gets an account, and `muster user create` sets its password
    #[arg(long, value_name = "EMAIL")]
    owner_email: String,
    /// The plan, which sets the limits: FREE, STARTER, PRO, BUSINESS or ENTERPRISE, the largest
    #[arg(long, default_value = "ENTERPRISE")]
    plan: Plan,
    /// Create it even if another organization has this name: commands then need the ids of the two
    #[arg(long)]
    same_name: bool,
}

#[derive(Debug, clap::Args)]
pub struct Update {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The plan, which sets the limits: FREE, STARTER, PRO, BUSINESS or ENTERPRISE
    #[arg(long)]
    plan: Plan,
}

#[derive(Debug, clap::Args)]
pub struct Stop {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The reason, which all members see
    #[arg(long)]
    reason: String,
}

#[derive(Debug, clap::Args)]
pub struct Release {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The reason, for the audit log
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Export {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The file to write, which must not exist yet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Delete {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// Begin at once, without the grace period (`erasure.grace_days`)
    #[arg(long)]
    now: bool,
}

#[derive(Debug, clap::Args)]
pub struct Keep {
    /// The organization's id or name
    #[arg(long)]
    org: String,
}

#[derive(Debug, clap::Args)]
pub struct List {}

impl Org {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Create(command) => command.run(cli).await,
            Self::Update(command) => command.run(cli).await,
            Self::List(command) => command.run(cli).await,
            Self::Stop(command) => command.run(cli).await,
            Self::Release(command) => command.run(cli).await,
            Self::Export(command) => command.run(cli).await,
            Self::Delete(command) => command.run(cli).await,
            Self::Keep(command) => command.run(cli).await,
        }
    }
}

impl Create {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_or_make().await?;
        // Checked first, so that no account is created for an organization that is then refused.
        orgs::check_name(&self.name)?;
        let name = self.name.trim().to_owned();
        if !self.same_name && orgs::all(&core.db).await?.iter().any(|org| org.name == name) {
            let detail = format!(
                "An organization named `{name}` already exists (see `muster org list`). Choose another name, or \
                 --same-name to create a second one: commands then need their ids."
            );
            return Err(Failure::with_code(Code::NameTaken, detail));
        }
        let is_known = people::find_user(&core, &self.owner_email).await.is_ok();
        let owner = people::invite_user(&core, &self.owner_email).await?;
        let id = orgs::create(&core, NewOrganization { name: self.name, plan: self.plan, owner }).await?;
        core.shut_down().await;
        let json = json!({
            "id": id, "name": name, "plan": self.plan, "owner_id": owner, "owner_is_new": !is_known,
        });
        let mut output = Output::from_json(json).if_lost(format!("Organization {id} exists."));
        if !is_known {
            output = output.and(&format!(
                "No account had the address {email}, so one was created without a password. `muster user create --email {email}` \
                 sets its name and password.",
                email = without_controls(self.owner_email.trim())
            ));
        }
        Ok(output)
    }
}

impl Update {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let org = orgs::find(&core, &self.org).await?;
        let is_changed = orgs::set_plan(&Scope::system(&core, org), self.plan).await?;
        core.shut_down().await;
        let json = json!({ "organization_id": org, "plan": self.plan, "was_changed": is_changed });
        Ok(Output::from_json(json))
    }
}

impl Stop {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let org = orgs::find(&core, &self.org).await?;
        let is_new = emergency_stop::stop(&Scope::system(&core, org), &self.reason).await?;
        let stopped = orgs::stopped(&Scope::system(&core, org)).await?;
        core.shut_down().await;
        let json = json!({ "organization_id": org, "was_stopped": !is_new, "stopped": stopped });
        let output = Output::from_json(json);
        Ok(if is_new {
            output
        } else {
            output.and("It was stopped already. The author, time and reason of that stop are unchanged.")
        })
    }
}

impl Release {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let org = orgs::find(&core, &self.org).await?;
        let was_stopped = emergency_stop::release(&Scope::system(&core, org), self.reason.as_deref()).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!({ "organization_id": org, "was_stopped": was_stopped })))
    }
}

impl Export {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_as_is().await?;
        let org = orgs::find(&core, &self.org).await?;
        let path = self.out;
        let file = output::create(&path)?;
        let written = write_archive(&Scope::system(&core, org), file).await;
        if written.is_err() {
            // Part of an archive could be mistaken for all of it.
            let _ = std::fs::remove_file(&path);
        }
        core.shut_down().await;
        Ok(Output::from_json(json!({ "organization_id": org, "file": path, "bytes": written? })))
    }
}

async fn write_archive(scope: &Scope, mut file: File) -> Result<usize, Failure> {
    let mut pieces = pin!(rights::export(scope));
    let mut bytes = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        file.write_all(&piece)?;
        bytes += piece.len();
    }
    file.sync_all()?;
    Ok(bytes)
}

impl Delete {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let org = orgs::find(&core, &self.org).await?;
        let grace = if self.now { Duration::ZERO } else { core.config.erasure.grace() };
        let due = rights::schedule_by_operator(&Scope::system(&core, org), grace).await?;
        let told = send_mail(&core).await;
        core.shut_down().await;
        let json = json!({ "organization_id": org, "due_at": due, "told_by_mail": told });
        Ok(Output::from_json(json).and(
            "A running service carries it out. Until it is due, `muster org keep` cancels it, and so can an OWNER.",
        ))
    }
}

impl Keep {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let org = orgs::find(&core, &self.org).await?;
        let was_scheduled = rights::cancel_by_operator(&Scope::system(&core, org)).await?;
        send_mail(&core).await;
        core.shut_down().await;
        Ok(Output::from_json(json!({ "organization_id": org, "was_scheduled": was_scheduled })))
    }
}

impl List {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let organizations = orgs::all(&core.db).await?;
        core.shut_down().await;
        let rows: Vec<_> = organizations
            .iter()
            .map(|org| {
                let (id, plan, at) = (org.id.to_string(), org.plan.to_string(), org.created_at.to_string());
                let counts = [org.members, org.owners, org.agents].map(|count| count.to_string());
                let [members, owners, agents] = counts;
                [id, org.name.clone(), plan, at, members, owners, agents]
            })
            .collect();
        let heading = ["id", "name", "plan", "created", "members", "owners", "agents"];
        let text = if rows.is_empty() { "None yet.".to_owned() } else { table(heading, &rows) };
        Ok(Output::with_text(json!({ "organizations": organizations }), text))
    }
}
