//! `muster demo`: a service to look at, with one organization and some of everything in it.

mod house;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
};

use async_graphql::MaybeUndefined;
use sea_orm::{ConnectionTrait, Statement};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{Cli, Failure, Output, doctor, listen, load, open, serve, write_defaults};
use crate::{
    base::{enums::Plan, files, ids::OrgId, problem::Result},
    core::{
        Core,
        access::{Scope, recognize},
        config::Config,
        mail,
        store::Owner,
    },
    seed::{self, Volume},
    slices::{
        orgs::{self, NewOrganization},
        people::{self, NewToken, NewUser},
    },
};

/// The sign-in of the demonstration's owner. It is no secret: the demonstration listens to this machine alone.
const EMAIL: &str = "owner@example.com";
const PASSWORD: &str = "look-around-in-muster";
/// The file in which a start finds the service token of the one before.
const TOKEN_FILE: &str = "service-token";
/// How another address is named.
const LISTEN: &str = "muster demo --listen {}";

/// Serve an organization with some of everything, on a database of its own
///
/// The first start makes the data, later ones continue with it. Delete the folder to begin again. The settings hold, but for
/// where things are kept: database, key file and policies are in the folder.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// The folder for everything that the demonstration keeps
    #[arg(long, value_name = "FOLDER", default_value = "data/demo")]
    data_dir: PathBuf,
    /// Address and port to serve on: of this machine alone, since everybody knows the password [default: the setting listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

impl Demo {
    pub(super) async fn run(self, cli: &Cli) -> std::result::Result<Output, Failure> {
        let config = self.settings(cli)?;
        // The folder's policies are not there yet.
        let mut given = config.clone();
        given.policy_dir = None;
        doctor::require_good_files(&given)?;
        Owner::check(&config)?;
        // Taken first: data that nobody can look at is not worth waiting for.
        let taken = listen::take(config.listen, LISTEN)?;
        let address = taken.address()?;
        // Links in mails lead here, and mails are shown in this terminal.
        let mut config = config;
        config.public_url.get_or_insert(format!("http://{address}"));
        open::make_folder(&config)?;
        let mut owner = Owner::take(&config, "muster demo")?;
        // A folder of its own, so that editing policies can be tried: docs/policies.md does.
        if let Some(policies) = &config.policy_dir {
            write_defaults(policies)?;
        }
        let core = load(open::owned(config, &owner).await?.0).await?;
        let org = organization(&core).await?;
        let scope = Scope::system(&core, org);
        if is_empty(&scope).await? {
            house::furnish(&scope).await?;
            let until = core.clock.now();
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
        let listener = taken.listen(LISTEN)?;
        owner.serves_at(&format!("http://{address}"))?;
        serve(core, listener, || {
            let _ = writeln!(io::stdout(), "{shown}");
        })
        .await?;
        Ok(Output::none())
    }

    /// What the settings say, in a folder of the demonstration's own.
    fn settings(&self, cli: &Cli) -> std::result::Result<Config, Failure> {
        let mut config = cli.settings()?.moved_to(&self.data_dir)?;
        config.listen = self.listen.unwrap_or(config.listen);
        if !config.listen.ip().is_loopback() {
            let detail = "everybody knows the demonstration's password: it is served to this machine alone. Take an address \
                          such as 127.0.0.1:8080, or `muster serve` with accounts of your own";
            return Err(Failure::new(format!("{}: {detail}", config.listen)));
        }
        if config.log.filter == Config::in_folder(&self.data_dir)?.log.filter {
            "warn".clone_into(&mut config.log.filter);
        }
        if config.mail.url.is_none() {
            config.mail.url = Some(mail::LOG.into());
            config.mail.from = Some("Muster <muster@example.com>".to_owned());
        }
        Ok(config)
    }
}

/// The demonstration's organization, made if it is not there.
async fn organization(core: &Arc<Core>) -> Result<OrgId> {
    let owner = match people::find_user(core, EMAIL).await {
        Ok(user) => user,
        Err(_) => {
            let new = NewUser {
                email: EMAIL.to_owned(),
                name: "Olivia Owner".to_owned(),
                password: SecretString::from(PASSWORD),
                confirmed: true,
            };
            people::create_user(core, new).await?
        }
    };
    match people::memberships(core, owner).await?.first() {
        Some(membership) => Ok(membership.organization_id),
        None => {
            let name = "Northwind Outfitters".to_owned();
            orgs::create(core, NewOrganization { name, plan: Plan::Business, owner }).await
        }
    }
}

async fn is_empty(scope: &Scope) -> Result<bool> {
    let sql = "SELECT 1 FROM conversations WHERE organization_id = $1 LIMIT 1";
    let db = scope.core.db.read();
    let found = Statement::from_sql_and_values(db.get_database_backend(), sql, [scope.org.0.into()]);
    Ok(db.query_one_raw(found).await?.is_none())
}

/// The demonstration's service token, which may whatever one may: that of the start before while it is good.
async fn token(scope: &Scope) -> std::result::Result<SecretString, Failure> {
    let file = scope.core.config.data_dir.join(TOKEN_FILE);
    if let Ok(kept) = std::fs::read_to_string(&file)
        && let Ok(recognized) = recognize(&scope.core, kept.trim())
        && recognized.caller(&scope.core).await.is_ok()
    {
        return Ok(kept.trim().into());
    }
    let permissions = scope.core.policy.token_cap().iter().collect();
    let new =
        NewToken { name: "Demonstration".to_owned(), permissions, expires_at: MaybeUndefined::Undefined };
    let token = people::create_token(scope, new).await?.1;
    let _ = std::fs::remove_file(&file);
    files::create_private(&file)?.write_all(token.expose_secret().as_bytes())?;
    Ok(token)
}

const QUERY: &str =
    "{ agents(orgId: ORG, page: 1, limit: 3) { total data { name status server { name } } } }";

/// What there is to look at: a name, a path, and who it is for.
const PLACES: [(&str, &str, &str); 6] = [
    ("explorer", "/graphql", "try GraphQL in a browser: paste the service token"),
    ("sign-in", "/sign-in", "sign in and out in a browser"),
    ("OpenAPI", "/openapi.json", "what /v1, the REST interface, has"),
    ("tools", "/mcp", "for AI clients (MCP)"),
    ("health", "/health", "whether it lives"),
    ("ready", "/ready", "whether it can serve"),
];

fn in_json(address: SocketAddr, org: OrgId, token: &SecretString) -> String {
    let at = |path: &str| format!("http://{address}{path}");
    json!({
        "address": at(""),
        "organization_id": org,
        "service_token": token.expose_secret(),
        "sign_in": { "email": EMAIL, "password": PASSWORD },
        "explorer": at("/graphql"),
        "places": PLACES.iter().map(|(name, path, _)| (*name, at(path))).collect::<BTreeMap<_, _>>(),
    })
    .to_string()
}

fn in_words(address: SocketAddr, org: OrgId, token: &SecretString) -> String {
    let token = token.expose_secret();
    let body = json!({ "query": QUERY.replace("ORG", &org.to_string()) });
    let width = PLACES.iter().map(|(_, path, _)| path.len()).max().unwrap_or_default();
    let places: String = PLACES
        .iter()
        .map(|(name, path, about)| format!("  {name:<15} http://{address}{path:<width$}  {about}\n"))
        .collect();
    format!(
        "Muster serves on http://{address}

  organization    {org} (Northwind Outfitters)
  service token   {token}
  sign-in         {EMAIL} / {PASSWORD}

{places}
Try:

  the agents, through REST
    curl -H 'Authorization: Bearer {token}' 'http://{address}/v1/org/{org}/agent?page=1&limit=3'

  some of their fields, through GraphQL
    curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
      -d '{body}' http://{address}/graphql

Mail is not sent unless mail.url is set: it is shown here, links included.

Ctrl-C ends it; the data stays."
    )
}
