//! What an agent's host is given of the agent's credentials: their values, opened. Nothing else opens them.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder};
use secrecy::SecretString;

use super::{
    entity::{credential_agents, credential_fields, credentials},
    place,
};
use crate::{
    base::{
        enums::CredentialKind,
        ids::AgentId,
        problem::{Problem, Result},
    },
    core::store::Tx,
};

/// A credential with its values.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: CredentialKind,
    /// The fields that have a value: label and value, in order.
    pub fields: Vec<(String, SecretString)>,
}

/// The credentials that the agent may use, opened, in order of their ids.
///
/// # Errors
/// The database is unreachable; a value can't be opened.
pub async fn of_agent(tx: &Tx, agent: AgentId) -> Result<Vec<Opened>> {
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
        let mut own = Vec::new();
        for field in fields.iter().filter(|field| field.credential_id == credential.id) {
            if let Some(sealed) = &field.value_sealed {
                let value = tx.scope.core.keys.open(sealed, &place(tx.scope.org, field.id));
                own.push((field.label.clone(), value.map_err(Problem::internal)?));
            }
        }
        opened.push(Opened { name: credential.name, kind: credential.kind, fields: own });
    }
    Ok(opened)
}
