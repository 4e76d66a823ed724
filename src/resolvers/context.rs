//! The context of resolvers: the request, and the only way into an organization.

use std::sync::Arc;

use async_graphql::{Positioned, parser::types::Field};

use super::{
    Catalogue,
    validate::{Spelling, Validator},
};
use crate::{
    base::{
        ids::OrgId,
        permission::Permission,
        problem::{At, Code, Problem, Result},
    },
    core::{
        Request,
        access::{Caller, Permit, Scope, authn::membership},
        audit,
    },
    read::ContextExt,
};

/// Access to an organization, for root fields.
pub trait Enter {
    /// Checks authentication, membership, permission, confirmed e-mail, and arguments, in this order so that nothing
    /// leaks. The field's directives declare its requirements (see [`Permit`]).
    fn enter(&self, org: OrgId) -> impl Future<Output = Result<Scope>> + Send;

    /// The caller of a field outside organizations, if the field's `@open` admits them.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`; `VALIDATION_FAILED` for arguments out of their bounds.
    fn admit(&self) -> Result<&Caller>;
}

impl Enter for async_graphql::Context<'_> {
    async fn enter(&self, org: OrgId) -> Result<Scope> {
        let request = self.request();
        let field = self.item.node.name.node.as_str();
        // A route of `/v1` has already authorized its caller, before reading the body.
        let admitted = self.data_opt::<Scope>().filter(|scope| scope.is_of(request, field, org));
        let scope = match admitted {
            Some(scope) => scope.clone(),
            None => authorize(request, field, declared(self)?, org).await?,
        };
        if !request.validated {
            validate(self)?;
        }
        Ok(scope)
    }

    fn admit(&self) -> Result<&Caller> {
        let request = self.request();
        match declared(self)? {
            Permit::Anyone => {}
            Permit::SignedIn => request.require_identity()?,
            Permit::Member | Permit::InOrganization { .. } => return Err(undeclared(self)),
        }
        validate(self)?;
        Ok(&request.caller)
    }
}

/// Checks a caller against the permit of the root field `operation` and counts the decision, once per call. A
/// refusal is written to the audit log.
///
/// # Errors
/// `UNAUTHENTICATED`, `NOT_A_MEMBER`, `PERMISSION_DENIED`, `EMAIL_NOT_CONFIRMED`.
pub async fn authorize(request: &Arc<Request>, operation: &str, permit: Permit, org: OrgId) -> Result<Scope> {
    let scope = scope_of(request, operation, org).await?;
    if let Permit::InOrganization { permission, .. } = permit {
        count(&scope, permission);
    }
    admit(&scope, permit)?;
    Ok(scope)
}

/// [`authorize`] for a call that continues some time after it was authorized. It isn't counted again.
///
/// # Errors
/// See [`authorize`].
pub async fn authorize_again(
    request: &Arc<Request>,
    operation: &str,
    permit: Permit,
    org: OrgId,
) -> Result<Scope> {
    let scope = scope_of(request, operation, org).await?;
    admit(&scope, permit)?;
    Ok(scope)
}

/// The caller's scope in the organization, regardless of their permissions.
async fn scope_of(request: &Arc<Request>, operation: &str, org: OrgId) -> Result<Scope> {
    request.require_identity()?;
    let membership = membership(&request.core, &request.caller, org)
        .await
        .inspect_err(|problem| audit::refused(request, operation, Some((org, None)), problem))?;
    request.notes.set_org(org);
    Ok(Scope::new(request, org, membership, request.core.access.permits.name(operation)))
}

pub(super) fn admit(scope: &Scope, permit: Permit) -> Result<()> {
    match permit {
        Permit::Member => Ok(()),
        Permit::InOrganization { permission, confirmed_email } => {
            scope.require(permission)?;
            if confirmed_email && !scope.request.caller.has_confirmed_email() {
                let problem = Problem::new(Code::EmailNotConfirmed, "Confirm your e-mail address first.");
                return Err(scope.refused(problem));
            }
            Ok(())
        }
        Permit::Anyone | Permit::SignedIn => {
            Err(Problem::internal(anyhow::anyhow!("a field outside organizations was called with one")))
        }
    }
}

/// Counts a decision, so that candidate policies can be tried on it.
fn count(scope: &Scope, permission: Permission) {
    if let Some(operation) = &scope.operation {
        let (caller, operation) = (&scope.request.caller, Arc::clone(operation));
        scope.core.access.decisions.count(caller, &scope.membership, scope.org, operation, permission);
    }
}

fn declared(ctx: &async_graphql::Context<'_>) -> Result<Permit> {
    ctx.request()
        .core
        .access
        .permits
        .required_by(ctx.item.node.name.node.as_str())
        .ok_or_else(|| undeclared(ctx))
}

fn undeclared(ctx: &async_graphql::Context<'_>) -> Problem {
    Problem::internal(anyhow::anyhow!("root field {} declares no suitable permit", ctx.item.node.name.node))
}

/// Checks the bounds of a root field's arguments. The executor has checked their types.
fn validate(ctx: &async_graphql::Context<'_>) -> Result<()> {
    let field: &Positioned<Field> = ctx.item;
    let catalogue = ctx.data_unchecked::<Arc<Catalogue>>();
    let Some(root) = catalogue.root_field(field.node.name.node.as_str()) else {
        return Ok(());
    };
    let mut validator = Validator::new(&catalogue.registry, Spelling::Camel);
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
    Problem::fail_if_any(validator.violations)
}
