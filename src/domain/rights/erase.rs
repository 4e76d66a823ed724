//! Erases a person: replaces their name and addresses wherever a column holds them. Ids stay, so that records still say
//! that the same person did this and that. The contents of messages and files stay as they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sea_orm::Value;
use serde::Serialize;

use super::{
    queries::{self, Person},
    tables::{ERASED, Erased, RIGHTS},
};
use crate::{
    base::{
        bounds::ROWS,
        ids::{ContactId, OrgId, UserId},
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Scope},
    domain::{contacts, people},
};

/// The columns in which a name was replaced, such as `messages.author_name`, and in how many rows of each.
pub type ReplacedNames = BTreeMap<String, u64>;

/// What was erased.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ErasedPerson {
    /// The account, if there was one.
    pub id: Option<UserId>,
    /// The organizations that it belonged to.
    pub organizations: Vec<OrgId>,
    /// Where the name was replaced.
    pub names: ReplacedNames,
    /// The contacts that had the address.
    pub contacts: u64,
    /// The invitations that had the address.
    pub invitations: u64,
}

/// Erases a person whom the operator names by the address or the id of an account, or by a contact's address: their
/// account, and the contacts and invitations with the same address in all organizations. Erasing them again changes
/// nothing.
///
/// # Errors
/// `NOT_FOUND` without any of these; `CONFLICT` for the only OWNER of an organization, and for a number that is both an
/// account's id and a contact's address.
pub async fn erase_person(core: &Arc<Core>, reference: &str) -> Result<ErasedPerson> {
    let account = match people::find_user_by(&core.db, reference).await {
        Ok(id) => Some(people::user(core, id).await?),
        Err(problem) if problem.code == Code::NotFound => None,
        Err(problem) => return Err(problem),
    };
    let address = account.as_ref().map_or(reference.trim(), |account| account.email.as_str());
    let contacts = queries::contacts_with(core, address).await?;
    if let Some(account) = &account {
        require_one_meaning(core, reference, account).await?;
        require_other_owners(core, account.id).await?;
    }
    let invitations = people::erase_invitations(core, address).await?;
    if account.is_none() && contacts.is_empty() && invitations == 0 {
        let detail = format!("There is no user, no contact and no invitation `{address}`.");
        return Err(Problem::new(Code::NotFound, detail));
    }
    // The account goes last: its address finds the contacts again after an interruption.
    let mut erased = ErasedPerson { invitations, ..ErasedPerson::default() };
    for contact in contacts {
        let scope = Scope::system(core, contact.organization_id);
        erase_contact(&scope, contact.contact_id, &mut erased.names).await?;
        erased.contacts += 1;
    }
    if let Some(account) = account {
        let person = Person { id: account.id, name: &account.name };
        erased.organizations = erase_account(core, person, &mut erased.names).await?;
        erased.id = Some(account.id);
    }
    Ok(erased)
}

/// A customer's number, which is a contact's address, must not erase the account with this id.
async fn require_one_meaning(core: &Core, reference: &str, account: &people::User) -> Result<()> {
    let is_id = reference.trim() == account.id.to_string();
    if !is_id || queries::contacts_with(core, reference.trim()).await?.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "`{}` is the id of the account {}, and the address of a contact. Give the account's address, or erase the contact in \
         the panel.",
        reference.trim(),
        account.email
    );
    Err(Problem::new(Code::Conflict, detail))
}

async fn require_other_owners(core: &Core, user: UserId) -> Result<()> {
    let owned = people::solely_owned(core, user).await?;
    if owned.is_empty() {
        return Ok(());
    }
    let owned: Vec<String> = owned.iter().map(|org| format!("{} ({})", org.name, org.id)).collect();
    let detail = format!(
        "They are the only OWNER of: {}. Make another member an OWNER (`muster member update`), or delete the organization \
         (`muster org delete`).",
        owned.join(", ")
    );
    Err(Problem::new(Code::Conflict, detail))
}

/// Returns the organizations that the person belonged to. The name goes last, because it finds the rows that have nothing
/// else.
async fn erase_account(
    core: &Arc<Core>,
    person: Person<'_>,
    replaced: &mut ReplacedNames,
) -> Result<Vec<OrgId>> {
    people::disable_user(core, person.id).await?;
    let organizations = queries::organizations_of(core, person.id).await?;
    let known: BTreeSet<OrgId> = queries::organizations_known_to(core, person.id)
        .await?
        .into_iter()
        .chain(organizations.clone())
        .collect();
    for org in &organizations {
        people::remove_member(&Scope::system(core, *org), person.id).await?;
    }
    replace_names(core, person, None, replaced).await?;
    for org in known {
        replace_names(core, person, Some(org), replaced).await?;
    }
    for table in RIGHTS {
        if let Erased::Rows(rows) = table.erased {
            delete_all(core, table.table, rows, &[Value::from(person.id.0)]).await?;
        }
    }
    people::erase_user(core, person.id, ERASED).await?;
    Ok(organizations)
}

/// Erases a member from an organization. False: they are its only OWNER, so nothing was done.
pub(super) async fn erase_member(scope: &Scope, user: UserId) -> Result<bool> {
    match people::remove_member(scope, user).await {
        Err(problem) if problem.code == Code::LastOwner => {
            tracing::warn!(org = scope.org.0, user = user.0, "erasure.waits: the member is the only OWNER");
            return Ok(false);
        }
        Err(problem) if problem.code == Code::NotFound => {}
        done => done?,
    }
    people::erase_invitations_of(scope, user).await?;
    let name = people::user(&scope.core, user).await?.name;
    let person = Person { id: user, name: &name };
    replace_names(&scope.core, person, Some(scope.org), &mut ReplacedNames::new()).await?;
    Ok(true)
}

/// Replaces a person's name in the tables of one organization, or in all.
async fn replace_names(
    core: &Core,
    person: Person<'_>,
    org: Option<OrgId>,
    replaced: &mut ReplacedNames,
) -> Result<()> {
    for table in RIGHTS {
        let Erased::Names(names) = table.erased else { continue };
        for name in names {
            let Some((assignment, condition, values)) = queries::replacement(table.table, name, person, org)
            else {
                continue;
            };
            let count = core.db.rewrite(table.table, (&assignment, &condition), &values).await?;
            add(replaced, table.table, name.column, count);
        }
    }
    Ok(())
}

fn add(replaced: &mut ReplacedNames, table: &str, column: &str, count: u64) {
    if count > 0 {
        *replaced.entry(format!("{table}.{column}")).or_default() += count;
    }
}

/// Erases a contact, if it is still there.
pub(super) async fn erase_contact(scope: &Scope, id: ContactId, replaced: &mut ReplacedNames) -> Result<()> {
    let tx = scope.begin().await?;
    let addresses = match contacts::erase(&tx, id, ERASED).await {
        Err(problem) if problem.code == Code::NotFound => return Ok(()),
        erased => erased?,
    };
    queries::forget_addresses(&tx, id, &addresses).await?;
    tx.commit().await?;
    let values: [Value; 3] = [ERASED.into(), scope.org.into(), id.into()];
    let count = scope.core.db.rewrite("messages", queries::NAME_OF_CONTACT, &values).await?;
    add(replaced, "messages", "author_name", count);
    delete_all(&scope.core, "message_sources", queries::SOURCES_OF_CONTACT, &values[1..]).await
}

async fn delete_all(core: &Core, table: &str, rows: &str, values: &[Value]) -> Result<()> {
    while core.db.delete_batch(table, rows, values).await? == u64::from(ROWS) {}
    Ok(())
}
