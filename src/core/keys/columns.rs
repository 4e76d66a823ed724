//! The list of sealed columns. Rotation goes through it, and a law (`tests/it/operations/sealing_keys.rs`) compares it
//! with the tables of both databases, so that no column whose name ends in `_sealed` can be forgotten.

use crate::{
    base::ids::OrgId,
    core::sealing::{Locator, SealContext},
};

/// A column of sealed values, and the context that its values are bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedColumn {
    pub table: &'static str,
    /// The column: the field's name followed by `_sealed`.
    pub column: &'static str,
    /// The SQL expression of the organization; 0 for values outside any organization.
    pub organization: &'static str,
    /// The column that identifies the record, to which the value is bound.
    pub record: Record,
    /// The digest that is kept beside the values and moves with them.
    pub digest: Option<Digest>,
    /// Whether values may be as long as a file: they are moved one at a time.
    pub is_long: bool,
}

/// A column of digests of bots' tokens ([`bot_digests`](super::bot_digests)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    pub column: &'static str,
    /// The column with the transport, for which it counts.
    pub transport: &'static str,
}

/// How a record is identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// By a column with its id.
    Id(&'static str),
    /// By a column with its name.
    Name(&'static str),
}

/// The organization of values that belong to none.
const NONE: &str = "CAST(0 AS BIGINT)";

const fn sealed_column(
    table: &'static str,
    column: &'static str,
    organization: &'static str,
    record: Record,
) -> SealedColumn {
    SealedColumn { table, column, organization, record, digest: None, is_long: false }
}

const fn of_tenant(table: &'static str, column: &'static str) -> SealedColumn {
    sealed_column(table, column, "organization_id", Record::Id("id"))
}

const fn of_organization(column: &'static str) -> SealedColumn {
    sealed_column("organizations", column, "id", Record::Id("id"))
}

/// Every sealed column of every table.
pub const SEALED: &[SealedColumn] = &[
    of_tenant("agents", "launched_with_sealed"),
    of_tenant("agents", "model_credential_sealed"),
    SealedColumn {
        digest: Some(Digest { column: "bot_hash", transport: "transport" }),
        ..of_tenant("channels", "bot_token_sealed")
    },
    of_tenant("channels", "drive_pass_sealed"),
    of_tenant("channels", "email_imap_pass_sealed"),
    of_tenant("channels", "email_smtp_pass_sealed"),
    of_tenant("channels", "calendar_pass_sealed"),
    of_tenant("channels", "oauth_access_token_sealed"),
    of_tenant("channels", "oauth_refresh_token_sealed"),
    of_tenant("channels", "webhook_inbound_previous_sealed"),
    of_tenant("channels", "webhook_inbound_secret_sealed"),
    of_tenant("channels", "webhook_outbound_previous_sealed"),
    of_tenant("channels", "webhook_outbound_secret_sealed"),
    of_tenant("credential_fields", "value_sealed"),
    of_tenant("event_endpoints", "previous_secret_sealed"),
    of_tenant("event_endpoints", "secret_sealed"),
    SealedColumn {
        is_long: true,
        ..sealed_column("message_sources", "source_sealed", "organization_id", Record::Id("message_id"))
    },
    of_tenant("model_credentials", "secret_sealed"),
    of_organization("provider_oauth_secret_sealed"),
    of_organization("transcription_key_sealed"),
    of_organization("voice_key_sealed"),
    sealed_column("idempotency_keys", "answer_sealed", "organization_id", Record::Name("holder")),
    sealed_column("signing_keys", "private_key_sealed", NONE, Record::Name("kid")),
    sealed_column("users", "totp_secret_sealed", NONE, Record::Id("id")),
];

impl SealedColumn {
    /// The context in which this record's value was sealed.
    #[must_use]
    pub fn seal_context<'a>(&self, organization: OrgId, record: Locator<'a>) -> SealContext<'a> {
        let field = self.column.strip_suffix("_sealed").unwrap_or(self.column);
        SealContext { organization, table: self.table, record, field }
    }
}

impl Record {
    #[must_use]
    pub fn column(self) -> &'static str {
        match self {
            Self::Id(column) | Self::Name(column) => column,
        }
    }
}
