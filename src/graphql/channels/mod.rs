//! Channels in the GraphQL schema.

mod record;
mod values;

use async_graphql::{Context, Object};

use self::record::CalendarChoice;
pub use self::{
    record::Channel,
    values::{AddWhitelistOriginInput, ChannelAuthorization, ChannelFolder, ChannelTest},
};
use crate::{
    base::{
        enums::{RecordKind, SortOrder},
        ids::{AgentId, ChannelId, ConversationId, OrgId},
        permission::Permission,
        secret::SecretText,
    },
    domain::{
        channels::{self, CreateChannelInput, UpdateChannelInput},
        deliveries,
    },
    read::{Feed, Keys, List, One, Rows},
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, length, name, range},
        permit::{confirmed_email, permit},
    },
};

/// SQL for the folded name of the channel's agent. Empty if it was deleted.
const AGENT_NAME: &str = "COALESCE((SELECT a.name_folded FROM agents a WHERE a.organization_id = t.organization_id \
                          AND a.id = t.agent_id AND a.archived_at IS NULL), '')";

#[derive(Default)]
pub struct ChannelQuery;

#[Object]
impl ChannelQuery {
    /// The organization's external channels, or those of one agent, ordered by id. At most 10,000.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn channels(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: Option<AgentId>,
    ) -> Answer<List<Channel>> {
        answer(async {
            let external = Rows::of(&ctx.enter(org_id).await?).filter("t.scope = 'EXTERNAL'", []);
            let external = external.filter_if("t.agent_id = ?", agent_id.map(|id| id.0));
            Ok(List::first(external.order_by("t.id"), 10_000))
        })
        .await
    }

    /// Channels for people outside and for members, by agent and name, in pages that do not shift. Those of deleted agents come
    /// first.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn channel_feed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The start of the page: `next` of the previous page.", directive = bounds::apply(length(1, 10_000)))]
        after: Option<String>,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(50)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
        #[graphql(desc = "Only channels of this agent.")] agent_id: Option<AgentId>,
        #[graphql(
            desc = "Only channels whose name, target, or agent's name contains every word. Case doesn't matter, nor do \
                    accents in names.",
            directive = bounds::apply(length(1, 200))
        )]
        search: Option<String>,
        #[graphql(desc = "Only channels through which messages pass, or do not. Null: both.")] active: Option<
            bool,
        >,
    ) -> Answer<Feed<Channel>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .filter("t.transport <> 'INTERNAL'", [])
                .filter_if("t.agent_id = ?", agent_id.map(|id| id.0))
                .whether("t.is_active", active)
                .found(&["t.name_folded", "LOWER(COALESCE(t.target, ''))", AGENT_NAME], search.as_deref());
            let keys = Keys::new("AGENT", SortOrder::Asc).text(AGENT_NAME).text("t.name_folded");
            Feed::after(rows, keys, after.as_deref(), limit.unwrap_or(50))
        })
        .await
    }

    /// One channel.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn channel(&self, ctx: &Context<'_>, org_id: OrgId, id: ChannelId) -> Answer<One<Channel>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// The calendars of a channel's account, from which people choose. Its server is asked.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn channel_calendars(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
    ) -> Answer<Vec<CalendarChoice>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let choices = Box::pin(channels::choices(&scope, id, None)).await?;
            Ok(choices.into_iter().map(|one| CalendarChoice { id: one.id, name: Some(one.name) }).collect())
        })
        .await
    }

    /// The folders in a folder of a drive, from which people choose: at most 100. Its server is asked.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn channel_folders(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
        #[graphql(desc = "The folder. Null: the topmost ones.", directive = bounds::apply(length(1, 1024)))]
        parent: Option<String>,
    ) -> Answer<Vec<ChannelFolder>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let choices = Box::pin(channels::choices(&scope, id, parent.as_deref())).await?;
            Ok(choices.into_iter().map(|one| ChannelFolder { id: one.id, name: one.name }).collect())
        })
        .await
    }

    /// The repositories of a code host that a channel reaches, from which people choose. The host is asked.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn channel_repositories(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
    ) -> Answer<Vec<String>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let choices = Box::pin(channels::choices(&scope, id, None)).await?;
            Ok(choices.into_iter().map(|one| one.id).collect())
        })
        .await
    }
}

#[derive(Default)]
pub struct ChannelMutation;

#[Object]
impl ChannelMutation {
    /// Connects a channel to an agent.
    #[graphql(directive = permit::apply(Permission::AgentEdit), directive = confirmed_email::apply())]
    async fn create_channel(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateChannelInput,
    ) -> Answer<One<Channel>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = Box::pin(channels::create(&scope, input)).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits a channel. Switching it off and on again clears the reason it was inactive.
    #[graphql(directive = permit::apply(Permission::AgentEdit), directive = confirmed_email::apply())]
    async fn update_channel(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
        input: UpdateChannelInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Channel>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            // The input and two copies of the row are too large for every request's stack.
            let edited = scope.if_revision(RecordKind::Channel, id, if_revision);
            let done = Box::pin(channels::update(&edited, id, input)).await;
            One::after(&scope, id, Permission::AgentView, done)
        })
        .await
    }

    /// Deletes a channel and returns its id. Its conversations are kept; its secrets are not.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn delete_channel(&self, ctx: &Context<'_>, org_id: OrgId, id: ChannelId) -> Answer<ChannelId> {
        answer(async {
            channels::delete(&ctx.enter(org_id).await?, id).await?;
            Ok(id)
        })
        .await
    }

    /// Begins to connect a channel to an account at its vendor: Google for calendars and drives, GitHub for code hosts.
    /// For people only.
    #[graphql(directive = permit::apply(Permission::AgentEdit), directive = confirmed_email::apply())]
    async fn authorize_channel(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
    ) -> Answer<ChannelAuthorization> {
        answer(async {
            let begun = Box::pin(channels::authorize(&ctx.enter(org_id).await?, id)).await?;
            Ok(ChannelAuthorization { url: begun.url, expires_at: begun.expires_at })
        })
        .await
    }

    /// Connects a channel to the account that was chosen on the vendor's page, with the parameters that the page sent
    /// back: once, within ten minutes, and in the session that began it.
    #[graphql(directive = permit::apply(Permission::AgentEdit), directive = confirmed_email::apply())]
    async fn complete_channel_authorization(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
        #[graphql(directive = bounds::apply(length(1, 8_000)))] code: SecretText,
        #[graphql(directive = bounds::apply(length(1, 256)))] state: SecretText,
    ) -> Answer<One<Channel>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Box::pin(channels::complete(&scope, id, &code.0, &state.0)).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Disconnects a channel's account: deletes its tokens, and revokes them at the vendor if it answers.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn disconnect_channel(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
    ) -> Answer<One<Channel>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Box::pin(channels::disconnect(&scope, id)).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sends a test message through a channel and returns the vendor's answer: to one of its conversations, which also
    /// needs `agent.interact`; without one to a webhook's URL, or from a mailbox to the caller's own address. The text
    /// joins no conversation.
    #[graphql(directive = permit::apply(Permission::AgentEdit), directive = confirmed_email::apply())]
    async fn test_channel(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
        conversation_id: Option<ConversationId>,
    ) -> Answer<ChannelTest> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let error = Box::pin(deliveries::test_channel(&scope, id, conversation_id)).await?;
            Ok(ChannelTest { error })
        })
        .await
    }

    /// Allows an origin to write to a channel, and removes it from the refused origins. Adding it again does nothing.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn add_whitelist_origin(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
        input: AddWhitelistOriginInput,
    ) -> Answer<One<Channel>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            channels::add_origin(&scope, id, &input.origin_id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Removes an origin's permission to write to a channel.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn remove_whitelist_origin(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ChannelId,
        #[graphql(directive = bounds::apply(name(255)))] origin_id: String,
    ) -> Answer<One<Channel>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            channels::remove_origin(&scope, id, &origin_id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
