//! Members of the organization.

use muster_corpus::{Random, person};

use super::{
    Volume,
    bulk::{Bulk, Sheet},
};
use crate::base::{folding, ids::OrgId, time::DAY_MS};

/// Creates people without a password, so that no one can sign in as one of them, and makes them members.
pub async fn create(bulk: &mut Bulk, org: OrgId, volume: &Volume, mut random: Random) -> anyhow::Result<u64> {
    let mut users = Sheet::new(
        "users",
        &[
            "id",
            "email",
            "email_folded",
            "name",
            "name_folded",
            "email_confirmed_at",
            "created_at",
            "updated_at",
        ],
    );
    let mut members = Sheet::new("members", &["organization_id", "user_id", "role", "created_at"]);
    let ids = bulk.ids("users", volume.members as usize).await?;
    for &id in &ids {
        let name = person(&mut random);
        let email = format!("member-{id}@example.org");
        let at = volume.until.0 - random.between(DAY_MS, 390 * DAY_MS);
        users.push([
            id.into(),
            email.clone().into(),
            folding::address(&email).into(),
            name.clone().into(),
            folding::name(&name).into(),
            at.into(),
            at.into(),
            at.into(),
        ]);
        let role = random.weighted(&[(1, "ADMIN"), (3, "OPERATOR"), (6, "VIEWER")]);
        members.push([org.0.into(), id.into(), role.into(), at.into()]);
    }
    bulk.write(&mut users).await?;
    bulk.write(&mut members).await?;
    Ok(ids.len() as u64)
}
