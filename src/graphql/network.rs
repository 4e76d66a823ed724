//! The network in the GraphQL schema: allowed hosts and refused destinations.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use super::orgs::Organization;
use crate::{
    base::{
        ids::{AllowedHostId, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::network::{self, AllowHostInput},
    read::{One, Record, Spec},
    resolvers::{Answer, Enter, answer, permit::permit},
};

pub struct AllowedHost;

impl Record for AllowedHost {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AllowedHost", "allowed_hosts t", "A host that the organization's agents may reach.")
                .permission(Permission::OrganizationView)
                .column::<AllowedHostId>("id", "Identifies the entry.")
                .column::<String>("host", "A name in lower case, or `*.` and a name of at least two labels.")
                .column::<i64>("port", "The port.")
                .column::<Option<UserId>>("created_by", "The person who allowed it.")
                .column::<String>("created_by_name", "That person's name at the time.")
                .column::<Timestamp>("created_at", "When it was allowed.")
        });
        &SPEC
    }
}

pub struct RefusedDestination;

impl Record for RefusedDestination {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new(
                "RefusedDestination",
                "refused_destinations t",
                "A destination that an agent was refused.",
            )
            .column::<String>("host", "The host, as the agent named it.")
            .column::<i64>("port", "The port.")
            .column::<String>("reason", "The reason in words.")
            .column::<i64>("count", "How often it was refused.")
            .column::<Timestamp>("last_at", "When it was last refused.")
        });
        &SPEC
    }
}

#[derive(Default)]
pub struct NetworkMutation;

#[Object]
impl NetworkMutation {
    /// Allows the organization's agents to reach a host. Running agents get it at once. Allowing it again changes nothing.
    #[graphql(directive = permit::apply(Permission::NetworkEdit))]
    async fn allow_host(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: AllowHostInput,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            network::allow(&scope, input).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }

    /// Removes a host from the list. Running agents lose it at once, and their connections to it end.
    #[graphql(directive = permit::apply(Permission::NetworkEdit))]
    async fn remove_allowed_host(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AllowedHostId,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            network::remove(&scope, id).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }
}
