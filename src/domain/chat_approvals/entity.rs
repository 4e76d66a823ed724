//! Database rows of requests in chats. Private to this feature.

/// Messages that ask members about approvals in their chats.
pub mod approval_asks {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::AskState,
        ids::{ApprovalId, AskId, ChannelId, OrgId, UserId},
        time::Timestamp,
    };

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
        /// The transport's id of the chat.
        pub target: String,
        pub state: AskState,
        /// The digest of the request as shown, if it may be decided in the chat.
        pub digest: Option<String>,
        /// The vendor's id of the message.
        pub vendor_id: Option<String>,
        pub attempts: i64,
        /// The earliest time of the next attempt; while it is being sent, the end of the sender's claim.
        pub available_at: Timestamp,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
