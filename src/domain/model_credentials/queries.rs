//! SQL of model credentials.

use crate::{
    base::{ids::ModelCredentialId, problem::Result},
    core::store::{
        Tx,
        sql::{RunSql as _, sql},
    },
};

/// Clears the default of a provider. Returns the credentials that no longer are. The caller has locked the
/// organization.
pub(super) async fn replace_default(
    tx: &Tx,
    provider: &str,
    except: Option<ModelCredentialId>,
) -> Result<Vec<ModelCredentialId>> {
    let sql = sql!(
        "UPDATE model_credentials SET is_default = FALSE WHERE organization_id = $org AND provider = $2 \
         AND is_default AND id <> $3 RETURNING id"
    );
    let except = except.map_or(0, |except| except.0);
    tx.column(sql, [provider.into(), except.into()]).await
}
