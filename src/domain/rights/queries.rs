//! SQL of what people may demand.

use sea_orm::Value;

use super::{
    ERASED, Subject,
    tables::{Name, NameOf},
};
use crate::{
    base::{
        enums::{AgentStatus, ErasureState, ErasureSubject},
        folding,
        ids::{AgentId, ContactId, ErasureId, MessageId, OrgId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
};

row! {
    /// A scheduled erasure.
    pub(super) struct Erasure {
        id: ErasureId,
        organization_id: OrgId,
        subject: ErasureSubject,
        user_id: Option<UserId>,
        contact_id: Option<ContactId>,
        state: ErasureState,
        state_at: Timestamp,
        due_at: Timestamp,
    }
}

const COLUMNS: &str =
    "id, organization_id, subject, user_id, contact_id, state, state_at, due_at FROM erasures ";

/// The erasures that are due, and those that have begun.
pub(super) async fn due(core: &Core) -> Result<Vec<Erasure>> {
    let sql = every_org_sql!("SELECT ", COLUMNS, "WHERE due_at <= $1 ORDER BY organization_id, id");
    core.db.every_org().all(sql, [core.clock.now().into()]).await
}

/// An erasure, locked until the transaction ends.
pub(super) async fn lock(tx: &Tx, id: ErasureId) -> Result<Option<Erasure>> {
    let sql = sql!("SELECT ", COLUMNS, "WHERE organization_id = $org AND id = $2 FOR UPDATE");
    tx.one(sql, [id.into()]).await
}

/// The scheduled deletion of the organization.
pub(super) async fn deletion(scope: &Scope) -> Result<Option<Erasure>> {
    let sql = sql!("SELECT ", COLUMNS, "WHERE organization_id = $org AND subject = 'ORGANIZATION'");
    scope.one(sql, []).await
}

/// Makes the deletion of the organization due at `due`, if it would be due later.
pub(super) async fn bring_forward(tx: &Tx, due: Timestamp) -> Result<()> {
    let sql = sql!(
        "UPDATE erasures SET due_at = $2 WHERE organization_id = $org AND subject = 'ORGANIZATION' AND due_at > $2"
    );
    tx.execute(sql, [due.into()]).await?;
    Ok(())
}

/// Makes an erasure due at `due`.
pub(super) async fn postpone(tx: &Tx, id: ErasureId, due: Timestamp) -> Result<()> {
    let sql = sql!("UPDATE erasures SET due_at = $3 WHERE organization_id = $org AND id = $2");
    tx.execute(sql, [id.into(), due.into()]).await?;
    Ok(())
}

/// Schedules an erasure, unless it is scheduled already. Returns whether it is new.
pub(super) async fn insert(tx: &Tx, subject: Subject, due: Timestamp) -> Result<bool> {
    let sql = sql!(
        "INSERT INTO erasures (organization_id, subject, user_id, contact_id, state, state_at, requested_by, \
         requested_at, due_at) VALUES ($org, $2, $3, $4, $5, $6, $7, $6, $8) ON CONFLICT DO NOTHING"
    );
    let values = [
        subject.kind().into(),
        subject.user().into(),
        subject.contact().into(),
        ErasureState::Scheduled.into(),
        tx.now.into(),
        tx.scope.request.caller.user().into(),
        due.into(),
    ];
    Ok(tx.execute(sql, values).await? > 0)
}

pub(super) async fn delete(tx: &Tx, id: ErasureId) -> Result<()> {
    let sql = sql!("DELETE FROM erasures WHERE organization_id = $org AND id = $2");
    tx.execute(sql, [id.into()]).await?;
    Ok(())
}

/// Moves the deletion of the organization on to the next state. False: another process has done it, or it is cancelled.
pub(super) async fn move_on(tx: &Tx, from: ErasureState, to: ErasureState) -> Result<bool> {
    let sql = sql!(
        "UPDATE erasures SET state = $2, state_at = $3 WHERE organization_id = $org AND subject = 'ORGANIZATION' \
         AND state = $4"
    );
    Ok(tx.execute(sql, [to.into(), tx.now.into(), from.into()]).await? > 0)
}

row! {
    /// An OWNER who can sign in.
    pub(super) struct Owner {
        id: UserId,
        email: String,
    }
}

pub(super) async fn owners(tx: &Tx) -> Result<Vec<Owner>> {
    let sql = sql!(
        "SELECT u.id, u.email FROM members m JOIN users u ON u.id = m.user_id \
         WHERE m.organization_id = $org AND m.role = 'OWNER' AND u.disabled_at IS NULL ORDER BY u.id"
    );
    tx.all(sql, []).await
}

/// The organization's name.
pub(super) async fn name(tx: &Tx) -> Result<String> {
    let sql = sql!("SELECT name FROM organizations WHERE id = $org");
    Ok(tx.scalar(sql, []).await?.unwrap_or_default())
}

/// Whether the organization has this contact.
pub(super) async fn has_contact(tx: &Tx, contact: ContactId) -> Result<bool> {
    let sql =
        sql!("SELECT id FROM contacts WHERE organization_id = $org AND id = $2 AND archived_at IS NULL");
    Ok(tx.scalar::<ContactId>(sql, [contact.into()]).await?.is_some())
}

/// Revokes all service tokens.
pub(super) async fn revoke_tokens(tx: &Tx) -> Result<()> {
    let sql = sql!(
        "UPDATE service_tokens SET revoked_at = $2, previous_token_hash = NULL WHERE organization_id = $org \
         AND revoked_at IS NULL"
    );
    tx.execute(sql, [tx.now.into()]).await?;
    Ok(())
}

/// Switches all channels off.
pub(super) async fn deactivate_channels(tx: &Tx) -> Result<()> {
    let sql = sql!(
        "UPDATE channels SET is_active = FALSE, inactive_reason = 'MANUAL' WHERE organization_id = $org AND is_active"
    );
    tx.execute(sql, []).await?;
    Ok(())
}

/// Switches all event endpoints off.
pub(super) async fn deactivate_endpoints(tx: &Tx) -> Result<()> {
    let sql = sql!(
        "UPDATE event_endpoints SET is_active = FALSE, inactive_reason = 'MANUAL' WHERE organization_id = $org \
         AND is_active"
    );
    tx.execute(sql, []).await?;
    Ok(())
}

row! {
    /// An agent that is not deleted.
    pub(super) struct Agent {
        id: AgentId,
        status: AgentStatus,
    }
}

pub(super) async fn agents(scope: &Scope) -> Result<Vec<Agent>> {
    let sql = sql!(
        "SELECT id, status FROM agents WHERE organization_id = $org AND archived_at IS NULL ORDER BY id"
    );
    scope.all(sql, []).await
}

/// Whether commands still wait for hosts.
pub(super) async fn has_commands(scope: &Scope) -> Result<bool> {
    let sql = sql!(
        "SELECT id FROM commands WHERE organization_id = $org AND acknowledged_at IS NULL AND expires_at > $2 LIMIT 1"
    );
    Ok(scope.scalar::<i64>(sql, [scope.core.clock.now().into()]).await?.is_some())
}

/// Locks out all hosts, and ends their connections.
pub(super) async fn cut_off_hosts(tx: &Tx) -> Result<()> {
    let sql = sql!(
        "UPDATE servers SET host_token_hash = NULL, provisioning_token_hash = NULL, host_replica = NULL, \
         host_epoch = host_epoch + 1 WHERE organization_id = $org"
    );
    tx.execute(sql, []).await?;
    Ok(())
}

/// Cuts the circles among the tables, so that each can be deleted before those that it refers to.
pub(super) async fn cut_circles(tx: &Tx) -> Result<()> {
    let image = sql!(
        "UPDATE organizations SET default_image_id = NULL WHERE id = $org AND default_image_id IS NOT NULL"
    );
    tx.execute(image, []).await?;
    let channels = sql!(
        "UPDATE channels SET notify_conversation_id = NULL WHERE organization_id = $org \
         AND notify_conversation_id IS NOT NULL"
    );
    tx.execute(channels, []).await?;
    let contacts = sql!("DELETE FROM erasures WHERE organization_id = $org AND subject <> 'ORGANIZATION'");
    tx.execute(contacts, []).await?;
    Ok(())
}

/// Whether lines of the organization's log wait to be sealed.
pub(super) async fn has_unsealed(scope: &Scope) -> Result<bool> {
    let sql = sql!("SELECT id FROM audit_unsealed WHERE organization_id = $org LIMIT 1");
    Ok(scope.scalar::<i64>(sql, []).await?.is_some())
}

/// Deletes what is left of the organization, and itself.
pub(super) async fn delete_organization(tx: &Tx) -> Result<()> {
    for rest in [
        sql!("DELETE FROM erasures WHERE organization_id = $org"),
        sql!("DELETE FROM audit_unsealed WHERE organization_id = $org"),
        sql!("DELETE FROM organizations WHERE id = $org"),
    ] {
        tx.execute(rest, []).await?;
    }
    Ok(())
}

/// Removes a contact's addresses from what is known beside the contact. `addresses` are all of theirs.
pub(super) async fn forget_addresses(tx: &Tx, contact: ContactId, addresses: &[String]) -> Result<()> {
    let conversations = sql!(
        "UPDATE conversations SET target = NULL, thread_key = NULL, readers = '[]' WHERE organization_id = $org \
         AND contact_id = $2"
    );
    tx.execute(conversations, [contact.into()]).await?;
    let keys = tx.scope.core.db.keys(addresses);
    for rows in [
        sql!("DELETE FROM channel_refusals WHERE organization_id = $org AND origin_id = ANY($2)"),
        sql!("DELETE FROM channel_whitelist WHERE organization_id = $org AND origin_id = ANY($2)"),
        sql!("DELETE FROM channel_links WHERE organization_id = $org AND origin_id = ANY($2)"),
    ] {
        tx.execute(rows, [keys.clone()]).await?;
    }
    let requests = sql!(
        "UPDATE approvals SET origin_id = NULL, body = NULL, title = $3, title_folded = $4 \
         WHERE organization_id = $org AND origin_id = ANY($2)"
    );
    tx.execute(requests, [keys, ERASED.into(), folding::name(ERASED).into()]).await?;
    Ok(())
}

/// The accounts of an organization's members. `$1` is the organization.
pub(super) const MEMBERS: &str = "id IN (SELECT m.user_id FROM members m WHERE m.organization_id = $1)";

/// The name of a contact's messages: the assignment and the condition. `$1` is the new name, `$2` the organization, `$3`
/// the contact.
pub(super) const NAME_OF_CONTACT: (&str, &str) = (
    "author_name = $1",
    "organization_id = $2 AND author_name <> $1 AND via_identity_id IN (SELECT i.id FROM identities i \
     WHERE i.organization_id = $2 AND i.contact_id = $3)",
);

/// The raw mails of a contact. `$1` is the organization, `$2` the contact.
pub(super) const SOURCES_OF_CONTACT: &str = "organization_id = $1 AND message_id IN (SELECT m.id FROM messages m \
     JOIN identities i ON i.organization_id = m.organization_id AND i.id = m.via_identity_id \
     WHERE m.organization_id = $1 AND i.contact_id = $2)";

/// The next message whose raw mail is stored.
pub(super) async fn next_mail(scope: &Scope, after: i64) -> Result<Option<MessageId>> {
    let sql = sql!(
        "SELECT message_id FROM message_sources WHERE organization_id = $org AND message_id > $2 \
         ORDER BY message_id LIMIT 1"
    );
    scope.scalar(sql, [after.into()]).await
}

row! {
    /// A contact of an organization.
    pub(super) struct FoundContact {
        organization_id: OrgId,
        contact_id: ContactId,
    }
}

/// The contacts with this address, in all organizations.
pub(super) async fn contacts_with(core: &Core, address: &str) -> Result<Vec<FoundContact>> {
    let sql = every_org_sql!(
        "SELECT DISTINCT i.organization_id, i.contact_id FROM identities i JOIN contacts c \
         ON c.organization_id = i.organization_id AND c.id = i.contact_id AND c.archived_at IS NULL \
         WHERE i.origin_id_folded = $1 ORDER BY i.organization_id, i.contact_id"
    );
    core.db.every_org().all(sql, [folding::name(address).into()]).await
}

/// The organizations that a person belongs to.
pub(super) async fn organizations_of(core: &Core, user: UserId) -> Result<Vec<OrgId>> {
    let sql =
        every_org_sql!("SELECT organization_id FROM members WHERE user_id = $1 ORDER BY organization_id");
    core.db.every_org().column(sql, [user.into()]).await
}

/// The organizations that have acted through a person, as their logs say.
pub(super) async fn organizations_known_to(core: &Core, user: UserId) -> Result<Vec<OrgId>> {
    let sql = every_org_sql!(
        "SELECT DISTINCT organization_id FROM audit_lines WHERE actor_kind = 'USER' AND actor_id = $1 \
         AND organization_id IS NOT NULL ORDER BY organization_id"
    );
    core.db.every_org().column(sql, [user.into()]).await
}

/// The person whose name is replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Person<'a> {
    pub id: UserId,
    pub name: &'a str,
}

/// How a name is replaced in a table: the assignment, the condition and their values. In one organization, or in all.
/// `None`: it can only be found in one.
pub(super) fn replacement(
    table: &str,
    Name { column, of }: &Name,
    person: Person<'_>,
    org: Option<OrgId>,
) -> Option<(String, String, Vec<Value>)> {
    let mut values: Vec<Value> = vec![ERASED.into()];
    let mut condition = format!("{column} <> $1");
    let mut require = |column: &str, value: Value| {
        values.push(value);
        condition.push_str(&format!(" AND {column} = ${}", values.len()));
    };
    match of {
        NameOf::User(id) => require(id, person.id.into()),
        NameOf::Actor(id, kind) => {
            require(id, person.id.into());
            require(kind, "USER".into());
        }
        NameOf::Namesake(id) => {
            require(id, person.id.into());
            require(column, person.name.into());
        }
        NameOf::Bearer => {
            org?;
            require(column, person.name.into());
        }
    }
    if let Some(org) = org {
        require(if table == "organizations" { "id" } else { "organization_id" }, org.into());
    }
    Some((format!("{column} = $1"), condition, values))
}
