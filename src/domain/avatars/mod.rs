//! Avatars: pictures of agents, organizations, and people.
//!
//! An `<img>` sends no credentials, so a picture's URL is the credential: `?v=` is 52 random bits, new with each
//! picture, and appears only in records that the caller may read. Anyone who may edit the agent or the organization can
//! set its picture; people set their own. A browser receives only valid pictures.

pub(crate) mod entity;

use imagesize::ImageType;
use sea_orm::{ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, ExprTrait, QueryFilter, Set};
use serde_json::json;

use self::entity::avatars;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{AgentId, OrgId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Request,
        access::{Person, Scope},
        audit::{self, Entry, PersonalEntry, record_personal},
        sealing::random_bytes,
        store::Tx,
    },
    domain::{agents, orgs, people},
};

/// The largest picture, in bytes, because anyone can upload one and everyone loads it.
pub const LARGEST: usize = 512 << 10;

/// The maximum number of pixels per side, because a browser unpacks the whole picture, even from a small file.
pub const WIDEST: usize = 4096;

/// The owner of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Agent(OrgId, AgentId),
    Organization(OrgId),
    User(UserId),
}

/// A checked picture. Its type comes from its bytes, not from its sender.
#[derive(Clone, Debug)]
pub struct Picture {
    mime_type: &'static str,
    content: Vec<u8>,
}

impl Picture {
    /// Checks the bytes.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE`; `VALIDATION_FAILED` for too many pixels; `UNSUPPORTED_MEDIA_TYPE` for anything but
    /// a PNG, JPEG, GIF, or WebP.
    pub fn read(content: Vec<u8>) -> Result<Self> {
        if content.len() > LARGEST {
            let detail = format!("A picture must be at most {LARGEST} bytes.");
            return Err(Problem::new(Code::PayloadTooLarge, detail).with("limit", LARGEST));
        }
        let unknown =
            || Problem::new(Code::UnsupportedMediaType, "A picture must be a PNG, JPEG, GIF, or WebP.");
        let mime_type = match imagesize::image_type(&content) {
            Ok(ImageType::Png) => "image/png",
            Ok(ImageType::Jpeg) => "image/jpeg",
            Ok(ImageType::Gif) => "image/gif",
            Ok(ImageType::Webp) => "image/webp",
            _ => return Err(unknown()),
        };
        let size = imagesize::blob_size(&content).map_err(|_| unknown())?;
        if size.width.max(size.height) > WIDEST {
            let detail = format!(
                "The picture is {} × {} pixels; the maximum is {WIDEST} × {WIDEST}.",
                size.width, size.height
            );
            return Err(Problem::invalid_at("/content_base64", "TOO_LARGE", detail));
        }
        Ok(Self { mime_type, content })
    }
}

/// Sets or removes an agent's picture.
///
/// # Errors
/// `NOT_FOUND`, `PLAN_LIMIT_REACHED`.
pub async fn set_agent(scope: &Scope, id: AgentId, picture: Option<Picture>) -> Result<()> {
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let (version, size) = (picture.as_ref().map(|_| new_version()), stored_bytes(picture.as_ref()));
    agents::set_avatar(&tx, id, version).await?;
    replace_picture(tx.connection(), Owner::Agent(scope.org, id), version.zip(picture), tx.now).await?;
    orgs::check_stored(&tx, size).await?;
    record_and_commit(tx, "setAgentAvatar", RecordKind::Agent, id.0).await
}

/// Sets or removes the organization's picture.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`.
pub async fn set_organization(scope: &Scope, picture: Option<Picture>) -> Result<()> {
    let tx = scope.begin().await?;
    let (version, size) = (picture.as_ref().map(|_| new_version()), stored_bytes(picture.as_ref()));
    orgs::set_avatar(&tx, version).await?;
    replace_picture(tx.connection(), Owner::Organization(scope.org), version.zip(picture), tx.now).await?;
    orgs::check_stored(&tx, size).await?;
    record_and_commit(tx, "setOrganizationAvatar", RecordKind::Organization, scope.org.0).await
}

/// Sets or removes a person's picture.
pub async fn set_user(request: &Request, person: &Person, picture: Option<Picture>) -> Result<()> {
    let (core, user) = (&request.core, person.id);
    let tx = request.begin().await?;
    let now = core.clock.now();
    let version = picture.as_ref().map(|_| new_version());
    people::set_avatar(&tx, user, version, now).await?;
    people::announce(core, &tx, user).await?;
    replace_picture(&tx, Owner::User(user), version.zip(picture), now).await?;
    let entry = PersonalEntry::done("setViewerAvatar", user, json!({ "avatar": "changed" }));
    record_personal(&tx, request, entry);
    tx.commit().await?;
    Ok(())
}

fn stored_bytes(picture: Option<&Picture>) -> i64 {
    picture.map_or(0, |picture| picture.content.len().cast_signed() as i64)
}

async fn record_and_commit(tx: Tx, operation: &'static str, kind: RecordKind, id: i64) -> Result<()> {
    let (op, changes) = (ChangeOp::Updated, json!({ "avatar": "changed" }));
    audit::record(&tx, Entry { operation, op, kind, id, changes });
    tx.commit().await
}

/// 52 random bits: as many as fit comfortably in a JSON number and a URL.
fn new_version() -> i64 {
    i64::from_le_bytes(random_bytes()) & ((1 << 52) - 1)
}

#[expect(
    clippy::disallowed_methods,
    reason = "people's pictures belong to no organization, and the filter is the owner"
)]
async fn replace_picture(
    connection: &impl ConnectionTrait,
    owner: Owner,
    picture: Option<(i64, Picture)>,
    now: Timestamp,
) -> Result<()> {
    use avatars::Column;
    let (organization, agent, user) = owner.columns();
    let same = match owner {
        Owner::Agent(org, agent) => Column::OrganizationId.eq(org).and(Column::AgentId.eq(agent)),
        Owner::Organization(org) => Column::OrganizationId.eq(org).and(Column::AgentId.is_null()),
        Owner::User(user) => Column::UserId.eq(user),
    };
    avatars::Entity::delete_many().filter(same).exec(connection).await?;
    let Some((version, picture)) = picture else { return Ok(()) };
    let row = avatars::ActiveModel {
        version: Set(version),
        organization_id: Set(organization),
        agent_id: Set(agent),
        user_id: Set(user),
        mime_type: Set(picture.mime_type.to_owned()),
        content: Set(picture.content),
        created_at: Set(now),
    };
    row.insert(connection).await?;
    Ok(())
}

impl Owner {
    fn columns(self) -> (Option<OrgId>, Option<AgentId>, Option<UserId>) {
        match self {
            Self::Agent(org, agent) => (Some(org), Some(agent), None),
            Self::Organization(org) => (Some(org), None, None),
            Self::User(user) => (None, None, Some(user)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a PNG of this size, without a picture.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend(width.to_be_bytes());
        png.extend(height.to_be_bytes());
        png.extend([8, 2, 0, 0, 0]);
        png
    }

    #[test]
    fn the_bytes_determine_the_type() {
        assert_eq!(Picture::read(png(8, 8)).unwrap().mime_type, "image/png");
        let gif = b"GIF89a\x10\0\x10\0\0\0\0;".to_vec();
        assert_eq!(Picture::read(gif).unwrap().mime_type, "image/gif");
        let wrong = [
            &b""[..],
            b"<svg onload=alert(1)>",
            b"%PDF-1.7",
            b"GIF8",
            b"\x89PNG\r\n\x1a\n",
            b"BM0000000000000000",
        ];
        for wrong in wrong {
            let refused = Picture::read(wrong.to_vec()).unwrap_err();
            assert_eq!(refused.code, Code::UnsupportedMediaType, "{wrong:?}");
        }
        assert_eq!(Picture::read(vec![0; LARGEST + 1]).unwrap_err().code, Code::PayloadTooLarge);
    }

    #[test]
    fn a_picture_has_a_maximum_of_pixels() {
        assert!(Picture::read(png(4096, 4096)).is_ok());
        for (width, height) in [(4097, 1), (1, 4097), (20_000, 20_000), (u32::MAX, u32::MAX)] {
            let refused = Picture::read(png(width, height)).unwrap_err();
            assert_eq!(refused.code, Code::ValidationFailed, "{width} × {height}");
        }
    }
}
