//! What a resolver is given: the request, and the one way into an organization.

use std::{net::IpAddr, sync::Arc};

use async_graphql::{ContextBase, Positioned, parser::types::Field};

use super::{
    Document, Permit, Share,
    record::{Loaders, Plans},
    validate::{Spelling, Validator},
};
use crate::{
    access::{Caller, Permission, Scope, membership},
    app::App,
    audit,
    edge::{Arrival, idempotency::Claim},
    enums::DecidedVia,
    error::{At, Code, Problem, Result},
    ids::OrgId,
    store::{Precondition, Transaction},
};

/// One request, of whichever face.
pub struct Request {
    /// The service.
    pub app: Arc<App>,
    /// Who asks.
    pub caller: Caller,
    /// The id that the response and the log carry.
    pub id: String,
    /// Where from.
    pub ip: Option<IpAddr>,
    /// What the client calls itself.
    pub user_agent: Option<String>,
    /// Through which face: what a decision is noted to have come through.
    pub via: DecidedVia,
    /// The data loaders; they live as long as the request.
    pub loaders: Loaders,
    /// How much room what its root fields are answered with takes.
    pub answered: Share,
    /// The plans of the document, where the service keeps the document.
    pub plans: Option<Arc<Plans>>,
    /// Whether root values may be JSON bytes, which only our own edges know how to write.
    pub raw: bool,
    /// Whether the arguments were validated before execution, as REST does.
    pub validated: bool,
    /// The idempotency key that the request holds: its transactions mark it.
    pub claim: Option<Arc<Claim>>,
    /// What the first transaction has to find.
    pub precondition: Option<Arc<dyn Precondition>>,
}

impl Request {
    /// A request that has arrived from outside.
    #[must_use]
    pub fn new(app: &Arc<App>, caller: Caller, arrival: &Arrival) -> Self {
        Self {
            id: arrival.request_id.clone(),
            ip: arrival.ip,
            user_agent: arrival.user_agent().map(str::to_owned),
            via: DecidedVia::Graphql,
            ..Self::inside(app, caller)
        }
    }

    /// The service's own work, or the operator's.
    #[must_use]
    pub fn system(app: &Arc<App>) -> Self {
        Self::inside(app, Caller::System)
    }

    /// The same request as one that executes a stored document, whose arguments are checked before.
    #[must_use]
    pub fn executing(self, document: &Document) -> Self {
        Self {
            plans: document.plans.clone(),
            raw: true,
            answered: Share::default().copied(true),
            validated: true,
            ..self
        }
    }

    /// Another request of the same caller, from the same place, that executes a stored document.
    #[must_use]
    pub fn of_document(&self, document: &Document) -> Self {
        let of_caller = Self::inside(&self.app, self.caller.clone());
        let again = Self {
            id: self.id.clone(),
            ip: self.ip,
            user_agent: self.user_agent.clone(),
            via: self.via,
            ..of_caller
        };
        again.executing(document)
    }

    /// Begins a transaction that may write. Its commit marks the idempotency key that the request holds.
    ///
    /// # Errors
    /// The database is out of reach.
    pub(crate) async fn begin(&self) -> Result<Transaction> {
        let mark = self.claim.as_ref().map(|claim| claim.mark());
        Ok(self.app.db.begin().await?.demanding(mark))
    }

    fn inside(app: &Arc<App>, caller: Caller) -> Self {
        Self {
            app: Arc::clone(app),
            caller,
            id: String::new(),
            ip: None,
            user_agent: None,
            via: DecidedVia::System,
            loaders: Loaders::default(),
            answered: Share::default(),
            plans: None,
            raw: false,
            validated: false,
            claim: None,
            precondition: None,
        }
    }
}

/// What resolvers call instead of digging in the context's untyped data.
pub trait ContextExt {
    /// The request.
    fn request(&self) -> &Arc<Request>;
}

impl<T> ContextExt for ContextBase<'_, T> {
    fn request(&self) -> &Arc<Request> {
        self.data_unchecked::<Arc<Request>>()
    }
}

/// The door into an organization, for root fields.
pub trait Enter {
    /// Authentication, membership, permission, confirmed e-mail, validation: in this order, so that nothing
    /// leaks. What the field demands stands in its directives (see [`Permit`]).
    fn enter(&self, org: OrgId) -> impl Future<Output = Result<Scope>> + Send;

    /// The caller of a field that belongs to no organization, if the field's `@open` admits them.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`; `VALIDATION_FAILED` for arguments out of their bounds.
    fn admit(&self) -> Result<&Caller>;
}

impl Enter for async_graphql::Context<'_> {
    async fn enter(&self, org: OrgId) -> Result<Scope> {
        let request = self.request();
        let permit = declared(self)?;
        let scope = authorize(request, self.item.node.name.node.as_str(), permit, org).await?;
        if let Permit::InOrganization { permission, .. } = permit {
            count(&scope, permission);
        }
        if !request.validated {
            validate(self)?;
        }
        Ok(scope)
    }

    fn admit(&self) -> Result<&Caller> {
        let request = self.request();
        match declared(self)? {
            Permit::Anyone => {}
            Permit::SignedIn => request.caller.require_identity()?,
            Permit::InOrganization { .. } => return Err(undeclared(self)),
        }
        validate(self)?;
        Ok(&request.caller)
    }
}

/// Checks a caller against the permit of the root field `operation`; REST does so before it looks at the body.
/// The audit log hears of a caller who is refused.
///
/// # Errors
/// `UNAUTHENTICATED`, `NOT_A_MEMBER`, `PERMISSION_DENIED`, `EMAIL_NOT_CONFIRMED`.
pub async fn authorize(request: &Arc<Request>, operation: &str, permit: Permit, org: OrgId) -> Result<Scope> {
    request.caller.require_identity()?;
    let Permit::InOrganization { permission, confirmed_email } = permit else {
        return Err(Problem::internal(anyhow::anyhow!("a field of no organization was asked for one")));
    };
    let membership = membership(&request.app, &request.caller, org)
        .await
        .inspect_err(|problem| audit::refused(request, operation, Some((org, None)), problem))?;
    let scope = Scope::new(request, org, membership, request.app.catalogue.name(operation));
    admit(&scope, permission, confirmed_email).inspect_err(|problem| {
        audit::refused(request, operation, Some((org, Some(&scope.membership))), problem);
    })?;
    Ok(scope)
}

fn admit(scope: &Scope, permission: Permission, confirmed_email: bool) -> Result<()> {
    if let Err(problem) = scope.require(permission) {
        count(scope, permission);
        return Err(problem);
    }
    if confirmed_email && !scope.request.caller.has_confirmed_email() {
        return Err(Problem::new(Code::EmailNotConfirmed, "Confirm your e-mail address first."));
    }
    Ok(())
}

/// Counts a decision, for trying candidate policies on it. REST asks twice for what is allowed: only the second time
/// counts.
fn count(scope: &Scope, permission: Permission) {
    if let Some(operation) = &scope.operation {
        let decisions = &scope.app.policies.decisions;
        decisions.count(
            &scope.request.caller,
            &scope.membership,
            scope.org,
            Arc::clone(operation),
            permission,
        );
    }
}

fn declared(ctx: &async_graphql::Context<'_>) -> Result<Permit> {
    ctx.request().app.catalogue.permit(ctx.item.node.name.node.as_str()).ok_or_else(|| undeclared(ctx))
}

fn undeclared(ctx: &async_graphql::Context<'_>) -> Problem {
    Problem::internal(anyhow::anyhow!("root field {} declares no fitting permit", ctx.item.node.name.node))
}

/// The bounds of a root field's arguments; the executor has checked their types.
fn validate(ctx: &async_graphql::Context<'_>) -> Result<()> {
    let field: &Positioned<Field> = ctx.item;
    let Some(root) = ctx.request().app.catalogue.root_field(field.node.name.node.as_str()) else {
        return Ok(());
    };
    let mut validator = Validator::new(&ctx.request().app.catalogue.registry, Spelling::Camel);
    let given =
        ctx.field().arguments().map_err(|error| Problem::new(Code::ValidationFailed, error.message))?;
    for (name, value) in given {
        let Some(declared) = root.field.args.get(name.as_str()) else { continue };
        let pointer = if name == "input" { String::new() } else { format!("/{name}") };
        let before = validator.violations.len();
        validator.check(declared, Some(value), &pointer);
        if name != "input" {
            for violation in &mut validator.violations[before..] {
                violation.at = At::Parameter(name.to_string());
            }
        }
    }
    Problem::refuse(validator.violations)
}
