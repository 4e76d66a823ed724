//! `muster demo`: a service to try out, with one organization and a bit of everything in it.

mod house;
mod machine;
mod model;
mod orders;
mod shop;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
};

use async_graphql::MaybeUndefined;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::oneshot;

use self::{
    machine::{Engine, Machine},
    model::Model,
    shop::Shop,
};
use super::{Cli, Failure, Output, doctor, listen, load, open, serve, session::sign_in_link, write_defaults};
use crate::{
    base::{
        enums::Plan,
        files,
        ids::{ConversationId, OrgId},
        problem::Result,
    },
    core::{
        Core,
        access::{Scope, authn::recognize},
        config::Config,
        mail,
        store::{
            Owner,
            sql::{RunSql as _, RunWritingSql as _, sql},
        },
    },
    domain::{
        orgs::{self, NewOrganization},
        people::{self, NewUser},
        service_tokens::{self, NewToken},
    },
    seed::{self, Volume},
};

/// The credentials of the demo's owner. Not a secret: the demo listens on this machine only.
const EMAIL: &str = "owner@example.com";
const PASSWORD: &str = "look-around-in-muster";
/// Holds the service token, for the next start.
const TOKEN_FILE: &str = "service-token";
/// How to choose another address.
const LISTEN: &str = "muster demo --listen {}";

/// Serve a demo organization with its own database
///
/// The first start creates the data; later starts continue with it. Delete the folder to start over. Your settings
/// apply, except for where things are kept: the database, key file and policies are in the folder.
///
/// The agents run without a model. MUSTER_DEMO_MODEL_URL, MUSTER_DEMO_MODEL and MUSTER_DEMO_MODEL_KEY give one to
/// Marlow: its address, its name and its key.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// The folder for all of the demo's data
    #[arg(long, value_name = "FOLDER", default_value = "data/demo")]
    data_dir: PathBuf,
    /// The address and port to serve on, on this machine only since everyone knows the password [default: the setting
    /// listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Run the agents in containers of this engine. Their image is built first
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "docker"
    )]
    containers: Option<Engine>,
}

impl Demo {
    pub(super) async fn run(self, cli: &Cli) -> std::result::Result<Output, Failure> {
        let config = self.settings(cli)?;
        // The policy folder does not exist yet.
        let mut given = config.clone();
        given.policy_dir = None;
        doctor::require_good_files(&given)?;
        Owner::check(&config)?;
        let model = Model::read()?;
        if let Some(engine) = self.containers {
            machine::build_image(engine).await?;
        }
        // Bound first: if the address is in use, no data is created.
        let bound = listen::bind(config.listen, LISTEN)?;
        let address = bound.address()?;
        // Links use the actual port, which the system may have chosen.
        let mut config = config;
        config.listen = address;
        let shop = Shop::open(&mut config).await?;
        open::make_folder(&config)?;
        let mut owner = Owner::acquire(&config, "muster demo")?;
        // Its own policy folder, so that docs/policies.md can be followed.
        if let Some(policies) = &config.policy_dir {
            write_defaults(policies)?;
        }
        let core = load(open::owned(config, &owner, true).await?.0).await?;
        let org = organization(&core).await?;
        let scope = Scope::system(&core, org);
        let is_new = is_empty(&scope).await?;
        if is_new {
            let support = house::furnish(&scope).await?;
            shop.connect(&scope, support).await?;
            let until = core.clock.now();
            let volume = Volume {
                agents: 6,
                conversations: 24,
                messages: 600,
                approvals: 14,
                members: 0,
                one_conversation: false,
                at_rest: true,
                until,
            };
            seed::run(&scope, volume).await?;
            // The seeded approvals are in the inbox, without notifications.
            let tx = scope.begin().await?;
            tx.execute(sql!("DELETE FROM notifications WHERE organization_id = $org"), []).await?;
            tx.commit().await?;
        }
        if let (Some(model), Some(support)) = (model, house::support(&scope).await?) {
            model.give(&scope, support).await?;
        }
        let token = token(&scope).await?;
        let owner_of = people::find_user(&core, EMAIL).await?;
        let (code, _) = people::create_link(&core, owner_of).await?;
        let inbound = Box::pin(shop.find(&scope)).await?;
        let link = sign_in_link(&core, &code);
        let shown = Shown { address, org, token, link, inbound: inbound.clone() };
        let shown = if cli.json { shown.in_json() } else { shown.in_words() };
        let listener = bound.listen(LISTEN)?;
        owner.serves_at(&format!("http://{address}"))?;
        let on_ready = || {
            let _ = writeln!(io::stdout(), "{shown}");
        };
        let (stopping, print) = (core.tasks.stopping.clone(), !cli.json);
        core.tasks.spawn(async move {
            stopping.run_until_cancelled_owned(shop.serve(print)).await;
        });
        if let Some(path) = inbound.filter(|_| is_new) {
            let (own, url) = (Arc::clone(&core), format!("http://{address}{path}"));
            core.tasks.spawn(async move { shop::write_as_customers(&own, &url).await });
        }
        // The host needs the service, so it starts beside it.
        let (starting, base, containers) = (Arc::clone(&core), format!("http://{address}"), self.containers);
        let (started, machine) = oneshot::channel();
        core.tasks.spawn(async move {
            match Machine::start(&starting, scope, &base, containers).await {
                Ok(machine) => drop(started.send(machine)),
                Err(failure) => tracing::error!(%failure, "demo.agents_do_not_run"),
            }
        });
        let before_stop = async {
            if let Ok(machine) = machine.await {
                machine.stop().await;
            }
        };
        Box::pin(serve(core, listener, on_ready, before_stop)).await?;
        Ok(Output::none())
    }

    /// The settings, with all data in the demo's own folder.
    fn settings(&self, cli: &Cli) -> std::result::Result<Config, Failure> {
        let mut config = cli.settings()?.moved_to(&self.data_dir)?;
        config.listen = self.listen.unwrap_or(config.listen);
        if !config.listen.ip().is_loopback() {
            let detail = "everyone knows the demo's password, so it only serves this machine. Use an address such as \
                          127.0.0.1:8080, or `muster serve` with accounts of your own";
            return Err(Failure::invalid(format!("{}: {detail}", config.listen)));
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

/// The demo's organization, created if it does not exist.
async fn organization(core: &Arc<Core>) -> Result<OrgId> {
    let owner = match people::find_user(core, EMAIL).await {
        Ok(user) => user,
        Err(_) => {
            let new = NewUser {
                email: EMAIL.to_owned(),
                name: "Olivia Brandt".to_owned(),
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
            orgs::create(core, NewOrganization { name, plan: Plan::Enterprise, owner }).await
        }
    }
}

async fn is_empty(scope: &Scope) -> Result<bool> {
    let sql = sql!("SELECT id FROM conversations WHERE organization_id = $org LIMIT 1");
    Ok(scope.scalar::<ConversationId>(sql, []).await?.is_none())
}

/// The demo's service token, with every permission that one can have. Reuses the one of the last start while it is
/// valid.
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
    let token = service_tokens::create(scope, new).await?.1;
    let _ = std::fs::remove_file(&file);
    files::create_private(&file)?.write_all(token.expose_secret().as_bytes())?;
    Ok(token)
}

const QUERY: &str =
    "{ agents(orgId: ORG, page: 1, limit: 3) { total data { name status server { name } } } }";

/// Starts a conversation with the agent on this machine. docs/agents.md describes its reaction.
const TALK: &str = "mutation { startConversation(orgId: ORG, input: { agentId: 1, text: \"Please refund order 1012.\" }) { id } }";

/// The last message of a conversation, and the state of its delivery.
const DELIVERED: &str = "{ messages(orgId: ORG, conversationId: ID, limit: 1) { data { content delivery { status code attempts error sentAt } } } }";

/// Further addresses: name, path, purpose.
const PLACES: [(&str, &str, &str); 6] = [
    ("documentation", "/docs", "of this version, with a reference of the API"),
    ("explorer", "/graphql", "try GraphQL in a browser"),
    ("OpenAPI", "/openapi.json", "the REST API, /v1"),
    ("tools", "/mcp", "for AI clients (MCP)"),
    ("health", "/health", "is it alive?"),
    ("ready", "/ready", "is it ready?"),
];

/// The text for the terminal once the demo runs.
struct Shown {
    address: SocketAddr,
    org: OrgId,
    token: SecretString,
    link: String,
    /// The path for messages to the webhook channel.
    inbound: Option<String>,
}

impl Shown {
    fn in_json(&self) -> String {
        let at = |path: &str| format!("http://{}{path}", self.address);
        json!({
            "address": at(""),
            "link": self.link,
            "organization_id": self.org,
            "service_token": self.token.expose_secret(),
            "sign_in": { "email": EMAIL, "password": PASSWORD },
            "explorer": at("/graphql"),
            "webhook": self.inbound.as_deref().map(|path| json!({ "url": at(path), "secret": shop::SECRET, "signature_header": shop::HEADER })),
            "places": PLACES.iter().map(|(name, path, _)| (*name, at(path))).collect::<BTreeMap<_, _>>(),
        })
        .to_string()
    }

    fn in_words(&self) -> String {
        let Self { address, org, link, .. } = self;
        let token = self.token.expose_secret();
        let body = json!({ "query": QUERY.replace("ORG", &org.to_string()) });
        let answer = json!({ "options": ["approve"] });
        let webhook = self.webhook();
        let talk = json!({ "query": TALK.replace("ORG", &org.to_string()) });
        let width = PLACES.iter().map(|(_, path, _)| path.len()).max().unwrap_or_default();
        let places: String = PLACES
            .iter()
            .map(|(name, path, about)| format!("  {name:<15} http://{address}{path:<width$}  {about}\n"))
            .collect();
        format!(
            "Open this in a browser to sign in, once and within ten minutes:

  {link}

Later, sign in at http://{address} with {EMAIL} / {PASSWORD}

Two agents run on this machine: Marlow and Redline. Ask Marlow, under Get started: Where is order 1004? When the demo starts
for the first time, two customers write through the shop's channel, and Marlow asks for approval of a refund: decide it under
Approvals, and Marlow goes on. The other agents are examples, and stopped: their server is away.

  organization    {org} (Northwind Outfitters)
  service token   {token}

{places}
Try:

  the agents, through REST
    curl -H 'Authorization: Bearer {token}' 'http://{address}/v1/org/{org}/agent?page=1&limit=3'

  some of their fields, through GraphQL
    curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
      -d '{body}' http://{address}/graphql

  a refund by Marlow: it checks the order and the policy, asks a moment later, and goes on when you decide; ID is the
  approval's
    curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
      -d '{talk}' http://{address}/graphql
    curl -H 'Authorization: Bearer {token}' 'http://{address}/v1/org/{org}/approval?only_pending=true&page=1&limit=1'
    curl -X PATCH -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
      -d '{answer}' http://{address}/v1/org/{org}/approval/ID/answer
{webhook}
Unless mail.url is set, mail is not sent but shown here, with its links: say, when an agent asks for approval.

Press Ctrl-C to stop; the data is kept."
        )
    }
    /// A command that writes to the channel as a customer would.
    fn webhook(&self) -> String {
        let Some(path) = &self.inbound else { return String::new() };
        let body =
            json!({ "text": "Where is order 1004?", "origin_id": "amara", "origin_name": "Amara Jansen" });
        let delivered = json!({ "query": DELIVERED.replace("ORG", &self.org.to_string()) });
        let (address, token) = (self.address, self.token.expose_secret());
        format!(
            "
  a customer of a shop writes to Marlow, through a webhook. The shop is this terminal: it shows what Marlow answers
    body='{body}'
    curl -H 'Content-Type: application/json' --data-binary \"$body\" \\
      -H \"{header}: sha256=$(printf %s \"$body\" | openssl dgst -sha256 -hmac {secret} -r | cut -d' ' -f1)\" \\
      http://{address}{path}

  what became of the answer; ID is the conversation_id that the call above shows
    curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
      -d '{delivered}' http://{address}/graphql
",
            header = shop::HEADER,
            secret = shop::SECRET,
        )
    }
}
