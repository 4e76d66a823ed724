//! What an agent's host is given of the agent's credentials: their values, opened. Nothing else opens them.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder};
use secrecy::SecretString;

use super::{
    entity::{credential_agents, credential_fields, credentials},
    place,
};
use crate::{
    base::{
        enums::{CredentialKind, FieldType},
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
    /// The hosts and URLs it may be used for.
    pub destinations: Vec<String>,
    /// Whether a person said that agents may read it.
    pub agent_may_read: bool,
    /// The fields that have several lines, by label.
    pub multiline: Vec<String>,
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
        let (mut own, mut multiline) = (Vec::new(), Vec::new());
        for field in fields.iter().filter(|field| field.credential_id == credential.id) {
            if let Some(sealed) = &field.value_sealed {
                let value = tx.scope.core.keys.open(sealed, &place(tx.scope.org, field.id));
                own.push((field.label.clone(), value.map_err(Problem::internal)?));
                if field.r#type == FieldType::Multiline {
                    multiline.push(field.label.clone());
                }
            }
        }
        let destinations = credential.destinations.as_array().into_iter().flatten();
        opened.push(Opened {
            name: credential.name,
            kind: credential.kind,
            destinations: destinations.filter_map(|text| text.as_str().map(str::to_owned)).collect(),
            agent_may_read: credential.agent_may_read_at.is_some(),
            multiline,
            fields: own,
        });
    }
    Ok(opened)
}
