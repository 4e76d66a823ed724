//! Opens the values of an agent's credentials for its host. No other code returns them.

use async_graphql::MaybeUndefined;
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder};
use secrecy::SecretString;

use super::{
    destinations,
    entity::{credential_agents, credential_fields, credentials},
    fields, seal_context,
};
use crate::{
    base::{
        enums::{CredentialKind, FieldType},
        ids::{AgentId, CredentialId},
        json::texts,
        problem::{Problem, Result},
    },
    core::store::Tx,
};

/// A credential with its values.
#[derive(Clone, Debug)]
pub struct OpenedCredential {
    pub id: CredentialId,
    pub name: String,
    pub kind: CredentialKind,
    pub destinations: Vec<String>,
    /// Whether a person allowed agents to read it.
    pub agent_may_read: bool,
    /// The labels of the fields of type `multiline`.
    pub multiline: Vec<String>,
    /// Label and value of the fields that have a value, in order.
    pub fields: Vec<(String, SecretString)>,
}

/// Opens the credentials that the agent may use, in order of their ids.
pub async fn open_for_agent(tx: &Tx, agent: AgentId) -> Result<Vec<OpenedCredential>> {
    let links = tx.scope.find::<credential_agents::Entity>();
    let links = links.filter(credential_agents::Column::AgentId.eq(agent)).all(tx.connection()).await?;
    let ids = links.iter().map(|link| link.credential_id);
    let found = tx
        .scope
        .find::<credentials::Entity>()
        .filter(credentials::Column::Id.is_in(ids))
        .filter(credentials::Column::ArchivedAt.is_null())
        .order_by_asc(credentials::Column::Id);
    let found = found.all(tx.connection()).await?;
    let fields = tx
        .scope
        .find::<credential_fields::Entity>()
        .filter(credential_fields::Column::CredentialId.is_in(found.iter().map(|credential| credential.id)))
        .order_by_asc(credential_fields::Column::Position)
        .order_by_asc(credential_fields::Column::Id);
    let fields = fields.all(tx.connection()).await?;
    let mut opened = Vec::with_capacity(found.len());
    for credential in found {
        let (mut own, mut multiline) = (Vec::new(), Vec::new());
        for field in fields.iter().filter(|field| field.credential_id == credential.id) {
            if let Some(sealed) = &field.value_sealed {
                let value = tx.scope.core.sealing.open(sealed, &seal_context(tx.scope.org, field.id));
                own.push((field.label.clone(), value.map_err(Problem::internal)?));
                if field.r#type == FieldType::Multiline {
                    multiline.push(field.label.clone());
                }
            }
        }
        opened.push(OpenedCredential {
            id: credential.id,
            destinations: texts(&credential.destinations),
            name: credential.name,
            kind: credential.kind,
            agent_may_read: credential.agent_may_read_at.is_some(),
            multiline,
            fields: own,
        });
    }
    Ok(opened)
}

/// Whether credentials are assigned to the agent. Archived ones count, because they may be restored.
pub async fn has_any(tx: &Tx, agent: AgentId) -> Result<bool> {
    let links = tx.scope.find::<credential_agents::Entity>();
    Ok(links.filter(credential_agents::Column::AgentId.eq(agent)).count(tx.connection()).await? > 0)
}

/// The name of the first credential with stored values that one of these agents may read. Archived ones count, because
/// they may be restored.
pub async fn readable_by(tx: &Tx, agents: &[AgentId]) -> Result<Option<String>> {
    let links = tx.scope.find::<credential_agents::Entity>();
    let links = links.filter(credential_agents::Column::AgentId.is_in(agents.iter().copied()));
    let ids = links.all(tx.connection()).await?.into_iter().map(|link| link.credential_id);
    let found = tx.scope.find::<credentials::Entity>();
    let found = found
        .filter(credentials::Column::Id.is_in(ids))
        .filter(credentials::Column::AgentMayReadAt.is_not_null())
        .order_by_asc(credentials::Column::Id);
    for credential in found.all(tx.connection()).await? {
        if fields::keeps_value(tx, credential.id, &MaybeUndefined::Undefined).await? {
            return Ok(Some(credential.name));
        }
    }
    Ok(None)
}

/// The first of these credentials whose stored values an MCP server of this name gets regardless of its address or
/// program. Archived ones count, because they may be restored.
pub async fn given_by_name(tx: &Tx, names: &[String], server: &str) -> Result<Option<String>> {
    let found = tx.scope.find::<credentials::Entity>();
    let found = found.filter(credentials::Column::Name.is_in(names)).order_by_asc(credentials::Column::Id);
    for credential in found.all(tx.connection()).await? {
        let names_server = |text: &String| destinations::names_mcp_server(text, server);
        let is_given = credential.agent_may_read_at.is_some()
            || texts(&credential.destinations).iter().any(names_server);
        if is_given && fields::keeps_value(tx, credential.id, &MaybeUndefined::Undefined).await? {
            return Ok(Some(credential.name));
        }
    }
    Ok(None)
}
