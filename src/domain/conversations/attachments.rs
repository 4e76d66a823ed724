//! Attachments: files uploaded first and posted with a message later.
//!
//! A sender's file name and type are not trusted: names are reduced to a plain file name, and browsers are instructed
//! to save the file instead of showing it (`api/files/attachments.rs`).

use std::collections::HashSet;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, NotSet, QueryFilter, QueryOrder, QuerySelect, Set, sea_query::Expr,
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::entity::{attachment_blobs, attachments};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, RecordKind},
        ids::{AgentId, AttachmentId, MessageId},
        problem::{Code, Problem, Result, Violation},
    },
    core::{access::Scope, audit, store::Tx},
    domain::orgs,
};

/// The type of a file sent without one.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// A file to store.
#[derive(Clone, Debug)]
pub struct Upload {
    /// As given by the sender.
    pub filename: String,
    /// As given by the sender.
    pub mime_type: Option<String>,
    pub content: Vec<u8>,
}

/// The record of a stored file.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Uploaded {
    pub id: AttachmentId,
    /// Reduced to a plain file name.
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: i64,
    /// For downloads; a path.
    pub url: String,
    /// None if a person or an integration sent it.
    pub uploaded_by_agent_id: Option<AgentId>,
}

/// A stored file.
#[derive(Clone, Debug)]
pub struct File {
    pub filename: String,
    pub mime_type: String,
    pub sha256: Vec<u8>,
    /// The size.
    pub bytes: usize,
}

/// Stores a file of the caller, to be posted with a message.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE`, `PLAN_LIMIT_REACHED`.
pub async fn upload(scope: &Scope, upload: Upload) -> Result<Uploaded> {
    let most = scope.core.config.limits.attachment_bytes;
    if upload.content.len() > most {
        let detail = format!("A file must be at most {most} bytes.");
        return Err(Problem::new(Code::PayloadTooLarge, detail).with("limit", most));
    }
    let tx = scope.begin().await?;
    let attachments::Model { id, filename, mime_type, size_bytes: size, .. } =
        store(&tx, None, upload).await?;
    let changes = json!({ "filename": filename, "size_bytes": size });
    let entry = audit::Entry {
        operation: "uploadAttachment",
        op: ChangeOp::Created,
        kind: RecordKind::Attachment,
        id: id.0,
        changes,
    };
    audit::record(&tx, entry);
    tx.commit().await?;
    let url = format!("/v1/org/{}/attachment/{id}", scope.org);
    Ok(Uploaded { id, filename, mime_type, size_bytes: size, url, uploaded_by_agent_id: None })
}

/// Stores a file of an agent, to be attached to its message.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`; then nothing is stored, and the transaction can continue.
pub(super) async fn store_from_agent(tx: &Tx, agent: AgentId, upload: Upload) -> Result<AttachmentId> {
    Ok(store(tx, Some(agent), upload).await?.id)
}

/// Stores a file from a channel, to be attached to its message.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`; then nothing is stored, and the transaction can continue.
pub(super) async fn store_from_sender(tx: &Tx, upload: Upload) -> Result<AttachmentId> {
    Ok(store(tx, None, upload).await?.id)
}

/// At most `count` files of a message from `first` on, each with its bytes. `None` instead of more than `most` bytes.
pub async fn load_message_files(
    scope: &Scope,
    message: MessageId,
    (first, count): (u64, u64),
    most: u64,
) -> Result<Vec<(File, Option<Vec<u8>>)>> {
    let found = scope.find::<attachments::Entity>().filter(attachments::Column::MessageId.eq(message));
    let found = found.order_by_asc(attachments::Column::Position).order_by_asc(attachments::Column::Id);
    let found = found.offset(first).limit(count);
    let mut files = Vec::new();
    for row in found.all(scope.core.db.read()).await? {
        let bytes = usize::try_from(row.size_bytes).unwrap_or(usize::MAX);
        let content = if bytes as u64 <= most { Some(content(scope, row.id).await?) } else { None };
        let file = File { filename: row.filename, mime_type: row.mime_type, sha256: row.sha256, bytes };
        files.push((file, content));
    }
    Ok(files)
}

/// Stores a file of the agent, or of the caller without one.
async fn store(tx: &Tx, agent: Option<AgentId>, upload: Upload) -> Result<attachments::Model> {
    let size = upload.content.len().cast_signed() as i64;
    let row = attachments::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        message_id: Set(None),
        position: Set(0),
        filename: Set(clean_name(&upload.filename)),
        mime_type: Set(mime_type(upload.mime_type.as_deref())),
        size_bytes: Set(size),
        sha256: Set(Sha256::digest(&upload.content).to_vec()),
        uploaded_by_agent_id: Set(agent),
        uploaded_by_user_id: Set(if agent.is_some() { None } else { tx.scope.request.caller.user() }),
        created_at: Set(tx.now),
    };
    let row = row.insert(tx.connection()).await?;
    if let Err(refused) = orgs::check_stored(tx, size).await {
        let gone = tx.scope.delete::<attachments::Entity>().filter(attachments::Column::Id.eq(row.id));
        gone.exec(tx.connection()).await?;
        return Err(refused);
    }
    let blob = attachment_blobs::ActiveModel {
        organization_id: Set(tx.scope.org),
        attachment_id: Set(row.id),
        content: Set(upload.content),
    };
    blob.insert(tx.connection()).await?;
    Ok(row)
}

/// Attaches a stored file to a message.
pub(super) async fn attach(tx: &Tx, message: MessageId, id: AttachmentId) -> Result<()> {
    let file = tx.scope.update::<attachments::Entity>().filter(attachments::Column::Id.eq(id));
    let file = file.col_expr(attachments::Column::MessageId, Expr::value(message.0));
    file.exec(tx.connection()).await?;
    Ok(())
}

/// The SHA-256 of each file of these messages.
pub(super) async fn digests(tx: &Tx, messages: &[MessageId]) -> Result<HashSet<Vec<u8>>> {
    let of = tx.scope.find::<attachments::Entity>();
    let of = of.filter(attachments::Column::MessageId.is_in(messages.iter().copied()));
    let digests = of.select_only().column(attachments::Column::Sha256).into_tuple::<Vec<u8>>();
    Ok(digests.all(tx.connection()).await?.into_iter().collect())
}

/// A file's metadata.
pub async fn file(scope: &Scope, id: AttachmentId) -> Result<File> {
    let row = scope.find::<attachments::Entity>().filter(attachments::Column::Id.eq(id));
    let row = row.one(scope.core.db.read()).await?.ok_or_else(|| Problem::not_found("attachment", id))?;
    let bytes = usize::try_from(row.size_bytes).unwrap_or(0);
    Ok(File { filename: row.filename, mime_type: row.mime_type, sha256: row.sha256, bytes })
}

/// A file's bytes.
pub async fn content(scope: &Scope, id: AttachmentId) -> Result<Vec<u8>> {
    let blob = scope.find::<attachment_blobs::Entity>().filter(attachment_blobs::Column::AttachmentId.eq(id));
    let blob = blob.one(scope.core.db.read()).await?;
    Ok(blob.ok_or_else(|| Problem::not_found("attachment", id))?.content)
}

/// Attaches uploaded files to a message, in this order. They must be the caller's own, and not attached yet.
pub(super) async fn attach_uploads(tx: &Tx, message: MessageId, ids: &[AttachmentId]) -> Result<()> {
    use attachments::Column;
    let mut violations = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        if ids[..n].contains(id) {
            continue;
        }
        let mine = match tx.scope.request.caller.user() {
            Some(user) => Column::UploadedByUserId.eq(user),
            None => Column::UploadedByUserId.is_null(),
        };
        let given = tx
            .scope
            .update::<attachments::Entity>()
            .filter(Column::Id.eq(*id))
            .filter(Column::MessageId.is_null())
            .filter(Column::UploadedByAgentId.is_null())
            .filter(mine)
            .col_expr(Column::MessageId, Expr::value(message.0))
            .col_expr(Column::Position, Expr::value(n.cast_signed() as i64))
            .exec(tx.connection())
            .await?;
        if given.rows_affected == 0 {
            let detail = format!("You have no unposted attachment {id}.");
            violations.push(Violation::at(format!("/attachment_ids/{n}"), "NOT_FOUND", detail));
        }
    }
    Problem::fail_if_any(violations)
}

/// Reduces a name to a plain file name: no folders, no invisible characters, no ending that a file system
/// strips.
fn clean_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let seen: String = last.chars().filter(|c| !c.is_control() && !turns_text(*c)).collect();
    let trimmed = seen.trim().trim_matches('.').trim();
    if trimmed.is_empty() {
        return "file".to_owned();
    }
    if trimmed.len() <= bounds::FILE_NAME {
        return trimmed.to_owned();
    }
    // Keep the extension of a long name, because it shows the type.
    let (stem, end) = match trimmed.rsplit_once('.') {
        Some((stem, end)) if end.len() <= 16 => (stem, format!(".{end}")),
        _ => (trimmed, String::new()),
    };
    format!("{}{end}", &stem[..stem.floor_char_boundary(bounds::FILE_NAME - end.len())])
}

/// Whether a character changes the direction of text or takes no space. Such characters can make `exe.txt` look like
/// `txt.exe`.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The media type (RFC 9110) without parameters. [`UNKNOWN_TYPE`] instead of an invalid one.
fn mime_type(given: Option<&str>) -> String {
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let token = |part: &str| {
        (1..=64).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    match essence.split_once('/') {
        Some((kind, subtype)) if token(kind) && token(subtype) => essence,
        _ => UNKNOWN_TYPE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_reduced_to_a_plain_name() {
        for (given, kept) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\temp\\a b.txt", "a b.txt"),
            ("a\"b\r\nX: y.txt", "a\"bX: y.txt"),
            ("\u{202e}gpj.exe", "gpj.exe"),
            ("..", "file"),
            ("", "file"),
            (".profile.", "profile"),
            ("Überblick 東京.md", "Überblick 東京.md"),
        ] {
            assert_eq!(clean_name(given), kept, "{given:?}");
        }
        let long = clean_name(&format!("{}.pdf", "é".repeat(500)));
        assert!(long.len() <= bounds::FILE_NAME && long.ends_with("é.pdf"), "{long}");
    }

    #[test]
    fn an_invalid_type_is_unknown() {
        assert_eq!(mime_type(Some("Text/Plain; charset=utf-8")), "text/plain");
        for wrong in [None, Some(""), Some("text"), Some("a/b/c"), Some("text/pl ain"), Some("a/\r\nb")] {
            assert_eq!(mime_type(wrong), UNKNOWN_TYPE, "{wrong:?}");
        }
    }
}
