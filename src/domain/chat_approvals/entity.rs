//! Database rows of links and asks. Private to this feature.

/// Requests that members are asked about in their chats.
pub mod approval_asks {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::AskState,
        ids::{ApprovalId, AskId, ChannelId, OrgId, UserId},
        time::Timestamp,
    };

    /// A row of `approval_asks`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "approval_asks")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: AskId,
        pub approval_id: ApprovalId,
        pub channel_id: ChannelId,
        pub user_id: UserId,
        /// The chat, as the transport calls it.
        pub target: String,
        pub state: AskState,
        /// What was shown, if it may be decided here.
        pub digest: Option<String>,
        /// The message at the vendor.
        pub vendor_id: Option<String>,
        pub attempts: i64,
        /// Not before; while it is being sent, the end of the sender's claim.
        pub available_at: Timestamp,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
