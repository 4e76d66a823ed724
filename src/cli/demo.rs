//! `muster demo`: a service to look at, with one organization and some of everything in it.

mod house;

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use async_graphql::MaybeUndefined;
use sea_orm::{ConnectionTrait, Statement};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::net::TcpListener;

use super::{Cli, Failure, Output, serve};
use crate::{
    access::Scope,
    app::App,
    config::Config,
    enums::Plan,
    error::Result,
    ids::OrgId,
    mail,
    orgs::{self, NewOrganization},
    people::{self, NewToken, NewUser},
    seed::{self, Volume},
};

/// The sign-in of the demonstration's owner. It is no secret: the demonstration listens to this machine alone.
const EMAIL: &str = "owner@example.com";
const PASSWORD: &str = "look-around-in-muster";
/// How long the service token of one start is good.
const TOKEN_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Serve an organization with some of everything, on a database of its own
///
/// The first start makes the data, later ones continue with it. Delete the folder to begin anew.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// The folder for everything that the demonstration keeps
    #[arg(long, value_name = "FOLDER", default_value = "data/demo")]
    data_dir: PathBuf,
    /// Address and port to serve on: of this machine alone, since everybody knows the password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
}

impl Demo {
    pub(super) async fn run(self, cli: &Cli) -> std::result::Result<Output, Failure> {
        if !self.listen.ip().is_loopback() {
            let detail = "everybody knows the demonstration's password: it is served to this machine alone. Take an address \
                          such as 127.0.0.1:8080, or `muster serve` with accounts of your own";
            return Err(Failure::new(format!("{}: {detail}", self.listen)));
        }
        let mut config = Config::in_folder(&self.data_dir)?;
        config.listen = self.listen;
        // A folder of its own, so that editing policies can be tried: docs/policies.md does.
        let policies = self.data_dir.join("policies");
        crate::access::policy::write_defaults(&policies)?;
        config.policy_dir = Some(policies);
        "warn".clone_into(&mut config.log.filter);
        // Taken first: data that nobody can look at is not worth waiting for.
        let listener = TcpListener::bind(config.listen).await?;
        let address = listener.local_addr()?;
        // Links in mails lead here, and mails are shown in this terminal.
        config.public_url = Some(format!("http://{address}"));
        config.mail.url = Some(mail::LOG.into());
        config.mail.from = Some("Muster <muster@example.com>".to_owned());
        let app = super::open(config).await?;
        let org = organization(&app).await?;
        let scope = Scope::system(&app, org);
        if is_empty(&scope).await? {
            house::furnish(&scope).await?;
            let until = app.clock.now();
            let volume = Volume {
                agents: 6,
                conversations: 24,
                messages: 600,
                approvals: 14,
                one_conversation: false,
                until,
            };
            seed::run(&scope, volume).await?;
        }
        let token = token(&scope).await?;
        let shown = if cli.json { in_json(address, org, &token) } else { in_words(address, org, &token) };
        serve(app, listener, || {
            let _ = writeln!(io::stdout(), "{shown}");
        })
        .await?;
        Ok(Output::none())
    }
}

/// The demonstration's organization, made if it is not there.
async fn organization(app: &Arc<App>) -> Result<OrgId> {
    let owner = match people::find_user(app, EMAIL).await {
        Ok(user) => user,
        Err(_) => {
            let new = NewUser {
                email: EMAIL.to_owned(),
                name: "Olivia Owner".to_owned(),
                password: SecretString::from(PASSWORD),
                confirmed: true,
            };
            people::create_user(app, new).await?
        }
    };
    match people::memberships(app, owner).await?.first() {
        Some(membership) => Ok(membership.organization_id),
        None => {
            let name = "Northwind Outfitters".to_owned();
            orgs::create(app, NewOrganization { name, plan: Plan::Business, owner }).await
        }
    }
}

async fn is_empty(scope: &Scope) -> Result<bool> {
    let sql = "SELECT 1 FROM conversations WHERE organization_id = $1 LIMIT 1";
    let db = scope.app.db.read();
    let found = Statement::from_sql_and_values(db.get_database_backend(), sql, [scope.org.0.into()]);
    Ok(db.query_one_raw(found).await?.is_none())
}

/// A service token for this start: it may whatever one may.
async fn token(scope: &Scope) -> Result<SecretString> {
    let permissions = scope.app.policy.token_cap().iter().collect();
    let expires_at = MaybeUndefined::Value(scope.app.clock.now().plus(TOKEN_TTL));
    let new = NewToken { name: "Demonstration".to_owned(), permissions, expires_at };
    Ok(people::create_token(scope, new).await?.1)
}

const QUERY: &str =
    "{ agents(orgId: ORG, page: 1, limit: 3) { total data { name status server { name } } } }";

fn in_json(address: SocketAddr, org: OrgId, token: &SecretString) -> String {
    json!({
        "address": format!("http://{address}"),
        "organization_id": org,
        "service_token": token.expose_secret(),
        "sign_in": { "email": EMAIL, "password": PASSWORD },
        "explorer": format!("http://{address}/graphql"),
    })
    .to_string()
}

fn in_words(address: SocketAddr, org: OrgId, token: &SecretString) -> String {
    let token = token.expose_secret();
    let body = json!({ "query": QUERY.replace("ORG", &org.to_string()) });
    format!(
        "Muster serves on http://{address}

  organization    {org} (Northwind Outfitters)
  service token   {token}
  sign-in         {EMAIL} / {PASSWORD}

Try:

  the agents, through REST
    curl -H 'Authorization: Bearer {token}' 'http://{address}/v1/org/{org}/agent?page=1&limit=3'

  some of their fields, through GraphQL
    curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
      -d '{body}' http://{address}/graphql

  the GraphQL explorer, in a browser
    http://{address}/graphql

Mail is not sent: it is shown here, links included.

Ctrl-C ends it; the data stays."
    )
}
