//! Contacts and their identities in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, InputObject, MaybeUndefined, Object};

use super::channels::Channel;
use crate::{
    base::{
        enums::{ListSort, RecordKind, Transport},
        ids::{ChannelId, ContactId, IdentityId, OrgId},
        permission::Permission,
        time::Timestamp,
    },
    core::store::{holding, holds},
    domain::contacts::{self, ContactEdit, is_reached},
    read::{Many, One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, name, range},
        permit::permit,
    },
};

pub struct Contact;

impl Record for Contact {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Contact", "contacts t", "A person who writes to agents through channels.")
                .permission(Permission::ContactView)
                .visible("t.archived_at IS NULL")
                .column::<ContactId>("id", "Identifies the contact.")
                .column::<OrgId>("organization_id", "The organization the contact belongs to.")
                .revision(RecordKind::Contact)
                .column::<String>("name", "The name.")
                .column::<Option<String>>("note", "A note for members of the organization.")
                .column::<Timestamp>("created_at", "When the contact first appeared.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .many::<Identity>(
                    "identities",
                    Many { by: "t.contact_id", ..Many::default() },
                    "The contact's addresses.",
                )
        });
        &SPEC
    }
}

pub struct Identity;

impl Record for Identity {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Identity", "identities t", "A contact's address on one transport.")
                .permission(Permission::ContactView)
                .column::<IdentityId>("id", "Identifies the identity.")
                .column::<OrgId>("organization_id", "The organization it belongs to.")
                .column::<ContactId>("contact_id", "The contact whose address it is.")
                .column::<Option<ChannelId>>("channel_id", "The channel it was first seen on.")
                .column::<Transport>("transport", "The messaging transport.")
                .column::<String>("origin_id", "The address, in the transport's own notation.")
                .column::<Option<String>>("display_name", "The display name on the transport.")
                .column::<Timestamp>("created_at", "When it was first seen.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .column::<Option<Timestamp>>("last_seen_at", "When it was last seen.")
                .one::<Contact>("contact", "t.contact_id", "The contact whose address it is.")
                .one::<Channel>("channel", "t.channel_id", "The channel it was first seen on.")
        });
        &SPEC
    }
}

/// Changes to a contact. Fields left out keep their value; null clears an optional field.
#[derive(InputObject)]
pub struct UpdateContactInput {
    /// The name.
    #[graphql(directive = bounds::apply(name(120).not_null()))]
    pub name: MaybeUndefined<String>,
    /// A note for members of the organization.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub note: MaybeUndefined<String>,
}

#[derive(Default)]
pub struct ContactQuery;

#[Object]
impl ContactQuery {
    /// The organization's contacts. `search` matches parts of names and addresses.
    #[graphql(directive = permit::apply(Permission::ContactView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn contacts(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Only those first seen on this channel, or with a conversation through it.")]
        channel_id: Option<ChannelId>,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(directive = bounds::apply(length(1, 200)))] search: Option<String>,
        #[graphql(desc = "The order.", default_with = "Some(ListSort::Name)")] sort: Option<ListSort>,
    ) -> Answer<Page<Contact>> {
        answer(async {
            let rows = through(Rows::of(&ctx.enter(org_id).await?), channel_id);
            let rows = matching(rows, search.as_deref());
            Ok(Page::numbered(rows.listed(sort, "t.id", "t.name_folded, t.id"), page, limit))
        })
        .await
    }

    /// One contact.
    #[graphql(directive = permit::apply(Permission::ContactView))]
    async fn contact(&self, ctx: &Context<'_>, org_id: OrgId, id: ContactId) -> Answer<One<Contact>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

/// Contacts first seen on `channel`, or with a conversation through it.
fn through(rows: Rows<Contact>, channel: Option<ChannelId>) -> Rows<Contact> {
    const THROUGH: &str = "t.id IN (SELECT i.contact_id FROM identities i WHERE i.organization_id = $1 AND i.channel_id = ? \
         UNION ALL SELECT c.contact_id FROM conversations c WHERE c.organization_id = $1 AND c.channel_id = ?)";
    let Some(channel) = channel else { return rows };
    rows.filter(THROUGH, [channel.into(), channel.into()])
}

/// Contacts whose name or one of whose addresses contains `search`, unless all their channels are deleted.
fn matching(rows: Rows<Contact>, search: Option<&str>) -> Rows<Contact> {
    let Some(search) = search.map(str::trim).filter(|search| !search.is_empty()) else { return rows };
    let Some(word) = holding(search) else { return rows.filter("1 = 0", []) };
    let condition = format!(
        "({} OR EXISTS (SELECT 1 FROM identities i WHERE i.organization_id = t.organization_id AND i.contact_id = t.id \
         AND ({} OR {}))) AND {}",
        holds("t.name_folded"),
        holds("i.origin_id_folded"),
        holds("i.display_name_folded"),
        is_reached!("t.organization_id", "t.id"),
    );
    rows.filter(&condition, [word.clone().into(), word.clone().into(), word.into()])
}

#[derive(Default)]
pub struct ContactMutation;

#[Object]
impl ContactMutation {
    /// Edits a contact.
    #[graphql(directive = permit::apply(Permission::ContactEdit))]
    async fn update_contact(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ContactId,
        input: UpdateContactInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Contact>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::Contact, id, if_revision);
            let done =
                contacts::update(&edited, id, ContactEdit { name: input.name, note: input.note }).await;
            One::after(&scope, id, Permission::ContactView, done)
        })
        .await
    }

    /// Deletes a contact without conversations, including all addresses, and returns its id.
    #[graphql(directive = permit::apply(Permission::ContactEdit))]
    async fn delete_contact(&self, ctx: &Context<'_>, org_id: OrgId, id: ContactId) -> Answer<ContactId> {
        answer(async {
            contacts::delete(&ctx.enter(org_id).await?, id).await?;
            Ok(id)
        })
        .await
    }
}
