//! `muster user …`.

use std::fmt::Write;

use clap::Subcommand;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{Cli, Failure, Output, output::table, secret::NewPassword};
use crate::domain::people::oidc::Providers;
use crate::{
    base::{ids::UserId, numerals::with_noun, plain::without_controls, time::Timestamp},
    core::{Core, access::CREDENTIALS_KEPT},
    domain::{
        notifications, orgs,
        people::{self, Account, AccountFilter, Details, Disabled, Membership, NewUser, OrganizationRef},
        rights::{self, ErasedPerson},
    },
    resolvers::RECHECK,
};

/// Manage user accounts
#[derive(Debug, Subcommand)]
pub enum User {
    /// Create a user, or set the name and password of one without a password
    Create(Create),
    /// List all accounts, or an organization's members
    List(List),
    /// Show an account, with its sessions and every other way to sign in
    Show(AccountArgs),
    /// Lock an account: no one can sign in to it, and all its sessions end
    Disable(AccountArgs),
    /// Unlock an account
    Enable(AccountArgs),
    /// Replace a person's name and address wherever they are stored; their account and memberships end
    Erase(EraseArgs),
    /// Remove the password, end all sessions, and print a link that sets a new password
    ResetPassword(AccountArgs),
    /// Remove a lost second factor with its recovery codes, and end all sessions
    ResetSecondFactor(AccountArgs),
}

#[derive(Debug, clap::Args)]
pub struct Create {
    /// The e-mail address to sign in with
    #[arg(long)]
    email: String,
    /// The name to show
    #[arg(long)]
    name: String,
    #[command(flatten)]
    password: NewPassword,
    /// Treat the address as confirmed
    #[arg(long)]
    confirmed: bool,
}

#[derive(Debug, clap::Args)]
pub struct List {
    /// Only members of this organization, by id or name
    #[arg(long)]
    org: Option<String>,
}

/// The account that a command works on.
#[derive(Debug, clap::Args)]
pub struct AccountArgs {
    /// The person's e-mail address or id
    #[arg(value_name = "EMAIL|ID")]
    user: String,
}

/// The person to be erased.
#[derive(Debug, clap::Args)]
pub struct EraseArgs {
    /// The e-mail address or id of an account, or a contact's address
    #[arg(value_name = "ADDRESS|ID")]
    person: String,
    /// Confirm it: this can't be undone
    #[arg(long)]
    forever: bool,
}

impl User {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Create(command) => command.run(cli).await,
            Self::List(command) => command.run(cli).await,
            Self::Show(who) => show(cli, &who).await,
            Self::Disable(who) => disable(cli, &who).await,
            Self::Enable(who) => enable(cli, &who).await,
            Self::Erase(who) => erase(cli, &who).await,
            Self::ResetPassword(who) => reset_password(cli, &who).await,
            Self::ResetSecondFactor(who) => reset_second_factor(cli, &who).await,
        }
    }
}

impl Create {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        // Checked before the password is typed.
        cli.settings()?;
        let password = self.password.read()?;
        let core = cli.open_or_make_unbound().await?;
        let new = NewUser { email: self.email, name: self.name, password, confirmed: self.confirmed };
        let id = people::create_user(&core, new).await?;
        let user = people::user(&core, id).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!({
            "id": id, "email": user.email, "name": user.name, "email_confirmed": user.email_confirmed,
        }))
        .if_lost(format!("User {id} exists.")))
    }
}

impl List {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let filter = match &self.org {
            Some(org) => AccountFilter::MembersOf(orgs::find(&core, org).await?),
            None => AccountFilter::All,
        };
        let users = people::accounts(&core.db, filter).await?;
        core.shut_down().await;
        let rows: Vec<_> = users.iter().map(row).collect();
        let heading = ["id", "email", "name", "confirmed", "second factor", "disabled", "organizations"];
        let text = if users.is_empty() { "No users yet.".to_owned() } else { table(heading, &rows) };
        Ok(Output::with_text(json!({ "users": users }), text))
    }
}

fn row(user: &Account) -> [String; 7] {
    let places: Vec<String> = user.memberships.iter().map(place).collect();
    [
        user.id.to_string(),
        user.email.clone(),
        user.name.clone(),
        yes_no(user.email_confirmed),
        yes_no(user.has_second_factor),
        since(user.disabled_at),
        if places.is_empty() { "-".to_owned() } else { places.join(", ") },
    ]
}

fn place(membership: &Membership) -> String {
    format!("{} {} ({})", membership.role, membership.organization_name, membership.organization_id)
}

fn yes_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn since(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "no".to_owned(), |at| format!("since {at}"))
}

async fn show(cli: &Cli, who: &AccountArgs) -> Result<Output, Failure> {
    let (core, user) = cli.account(who).await?;
    let details = people::details(&core, &Providers::new(&core.config)?, user).await?;
    core.shut_down().await;
    Ok(Output::with_text(json!(details), in_words(&details)))
}

/// An account as text for people.
fn in_words(details: &Details) -> String {
    let account = &details.account;
    let lines = [
        ("id", account.id.to_string()),
        ("email", account.email.clone()),
        ("name", account.name.clone()),
        ("confirmed", yes_no(account.email_confirmed)),
        ("disabled", since(account.disabled_at)),
        ("password", yes_no(account.has_password)),
        ("second factor", yes_no(account.has_second_factor)),
        ("recovery codes", details.recovery_codes.to_string()),
        ("created", account.created_at.to_string()),
    ];
    let mut text: String =
        lines.iter().map(|(key, value)| format!("{key}: {}\n", without_controls(value))).collect();
    let mut part = |name: &str, lines: Vec<String>| {
        let _ = writeln!(text, "{name}:{}", if lines.is_empty() { " none" } else { "" });
        for line in lines {
            let _ = writeln!(text, "    {}", without_controls(&line));
        }
    };
    part("organizations", account.memberships.iter().map(place).collect());
    let sessions = details.sessions.iter().map(|session| {
        let last = session.last_used_at.unwrap_or(session.refreshed_at);
        let (from, with) = (session.ip.as_deref(), session.user_agent.as_deref());
        let (from, with) = (from.unwrap_or("an unknown address"), with.unwrap_or("an unknown program"));
        format!("{}: last used {last} from {from} with {with}, ends {}", session.id, session.expires_at)
    });
    part("sessions", sessions.collect());
    let linked = details.linked_accounts.iter().map(|linked| {
        let lost = if linked.is_usable { "" } else { " (this provider is no longer in the settings)" };
        format!("{} at {}{lost}, last used {}", linked.email, linked.provider, linked.last_used_at)
    });
    part("linked accounts", linked.collect());
    let made = details.service_tokens.iter();
    let made =
        made.map(|token| format!("{} {} of organization {}", token.id, token.name, token.organization_id));
    part("service tokens they created", made.collect());
    text
}

async fn disable(cli: &Cli, who: &AccountArgs) -> Result<Output, Failure> {
    let (core, user) = cli.account(who).await?;
    let done = people::disable_user(&core, user).await?;
    core.shut_down().await;
    Ok(Output::with_text(json!(done), remaining_steps(&done)))
}

/// What was done, and with emphasis what the operator still needs to do.
fn remaining_steps(done: &Disabled) -> String {
    let Disabled { id, email, disabled_at, .. } = done;
    let mut text = if done.changed {
        format!(
            "{email} ({id}) is disabled; sessions ended: {}. A running service refuses them within {} seconds, and \
             closes open sockets and streams within {}.\n",
            done.sessions_ended,
            CREDENTIALS_KEPT.as_secs(),
            RECHECK.as_secs(),
        )
    } else {
        format!("{email} ({id}) was already disabled, at {disabled_at}; nothing was changed.\n")
    };
    for OrganizationRef { id, name } in &done.organizations_without_owner {
        let _ = writeln!(
            text,
            "WARNING: organization {} ({id}) has no OWNER left who can sign in. Appoint one: `muster member add \
             --org {id} --email … --role OWNER`, or `muster member update` for an existing member.",
            without_controls(name),
        );
    }
    for token in &done.service_tokens {
        let (org, id, name) = (token.organization_id, token.id, without_controls(&token.name));
        let _ = writeln!(
            text,
            "Their service token {name} ({id}) belongs to the organization and still works. To revoke it: `muster token \
             revoke --org {org} --id {id}`.",
        );
    }
    text
}

async fn enable(cli: &Cli, who: &AccountArgs) -> Result<Output, Failure> {
    let (core, user) = cli.account(who).await?;
    let done = people::enable_user(&core, user).await?;
    core.shut_down().await;
    let (id, email) = (done.id, &done.email);
    let text = if done.changed {
        format!(
            "{email} ({id}) can sign in again with the credentials that are left. If the password was removed, the link from \
             `muster user reset-password` sets a new one."
        )
    } else {
        format!("{email} ({id}) is not disabled; nothing was changed.")
    };
    Ok(Output::with_text(json!(done), text))
}

async fn erase(cli: &Cli, who: &EraseArgs) -> Result<Output, Failure> {
    if !who.forever {
        return Err(Failure::invalid("An erasure can't be undone. Add --forever to confirm it."));
    }
    let core = cli.open_unbound().await?;
    let done = rights::erase_person(&core, &who.person).await?;
    let is_sqlite = core.config.database.is_sqlite();
    core.shut_down().await;
    Ok(Output::with_text(json!(done), erasure_in_words(&done, is_sqlite)))
}

/// An erasure as text for people: the erased records, the columns with the name replaced, and the remaining texts.
fn erasure_in_words(done: &ErasedPerson, is_sqlite: bool) -> String {
    let mut text = format!(
        "Erased: {}, {} and {}.\n",
        done.id.map_or_else(|| "no account".to_owned(), |id| format!("account {id}")),
        with_noun(done.contacts, "contact"),
        with_noun(done.invitations, "invitation"),
    );
    if !done.names.is_empty() {
        text.push_str("The name was replaced in:\n");
    }
    for (column, rows) in &done.names {
        let _ = writeln!(text, "    {column}: {}", with_noun(*rows, "row"));
    }
    text.push_str("Texts, such as those of messages and files, stay: docs/personal-data.md lists them.\n");
    if is_sqlite {
        text.push_str("The free space of the database file has the name until `muster vacuum`.\n");
    }
    text
}

async fn reset_password(cli: &Cli, who: &AccountArgs) -> Result<Output, Failure> {
    let (core, user) = cli.account(who).await?;
    let done = people::reset_user_password(&core, user).await?;
    let link = super::link(&core, "reset-password", &done.token);
    let told = send_mail(&core).await;
    core.shut_down().await;
    let (id, email, ended, until) = (done.id, &done.email, done.sessions_ended, done.expires_at);
    let mut text = format!(
        "The password of {email} ({id}) is removed; sessions ended: {ended}. This link sets a new one. It works once, \
         until {until}. Give it only to the owner, because it also confirms the address.\n{link}\n{}\n",
        in_a_word(told),
    );
    if done.is_disabled {
        text.push_str(
            "The account is disabled: the link works once `muster user enable` has enabled it again.\n",
        );
    }
    let answer = json!({
        "id": id, "email": email, "sessions_ended": ended, "disabled": done.is_disabled, "told_by_mail": told,
        "link": link, "token": done.token.expose_secret(), "expires_at": until,
    });
    let lost = format!(
        "The password of user {id} is removed, and the link that sets a new one is lost: run the command again."
    );
    Ok(Output::with_text(answer, text).if_lost(lost))
}

async fn reset_second_factor(cli: &Cli, who: &AccountArgs) -> Result<Output, Failure> {
    let (core, user) = cli.account(who).await?;
    let done = people::reset_second_factor(&core, user).await?;
    let told = send_mail(&core).await;
    core.shut_down().await;
    let (id, email, ended) = (done.id, &done.email, done.sessions_ended);
    let mut text = format!(
        "The second factor of {email} ({id}) and its recovery codes are removed; sessions ended: {ended}. {}\n",
        in_a_word(told)
    );
    for OrganizationRef { id, name } in &done.organizations_requiring_one {
        let name = without_controls(name);
        let _ = writeln!(text, "Organization {name} ({id}) lets them in once they have set up a new one.");
    }
    let mut answer = json!(done);
    answer["told_by_mail"] = Value::from(told);
    Ok(Output::with_text(answer, text))
}

/// Sends the mail that was just written. Returns whether mail is set up. The service sends it later if this fails.
pub(super) async fn send_mail(core: &std::sync::Arc<Core>) -> bool {
    if let Err(problem) = notifications::deliver_due(core).await {
        tracing::warn!(%problem, "mail.not_sent_yet");
    }
    core.mailer.is_on()
}

const fn in_a_word(told: bool) -> &'static str {
    if told { "They are notified by mail." } else { "Mail is not set up: tell them yourself." }
}

impl Cli {
    /// Opens the service, and finds the account that the command works on.
    async fn account(&self, who: &AccountArgs) -> Result<(std::sync::Arc<Core>, UserId), Failure> {
        let core = self.open_unbound().await?;
        let user = people::find_user_by(&core.db, &who.user).await?;
        Ok((core, user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erasure_says_what_and_where() {
        let names = [("audit_log.actor_name".to_owned(), 12), ("messages.author_name".to_owned(), 1)];
        let done = ErasedPerson { contacts: 1, names: names.into(), ..ErasedPerson::default() };
        let said = erasure_in_words(&done, false);
        let expected = "Erased: no account, 1 contact and 0 invitations.\nThe name was replaced in:\n    \
                        audit_log.actor_name: 12 rows\n    messages.author_name: 1 row\n";
        assert!(said.starts_with(expected) && !said.contains("vacuum"), "{said}");
        assert!(erasure_in_words(&done, true).contains("until `muster vacuum`"));
    }
}
