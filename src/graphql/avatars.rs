//! Mutations that set avatars. Records show their paths.

use async_graphql::{Context, InputObject, Object};
use base64::Engine as _;

use super::{agents::Agent, orgs::Organization};
use crate::{
    base::{
        ids::{AgentId, OrgId},
        permission::Permission,
        problem::{Problem, Result},
    },
    domain::{
        avatars::{self, Picture},
        people::{self, User},
    },
    read::{ContextExt, One, Rows},
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, length},
        permit::{open, permit},
    },
};

/// A picture to set or remove.
#[derive(InputObject)]
pub struct AvatarInput {
    /// A PNG, JPEG, GIF, or WebP in base64, at most 512 KiB and 4096 × 4096 pixels. Null removes the picture.
    #[graphql(directive = bounds::apply(length(0, 700_000)))]
    pub content_base64: Option<String>,
}

impl AvatarInput {
    fn picture(self) -> Result<Option<Picture>> {
        let Some(text) = self.content_base64 else { return Ok(None) };
        let content = base64::engine::general_purpose::STANDARD.decode(text).map_err(|_| {
            Problem::invalid_at("/content_base64", "WRONG_TYPE", "`content_base64` is not valid base64.")
        })?;
        Picture::read(content).map(Some)
    }
}

#[derive(Default)]
pub struct AvatarMutation;

#[Object]
impl AvatarMutation {
    /// Sets or removes an agent's picture.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn set_agent_avatar(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AgentId,
        input: AvatarInput,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            avatars::set_agent(&scope, id, input.picture()?).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sets or removes the organization's picture.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn set_organization_avatar(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: AvatarInput,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            avatars::set_organization(&scope, input.picture()?).await?;
            Ok(One::of(Rows::of(&scope), org_id.0))
        })
        .await
    }

    /// Sets or removes the caller's own picture.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn set_viewer_avatar(&self, ctx: &Context<'_>, input: AvatarInput) -> Answer<User> {
        answer(async {
            let (core, person) = (&ctx.request().core, ctx.admit()?.person()?);
            avatars::set_user(ctx.request(), person, input.picture()?).await?;
            people::user(core, person.id).await
        })
        .await
    }
}
