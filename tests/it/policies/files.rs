//! The laws of the policy files: they say what the specification says, the service decides as casbin does on
//! the raw text, and the committed files are current.

use std::{fs, path::Path};

use casbin::{CoreApi, DefaultModel, Enforcer, StringAdapter};
use muster::{
    base::{
        ids::OrgId,
        permission::{Permission, PermissionSet, Role},
    },
    core::policy::{self, Policy},
};

use crate::harness::until;

/// The permission and the roles of each of the 27 operations, as in the specification's table.
pub const SPECIFIED: [(u8, &str, &str); 27] = [
    (1, "server.view", "OWNER ADMIN OPERATOR VIEWER"),
    (2, "server.create", "OWNER ADMIN"),
    (3, "server.edit", "OWNER ADMIN"),
    (4, "approval.view", "OWNER ADMIN OPERATOR VIEWER"),
    (5, "approval.resolve", "OWNER ADMIN OPERATOR"),
    (6, "approval.resolve", "OWNER ADMIN OPERATOR"),
    (7, "approval.resolve", "OWNER ADMIN OPERATOR"),
    (8, "agent.output.view", "OWNER ADMIN OPERATOR VIEWER"),
    (9, "agent.output.view", "OWNER ADMIN OPERATOR VIEWER"),
    (10, "agent.output.view", "OWNER ADMIN OPERATOR VIEWER"),
    (11, "conversation.view", "OWNER ADMIN"),
    (12, "agent.view", "OWNER ADMIN OPERATOR VIEWER"),
    (13, "agent.create", "OWNER ADMIN OPERATOR"),
    (14, "agent.edit", "OWNER ADMIN OPERATOR"),
    (15, "agent.view", "OWNER ADMIN OPERATOR VIEWER"),
    (16, "agent.edit", "OWNER ADMIN OPERATOR"),
    (17, "agent.edit", "OWNER ADMIN OPERATOR"),
    (18, "agent.edit", "OWNER ADMIN OPERATOR"),
    (19, "agent.edit", "OWNER ADMIN OPERATOR"),
    (20, "credential.edit", "OWNER ADMIN OPERATOR"),
    (21, "credential.edit", "OWNER ADMIN OPERATOR"),
    (22, "credential.edit", "OWNER ADMIN OPERATOR"),
    (23, "mcp.view", "OWNER ADMIN OPERATOR VIEWER"),
    (24, "mcp.delete", "OWNER ADMIN OPERATOR"),
    (25, "mcp.edit", "OWNER ADMIN OPERATOR"),
    (26, "skill.edit", "OWNER ADMIN OPERATOR"),
    (27, "organization.view", "OWNER ADMIN OPERATOR VIEWER"),
];

/// No organization has this id, so it has no file.
const ANY: OrgId = OrgId(1);

fn policies() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/policies"))
}

fn read(name: &str) -> String {
    fs::read_to_string(policies().join(name)).unwrap()
}

/// An enforcer over the raw text of all files, as casbin itself reads them.
async fn casbin(lines: &str) -> Enforcer {
    let model = DefaultModel::from_str(&read("model.conf")).await.unwrap();
    Enforcer::new(model, StringAdapter::new(lines)).await.unwrap()
}

/// The committed policy in its own folder.
fn copy(org_files: &[(OrgId, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("orgs")).unwrap();
    for name in ["model.conf", "policy.csv"] {
        fs::write(dir.path().join(name), read(name)).unwrap();
    }
    for (org, text) in org_files {
        fs::write(dir.path().join(format!("orgs/{org}.csv")), text).unwrap();
    }
    dir
}

#[test]
fn the_roles_of_the_27_operations_match_the_specification() {
    let policy = Policy::load(policies()).unwrap();
    for (operation, permission, roles) in SPECIFIED {
        let permission: Permission = permission.parse().unwrap();
        let allowed = Role::ALL.into_iter().filter(|role| policy.allows(ANY, *role, permission));
        let allowed: Vec<_> = allowed.map(Role::as_str).collect();
        assert_eq!(allowed.join(" "), roles, "operation {operation}: {permission}");
    }
}

#[tokio::test]
async fn the_table_matches_casbin_in_every_cell() {
    let narrowed = "p, OPERATOR, 7, agent.create, deny\np, VIEWER, 7, approval.resolve, allow\n\
                    p, OWNER, 7, agent.delete, deny\n";
    let widened = "p, ADMIN, 8, policy.edit, allow\np, OPERATOR, 8, conversation.view, allow\n\
                   p, ADMIN, 8, agent.create, deny\np, VIEWER, 8, agent.create, allow\n";
    // Same as for 7: answers computed for one organization are compared for another.
    let alike = narrowed.replace(", 7,", ", 9,");
    let dir = copy(&[(OrgId(7), narrowed), (OrgId(8), widened), (OrgId(9), &alike)]);
    let policy = Policy::load(dir.path()).unwrap();
    let enforcer = casbin(&format!("{}{narrowed}{widened}{alike}", read("policy.csv"))).await;
    let mut differing = 0;
    for org in [ANY, OrgId(7), OrgId(8), OrgId(9), OrgId(78)] {
        for role in Role::ALL {
            for permission in Permission::ALL {
                let answer = enforcer.enforce((role.as_str(), org.to_string(), permission.as_str())).unwrap();
                assert_eq!(policy.allows(org, role, permission), answer, "{org} {role} {permission}");
                differing += u32::from(answer != policy.allows(ANY, role, permission));
            }
        }
    }
    // 7: OPERATOR, all four roles, and VIEWER lose or gain a cell; 8: ADMIN, OPERATOR, and three roles lose
    // agent.create.
    assert_eq!(differing, 2 * (1 + 2 + 1) + (1 + 1 + 2));
    for permission in Permission::ALL {
        let answer = enforcer.enforce(("service_token", "*", permission.as_str())).unwrap();
        assert_eq!(policy.token_cap().contains(permission), answer, "{permission}");
    }
}

#[test]
fn the_shipped_expectations_know_the_27_operations() {
    let report = policy::check(policies());
    assert!(report.ok, "{report}");
    assert!(report.expectations > 30, "{report}");
    let expected = read("expectations.csv");
    for (operation, permission, roles) in SPECIFIED {
        let lowest = roles.split(' ').next_back().unwrap();
        let line = format!("\n{lowest}, default, {permission}, allow\n");
        assert!(expected.contains(&line), "operation {operation}: {line}");
        let below = Role::ALL.into_iter().map(Role::as_str).skip_while(|role| *role != lowest).nth(1);
        if let Some(below) = below {
            let line = format!("\n{below}, default, {permission}, deny\n");
            assert!(expected.contains(&line), "operation {operation}: {line}");
        }
    }
}

#[test]
fn a_higher_role_has_every_permission_of_a_lower_one() {
    let odd = "p, ADMIN, 7, agent.view, deny\np, VIEWER, 7, conversation.view, allow\n";
    let policy = Policy::load(copy(&[(OrgId(7), odd)]).path()).unwrap();
    for org in [ANY, OrgId(7)] {
        for [higher, lower] in Role::ALL.array_windows() {
            assert!(
                policy.role_permissions(org, *lower).is_subset(policy.role_permissions(org, *higher)),
                "{org}"
            );
        }
    }
    assert!(policy.allows(OrgId(7), Role::Owner, Permission::AgentView));
    assert!(!policy.allows(OrgId(7), Role::Viewer, Permission::AgentView));
}

#[test]
fn a_service_token_can_never_change_who_may_do_what() {
    let cap = Policy::load(policies()).unwrap().token_cap();
    let never =
        PermissionSet::from_names(["policy.edit", "member.edit", "token.edit", "network.edit"]).unwrap();
    // A stop is for people to let go, and so is an erasure.
    let people = [Permission::OrganizationRelease, Permission::OrganizationErase];
    let never = never.union(people.into_iter().collect());
    assert_eq!(PermissionSet::ALL.difference(cap), never);
}

#[test]
fn every_permission_has_a_line_and_every_line_is_used() {
    let text = read("policy.csv");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("p,")).collect();
    for permission in Permission::ALL {
        let field = format!(", {permission}, ");
        assert!(lines.iter().any(|line| line.contains(&field)), "{permission}");
    }
    // An allow is used if a cell changes without it. A deny is used if the same line as an allow would be
    // refused or change a cell. The reader itself checks that it is never both.
    let cells =
        |policy: &Policy| (Role::ALL.map(|role| policy.role_permissions(ANY, role)), policy.token_cap());
    let whole = cells(&Policy::load(policies()).unwrap());
    for line in lines {
        let dir = copy(&[]);
        let edited = match line.strip_suffix("deny") {
            Some(start) => text.replace(&format!("{line}\n"), &format!("{start}allow\n")),
            None => text.replace(&format!("{line}\n"), ""),
        };
        fs::write(dir.path().join("policy.csv"), edited).unwrap();
        assert!(Policy::load(dir.path()).map_or(true, |policy| cells(&policy) != whole), "{line}");
    }
}

const MATRIX_HEADER: &str = "\
# Who may do what in an organization without rules of its own, and the most that a service token can have.
# Generated from policy.csv by a test; UPDATE=1 writes it.

";

#[test]
fn the_committed_matrix_is_current() {
    let path = policies().join("matrix.txt");
    let rows = policy::matrix(&Policy::load(policies()).unwrap().now(), None);
    let matrix = format!("{MATRIX_HEADER}{}", policy::matrix_table(&rows));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &matrix).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == matrix, "policies/matrix.txt is out of date: UPDATE=1 writes it");
}

#[test]
fn the_program_carries_the_committed_files() {
    let (built_in, committed) = (Policy::embedded().unwrap(), Policy::load(policies()).unwrap());
    assert_eq!(built_in.status().version, committed.status().version);
}

#[tokio::test]
async fn a_saved_file_is_in_force_without_a_restart() {
    let dir = copy(&[]);
    let policy = Policy::load(dir.path()).unwrap();
    let watching = policy.clone().watch(|| Box::pin(async {}));
    let (org, file) = (OrgId(7), dir.path().join("orgs/7.csv"));
    let allows = || policy.allows(org, Role::Viewer, Permission::AgentEdit);
    let saving = async {
        fs::write(&file, "p, VIEWER, 7, agent.edit, allow\n").unwrap();
        until("it is in force", async || allows()).await;
        fs::write(&file, "p, VIEWER, 7, agent.edti, allow\n").unwrap();
        until("the mistake is reported", async || !policy.status().problems.is_empty()).await;
        assert!(allows(), "the last good one stays in force");
        fs::remove_file(&file).unwrap();
        until("it is out of force", async || !allows()).await;
        assert!(policy.status().problems.is_empty());
        // The folder itself is replaced: there are no notices from a folder that no one watches.
        let (old, new) = (dir.path().join("orgs"), dir.path().join("prepared"));
        fs::create_dir(&new).unwrap();
        fs::write(new.join("7.csv"), "p, VIEWER, 7, agent.edit, allow\n").unwrap();
        fs::remove_dir(&old).unwrap();
        fs::rename(&new, &old).unwrap();
        until("it is in force", async || allows()).await;
    };
    tokio::select! {
        () = watching => panic!("the watcher never ends"),
        () = saving => {}
    }
}
