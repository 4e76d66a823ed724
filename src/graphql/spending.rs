//! Money and tokens in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use super::{agents::AgentSummary, orgs::Organization};
use crate::{
    base::{
        column::Decimal,
        enums::{LimitKind, UsageGrouping},
        ids::{AgentId, ModelCallId, ModelCredentialId, OrgId, TurnId},
        permission::Permission,
        time::Timestamp,
    },
    domain::spending::{self, AllowSpendingInput, DailyUsage, ModelPrice},
    read::{One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, range},
        permit::permit,
    },
};

pub struct OrganizationSpending;

impl Record for OrganizationSpending {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "The spending of the organization's agents in this calendar month, in its time zone.";
            let of = |column: &str| {
                format!(
                    "COALESCE((SELECT m.{column} FROM organization_months m WHERE m.organization_id = t.id \
                     AND m.from_at <= :now AND m.until_at > :now ORDER BY m.from_at DESC LIMIT 1), 0)"
                )
            };
            month(Spec::new("OrganizationSpending", "organizations t", about).tenant("t.id"), of)
        });
        &SPEC
    }
}

pub struct AgentSpending;

/// SQL for the tokens that count, of the agent `t` in the last 60 minutes.
const HOUR: &str = "COALESCE((SELECT CAST(SUM(COALESCE(c.input_tokens, 0) + COALESCE(c.output_tokens, 0) + \
     COALESCE(c.cache_write_tokens, 0)) AS BIGINT) FROM model_calls c WHERE c.organization_id = t.organization_id \
     AND c.agent_id = t.id AND c.started_at > :now - 3600000), 0)";
/// SQL for the tokens of an hour that the agent `t` may use.
const HOUR_LIMIT: &str = "(CASE t.cost_guard_mode WHEN 'OFF' THEN NULL WHEN 'CUSTOM' THEN t.cost_guard_tokens_per_hour \
     ELSE (SELECT o.cost_guard_tokens_per_hour FROM organizations o WHERE o.id = t.organization_id) END \
     + COALESCE((SELECT w.tokens FROM token_allowances w WHERE w.organization_id = t.organization_id \
     AND w.agent_id = t.id AND w.until_at > :now), 0))";

impl Record for AgentSpending {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "An agent's spending in this calendar month, in the organization's time zone, and in this hour.";
            let of = |column: &str| {
                format!(
                    "COALESCE((SELECT m.{column} FROM agent_months m WHERE m.organization_id = t.organization_id \
                     AND m.agent_id = t.id AND m.from_at <= :now AND m.until_at > :now \
                     ORDER BY m.from_at DESC LIMIT 1), 0)"
                )
            };
            month(Spec::new("AgentSpending", "agents t", about), of)
                .sql::<i64>(
                    "hour_tokens",
                    HOUR,
                    "Tokens of the last 60 minutes: input, output and those written to a cache.",
                )
                .sql::<Option<i64>>(
                    "hour_limit",
                    HOUR_LIMIT,
                    "How many of them its cost guard allows, including extra tokens that people have allowed. Null: no limit.",
                )
        });
        &SPEC
    }
}

fn month(spec: Spec, of: impl Fn(&str) -> String) -> Spec {
    spec.sql::<Decimal>("cost_micro", of("cost_micro"), "The amount spent, in millionths of the currency.")
        .sql::<Decimal>("tokens", of("tokens"), "Tokens of all classes.")
        .sql::<Decimal>(
            "leased_micro",
            of("leased_micro"),
            "The amount that hosts may spend from their leases without asking again: the most by which a budget can be exceeded.",
        )
        .sql::<Decimal>("allowed_micro", of("allowed_micro"), "The amount that people have allowed on top of the budget.")
}

pub struct AgentLimit;

impl Record for AgentLimit {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentLimit", "agent_limits t", "Why an agent can't call its model.")
                .column::<LimitKind>("kind", "The limit that was reached.")
                .column::<String>("reason", "The same in words.")
                .sql::<Option<Timestamp>>(
                    "until",
                    "t.until_at",
                    "When its turns continue automatically. Null: not before more is allowed.",
                )
                .column::<Option<ModelCredentialId>>(
                    "model_credential_id",
                    "The organization's model credential whose provider refuses. Null: its own, or none.",
                )
                .column::<Timestamp>("since", "When the limit was reached.")
        });
        &SPEC
    }
}

pub struct ModelCall;

impl Record for ModelCall {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("ModelCall", "model_calls t", "A call of a model, as the host measured it.")
                .permission(Permission::AgentOutputView)
                .column::<ModelCallId>("id", "Identifies the call.")
                .column::<AgentId>("agent_id", "The agent.")
                .column::<Option<TurnId>>("turn_id", "The turn. Null: none ran, or several did.")
                .column::<Option<ModelCredentialId>>(
                    "model_credential_id",
                    "The organization's model credential. Null: the agent's own, or none.",
                )
                .column::<String>("provider", "The provider.")
                .column::<String>("model", "The model.")
                .column::<Option<i64>>(
                    "status",
                    "The HTTP status. Null: the model could not be reached, or the agent hung up.",
                )
                .column::<Timestamp>("started_at", "When it was made.")
                .column::<i64>("millis", "How long it took, in milliseconds.");
            classes(spec).column::<Option<Decimal>>(
                "cost_micro",
                "The cost, in millionths of the currency. Null: unknown, because the model has no price.",
            )
        });
        &SPEC
    }
}

fn classes(spec: Spec) -> Spec {
    spec.column::<Option<Decimal>>("input_tokens", "Tokens read, except cached ones.")
        .column::<Option<Decimal>>("output_tokens", "Tokens written.")
        .column::<Option<Decimal>>("cache_read_tokens", "Tokens read from a cache.")
        .column::<Option<Decimal>>("cache_write_tokens", "Tokens written to a cache.")
}

pub struct ModelDay;

impl Record for ModelDay {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "The cost of an agent's calls of a model in a day of the organization's time zone.";
            let spec = Spec::new("ModelDay", "model_days t", about)
                .permission(Permission::OrganizationView)
                .column::<String>("day", "The day, such as `2026-06-01`.")
                .column::<AgentId>("agent_id", "The agent.")
                .one::<AgentSummary>("agent", "t.agent_id", "A short form of the agent.")
                .column::<String>("provider", "The provider.")
                .column::<String>("model", "The model.")
                .column::<i64>("calls", "The number of calls.")
                .column::<i64>(
                    "unpriced_calls",
                    "How many of them have an unknown cost, because the model had no price.",
                );
            classes(spec)
                .column::<Decimal>("cost_micro", "The cost of the others, in millionths of the currency.")
        });
        &SPEC
    }
}

#[derive(Default)]
pub struct SpendingQuery;

#[Object]
impl SpendingQuery {
    /// The current prices of models, in the organization's currency. A model without a price has an unknown cost.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn model_prices(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<Vec<ModelPrice>> {
        answer(async { spending::prices_of(&ctx.enter(org_id).await?).await }).await
    }

    /// Tokens, cost and turns by day and agent, model, channel or cause, oldest first: of at most 90 days, by default the last
    /// 30. By agent and model they contain every measured call; by channel and cause only those that belong to a turn.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn usage(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        by: UsageGrouping,
        #[graphql(desc = "The first day, such as `2026-06-01`.", directive = bounds::apply(length(10, 10)))]
        since: Option<String>,
        #[graphql(desc = "The day after the last one.", directive = bounds::apply(length(10, 10)))]
        before: Option<String>,
    ) -> Answer<Vec<DailyUsage>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            spending::daily_usage(&scope, by, since.as_deref(), before.as_deref()).await
        })
        .await
    }

    /// The spending by day, agent and model, newest first. Days are kept for as long as the organization.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    #[expect(clippy::too_many_arguments, reason = "the filters")]
    async fn model_days(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Only days of this agent.")] agent_id: Option<AgentId>,
        #[graphql(desc = "Only this day and later ones, such as `2026-06-01`.", directive = bounds::apply(length(10, 10)))]
        since: Option<String>,
        #[graphql(desc = "Only days before this one.", directive = bounds::apply(length(10, 10)))]
        before: Option<String>,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<ModelDay>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .filter_if("t.agent_id = ?", agent_id)
                .filter_if("t.day >= ?", since)
                .filter_if("t.day < ?", before)
                .order_by("t.day DESC, t.id");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }
}

#[derive(Default)]
pub struct SpendingMutation;

#[Object]
impl SpendingMutation {
    /// Allows an agent, or the whole organization, to spend more: either `costMicro` or `tokens`. Turns that wait for it go on
    /// by themselves.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn allow_spending(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: AllowSpendingInput,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            spending::allow(&scope, input).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }
}
