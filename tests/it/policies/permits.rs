//! The laws of permission: every root field declares who may call it, and every kind of caller is treated
//! accordingly.

use std::collections::BTreeSet;

use futures::StreamExt;
use muster::{
    api::rest::ROUTES,
    base::{
        ids::OrgId,
        permission::{Permission, PermissionSet, Role},
    },
    core::Request,
    core::access::Permit,
    resolvers::RootField,
};
use serde_json::json;

use crate::{
    harness::{Actor, TestApp, Walker},
    policies::files::SPECIFIED,
};

/// Permissions that no root field requires yet. The list only shrinks.
const UNUSED: &[&str] = &[];

#[test]
fn every_root_field_says_who_may() {
    let catalogue = muster::graphql::catalogue().unwrap();
    assert!(catalogue.root_fields().count() > 10);
    for root in catalogue.root_fields() {
        if matches!(root.permit, Permit::Member | Permit::InOrganization { .. }) {
            assert!(root.field.args.contains_key("orgId"), "{}: names no organization", root.field.name);
        }
    }
}

#[test]
fn every_permission_opens_something() {
    let catalogue = muster::graphql::catalogue().unwrap();
    let used: BTreeSet<&str> =
        catalogue.root_fields().filter_map(|root| Some(permission(&root)?.as_str())).collect();
    let mut unused: Vec<&str> =
        Permission::ALL.iter().map(|one| one.as_str()).filter(|one| !used.contains(one)).collect();
    let mut expected = UNUSED.to_vec();
    expected.sort_unstable();
    unused.sort_unstable();
    assert_eq!(unused, expected, "permissions that no root field requires");
}

fn permission(root: &RootField<'_>) -> Option<Permission> {
    match root.permit {
        Permit::InOrganization { permission, .. } => Some(permission),
        Permit::Anyone | Permit::SignedIn | Permit::Member => None,
    }
}

/// The members and their permissions.
fn members(app: &TestApp) -> [(Actor, Role, PermissionSet); 4] {
    let member =
        |actor: &Actor, role| (actor.clone(), role, app.core.policy.role_permissions(OrgId(app.org), role));
    [
        member(&app.owner, Role::Owner),
        member(&app.admin, Role::Admin),
        member(&app.operator, Role::Operator),
        member(&app.viewer, Role::Viewer),
    ]
}

/// The code of the first error, or an empty string.
async fn code(actor: &Actor, document: &str) -> String {
    let body = actor.gql(document, json!({})).await.body;
    body["errors"][0]["extensions"]["code"].as_str().unwrap_or_default().to_owned()
}

const REFUSED: [&str; 4] = ["UNAUTHENTICATED", "NOT_A_MEMBER", "PERMISSION_DENIED", "INTERNAL"];

#[tokio::test]
async fn every_query_is_tried_by_every_role() {
    all_roles_try("Query").await;
}

#[tokio::test]
async fn every_mutation_is_tried_by_every_role() {
    all_roles_try("Mutation").await;
}

async fn all_roles_try(kind: &str) {
    let walker = Walker::new();
    let mut app = TestApp::start().await;
    let org = app.org;
    let known = move |name: &str, _: &str| (name == "orgId").then(|| org.to_string());
    for root in walker.catalogue.root_fields().filter(|root| root.root == kind) {
        let document = walker.shortest(root.root, root.field, &known);
        let anonymous = code(&app.anonymous, &document).await;
        if root.permit == Permit::Anyone {
            assert!(!REFUSED[1..].contains(&anonymous.as_str()), "{document}: {anonymous}");
            continue;
        }
        assert_eq!(anonymous, "UNAUTHENTICATED", "{document}");
        if root.field.args.contains_key("orgId") {
            assert_eq!(code(&app.stranger, &document).await, "NOT_A_MEMBER", "{document}");
        }
        let Some(permission) = permission(&root) else { continue };
        let everything_else = Permission::ALL.iter().filter(|one| **one != permission);
        let names: Vec<&str> = everything_else.map(|one| one.as_str()).collect();
        let token = app.token(&names).await;
        assert_eq!(code(&token, &document).await, "PERMISSION_DENIED", "{document}: by a token");
        for (member, role, permissions) in members(&app) {
            let code = code(&member, &document).await;
            if permissions.contains(permission) {
                assert!(!REFUSED.contains(&code.as_str()), "{document}: {role} is refused: {code}");
            } else {
                assert_eq!(code, "PERMISSION_DENIED", "{document}: {role} is not refused");
            }
        }
        // Operations on the whole organization may have changed the permissions.
        if kind == "Mutation" && !root.field.args.keys().any(|name| name == "id" || name == "input") {
            app = TestApp::start().await;
        }
    }
}

#[tokio::test]
async fn every_subscription_is_tried_by_every_role() {
    let walker = Walker::new();
    let app = TestApp::start().await;
    let org = app.org;
    let known = move |name: &str, _: &str| (name == "orgId").then(|| org.to_string());
    // A stopping service ends its streams, so an admitted caller sees the end at once.
    app.core.tasks.stopping.cancel();
    for root in walker.catalogue.root_fields().filter(|root| root.root == "Subscription") {
        let document = walker.shortest(root.root, root.field, &known);
        assert_eq!(first_code(&app, &app.anonymous, &document).await, "UNAUTHENTICATED", "{document}");
        assert_eq!(first_code(&app, &app.stranger, &document).await, "NOT_A_MEMBER", "{document}");
        let permission = permission(&root);
        assert!(
            permission.is_some() || root.permit == Permit::Member,
            "a subscription is always in an organization"
        );
        for (member, role, permissions) in members(&app) {
            let code = first_code(&app, &member, &document).await;
            if permission.is_none_or(|permission| permissions.contains(permission)) {
                assert!(!REFUSED.contains(&code.as_str()), "{document}: {role} is refused: {code}");
            } else {
                assert_eq!(code, "PERMISSION_DENIED", "{document}: {role} is not refused");
            }
        }
    }
}

async fn first_code(app: &TestApp, actor: &Actor, document: &str) -> String {
    let mut request = Request::system(&app.core);
    request.caller = match actor.bearer() {
        "" => muster::core::access::Caller::Anonymous,
        _ => app.caller(actor).await,
    };
    let request = async_graphql::Request::new(document).data(std::sync::Arc::new(request));
    let first = app.service.graphql.schema.execute_stream(request).next().await;
    let error = first.and_then(|response| response.errors.into_iter().next());
    let Some(error) = error else { return String::new() };
    muster::api::graphql::problem_of(&error).code.as_str().to_owned()
}

#[tokio::test]
async fn every_route_is_tried_by_every_role() {
    let app = TestApp::start().await;
    for (number, (route, operation)) in app.service.rest.routes.iter().enumerate() {
        let Permit::InOrganization { permission, .. } = operation.permit else {
            panic!("{} is outside organizations", operation.name)
        };
        // Ours are as the policy says.
        let specified = SPECIFIED.get(number);
        let name = specified.map_or(permission.as_str(), |specified| specified.1);
        let path = path(route.path, app.org);
        let tried = |actor: &Actor| {
            let (actor, path, method) = (actor.clone(), path.clone(), route.method.clone());
            async move { actor.send(method, &path, &json!(null)).await }
        };
        let about = format!("{}: {} {path}", operation.name, route.method);
        assert_eq!(tried(&app.anonymous).await.problem(), (401, "UNAUTHENTICATED"), "{about}");
        assert_eq!(tried(&app.stranger).await.problem(), (403, "NOT_A_MEMBER"), "{about}");
        for (member, role, permissions) in members(&app) {
            let answer = tried(&member).await;
            let refused = answer.status == 403 && answer.problem().1 == "PERMISSION_DENIED";
            let allowed = specified.map_or(permissions.contains(permission), |(_, _, roles)| {
                roles.split(' ').any(|allowed| allowed == role.as_str())
            });
            assert_eq!(refused, !allowed, "{about}: {role}: {:#}", answer.body);
            if refused {
                assert_eq!(answer.body["details"]["permission"], name, "{about}: {role}");
            }
        }
    }
}

#[tokio::test]
async fn only_channels_need_a_confirmed_address() {
    let app = TestApp::start().await;
    let unconfirmed = app.person("OWNER", false).await;
    for route in ROUTES {
        let path = path(route.path, app.org);
        let answer = unconfirmed.send(route.method.clone(), &path, &json!(null)).await;
        let refused = answer.status == 403 && answer.problem().1 == "EMAIL_NOT_CONFIRMED";
        let needs = matches!(route.operation, "CreateChannel" | "EditChannel");
        assert_eq!(refused, needs, "{}: {:#}", route.operation, answer.body);
    }
}

/// The path with the organization's id, and 1 for every other id but that of a member: those exist.
fn path(template: &str, org: i64) -> String {
    let parts = template.split('/').map(|part| match part {
        "{org_id}" => org.to_string(),
        "{user_id}" => "4711".to_owned(),
        part if part.starts_with('{') => "1".to_owned(),
        part => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}
