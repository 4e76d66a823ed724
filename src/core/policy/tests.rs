//! Tests that need the module's internals; those that only need the files are in `tests/it/policies/files.rs`.

use std::{fs, path::Path};

use proptest::prelude::*;

use super::{line::LintProblem, rules::OWNER_KEEPS, *};
use crate::base::{
    ids::OrgId,
    permission::{Permission, PermissionSet, Role},
};

/// A folder with the built-in files and these in addition.
pub(super) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("orgs")).unwrap();
    for (name, text) in DEFAULTS.iter().chain(files) {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// The problems of such a folder.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    shown(&check(folder(files).path()).problems)
}

fn shown(problems: &[LintProblem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// The built-in policy with more lines at the end; returns the number of the first one.
fn policy_and(lines: &str) -> (String, usize) {
    let text = source::Sources::embedded().policy.text.unwrap();
    let first = text.lines().count() + 1;
    (format!("{text}{lines}"), first)
}

#[test]
fn the_built_in_files_are_good() {
    let dir = folder(&[]);
    assert_eq!(check(dir.path()).problems, []);
    assert_eq!(
        Policy::load(dir.path()).unwrap().status().version,
        Policy::embedded().unwrap().status().version
    );
}

#[test]
fn a_bad_line_of_the_policy_is_named() {
    for (line, reason) in [
        ("q, OWNER, *, agent.view, allow", r#"unknown kind of line "q": must be p or g"#),
        ("p, OWNER, *, agent.view", "4 fields instead of 5: p, <who>, <where>, <permission>, <effect>"),
        (
            "p, OWNER, *, agent.view, allow, allow",
            "6 fields instead of 5: p, <who>, <where>, <permission>, <effect>",
        ),
        ("g, OWNER", "2 fields instead of 3: g, <role>, <lower role>"),
        (
            "p, VIEWER, *, audit.view, allow # for now",
            r##"a comment must be on a line of its own, not at the end of one: "# for now""##,
        ),
        (r#"p, VIEWER, *, "audit.view", allow"#, "fields must not be quoted"),
        ("p, ADMNI, *, audit.view, allow", r#"unknown role "ADMNI" (did you mean "ADMIN"?)"#),
        (
            "p, service-token, *, audit.view, allow",
            r#"unknown role "service-token" (did you mean "service_token"?)"#,
        ),
        (
            "p, VIEWER, *, agent.edti, allow",
            r#"unknown permission "agent.edti" (did you mean "agent.edit"?)"#,
        ),
        ("p, VIEWER, *, fly, allow", r#"unknown permission "fly""#),
        ("p, VIEWER, *, audit.view, alow", r#"unknown effect "alow" (did you mean "allow"?)"#),
        (
            "p, VIEWER, 7, audit.view, allow",
            r#"the domain must be *, not "7": organizations have their own files in orgs/"#,
        ),
        ("g, VIEWER, OWNER", "VIEWER can't inherit from OWNER: only from a lower role"),
        ("g, OWNER, ADMIN", "an earlier line already lets OWNER inherit from ADMIN"),
    ] {
        let (text, at) = policy_and(line);
        assert_eq!(problems(&[("policy.csv", &text)]), [format!("policy.csv:{at}: {reason}")], "{line}");
    }
}

#[test]
fn a_line_that_repeats_contradicts_or_does_nothing_is_named() {
    let line_of = |line: &str| {
        let text = source::Sources::embedded().policy.text.unwrap();
        text.lines().position(|other| other == line).unwrap() + 1
    };
    let audit = line_of("p, ADMIN, *, audit.view, allow");
    let ceiling = line_of("p, OPERATOR, *, policy.edit, deny");
    for (line, reason) in [
        ("p, ADMIN, *, audit.view, allow", format!("duplicates line {audit}")),
        ("p, ADMIN, *, audit.view, deny", format!("contradicts line {audit}, which says allow")),
        (
            "p, OWNER, *, audit.view, allow",
            format!("without effect: OWNER inherits audit.view from ADMIN by line {audit}"),
        ),
        (
            "p, VIEWER, *, policy.edit, allow",
            format!("without effect: line {ceiling} denies policy.edit to OPERATOR"),
        ),
    ] {
        let (text, at) = policy_and(line);
        assert_eq!(problems(&[("policy.csv", &text)]), [format!("policy.csv:{at}: {reason}")], "{line}");
    }
}

#[test]
fn a_bad_file_of_an_organization_is_named() {
    let ceiling = {
        let text = source::Sources::embedded().policy.text.unwrap();
        text.lines().position(|line| line == "p, OPERATOR, *, member.edit, deny").unwrap() + 1
    };
    for (line, reason) in [
        ("p, VIEWER, 8, agent.edit, allow", r#":1: the domain in this file must be 7, not "8""#),
        ("p, VIEWER, *, agent.edit, allow", r#":1: the domain in this file must be 7, not "*""#),
        (
            "p, service_token, 7, agent.edit, allow",
            ":1: service_token is only allowed in policy.csv: its cap applies everywhere",
        ),
        ("g, OWNER, ADMIN", ":1: g lines are only allowed in policy.csv: inheritance is the same everywhere"),
        (
            "p, OWNER, 7, policy.edit, deny",
            ":1: no one in organization 7 could edit its policy: no role keeps policy.edit",
        ),
        (
            "p, VIEWER, 7, agent.edit, allow\np, VIEWER, 7, agent.edit, deny",
            ":2: contradicts line 1, which says allow",
        ),
    ] {
        assert_eq!(problems(&[("orgs/7.csv", line)]), [format!("orgs/7.csv{reason}")], "{line}");
    }
    let dir = folder(&[("orgs/7.csv", "p, VIEWER, 7, member.edit, allow")]);
    let reason = format!("VIEWER can't be given member.edit: policy.csv:{ceiling} denies it everywhere");
    assert_eq!(check(dir.path()).problems[0].reason, reason);
}

#[test]
fn a_bad_file_is_named() {
    let empty = problems(&[("policy.csv", "\n# nothing\n")]);
    assert_eq!(empty, ["policy.csv: the file is empty: an empty policy permits nothing"]);
    for name in ["7.CSV", "07.csv", "0.csv", "-7.csv", "7.csv.bak", "seven.csv", "9007199254740992.csv"] {
        let reason = "not a valid name for an organization's file: must be <organization id>.csv";
        assert_eq!(problems(&[(&format!("orgs/{name}"), "")]), [format!("orgs/{name}: {reason}")]);
    }
    for name in [".7.csv.swp", "7.csv~", ".gitkeep"] {
        assert!(problems(&[(&format!("orgs/{name}"), "x")]).is_empty(), "{name}");
    }
    let large = "#".repeat((1 << 20) + 1);
    assert_eq!(problems(&[("orgs/7.csv", &large)]), ["orgs/7.csv: can't be read: it is larger than 1 MiB"]);
    let dir = folder(&[]);
    fs::write(dir.path().join("orgs/7.csv"), [0xff]).unwrap();
    fs::create_dir(dir.path().join("orgs/8.csv")).unwrap();
    let reasons: Vec<_> = check(dir.path()).problems.into_iter().map(|problem| problem.reason).collect();
    assert_eq!(
        reasons,
        ["can't be read: it is not UTF-8; save it as UTF-8", "can't be read: it is not a file"]
    );
    let reasons: Vec<_> =
        check(dir.path().join("none").as_path()).problems.into_iter().map(|problem| problem.reason).collect();
    assert!(reasons.len() == 1 && reasons[0].starts_with("the folder does not exist"), "{reasons:?}");
}

#[test]
fn a_permission_without_a_line_is_named() {
    let (text, _) = policy_and("");
    let text = text.replace("p, ADMIN, *, audit.view, allow\n", "");
    assert_eq!(
        problems(&[("policy.csv", &text)]),
        ["policy.csv: no line allows or denies audit.view to a role"]
    );
}

#[test]
fn another_model_is_refused() {
    let effect = source::MODEL.replace("&& !some(where (p.eft == deny))", "");
    let found = problems(&[("model.conf", &effect)]);
    let wanted = "e = some(where (p.eft == allow)) && !some(where (p.eft == deny))";
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with(&format!("the model is fixed: expected \"{wanted}\"")), "{found:?}");
    assert!(problems(&[("model.conf", "")])[0].ends_with("\"[request_definition]\" is missing"));
    let more = format!("{}\n[more]\n", source::MODEL);
    assert!(problems(&[("model.conf", &more)])[0].ends_with("nothing else is expected"));
    // Spaces and comments may differ.
    assert!(
        problems(&[("model.conf", &source::MODEL.replace(" = ", "  =  ").replace("# ", "#"))]).is_empty()
    );
}

#[test]
fn all_problems_of_all_files_are_found_at_once_in_order() {
    let (text, at) = policy_and("p, ADMNI, 3, agent.fly, perhaps\nq");
    let found = problems(&[
        ("policy.csv", &text),
        ("orgs/10.csv", "p, OWNER, 10, policy.edit, deny"),
        ("orgs/9.csv", "g"),
        ("model.conf", ""),
    ]);
    let places: Vec<_> = found.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
    let (bad, worse) = (format!("policy.csv:{at}"), format!("policy.csv:{}", at + 1));
    assert_eq!(places, ["model.conf", "orgs/10.csv:1", "orgs/9.csv:1", &bad, &bad, &bad, &bad, &worse]);
}

#[test]
fn a_bad_reload_keeps_the_last_good_policy_and_says_so() {
    let dir = folder(&[]);
    let policy = Policy::load(dir.path()).unwrap();
    let (before, org) = (policy.status(), OrgId(7));
    assert!(!policy.allows(org, Role::Viewer, Permission::AgentEdit));
    fs::write(dir.path().join("orgs/7.csv"), "p, VIEWER, 7, agent.edti, allow").unwrap();
    assert_eq!(policy.reload().unwrap_err(), policy.status().problems);
    assert_eq!((policy.status().version, policy.status().problems.len()), (before.version.clone(), 1));
    assert!(!policy.look(), "a refused change is read once");
    fs::write(dir.path().join("orgs/7.csv"), "p, VIEWER, 7, agent.edit, allow").unwrap();
    assert_eq!(policy.reload(), Ok(()));
    assert!(policy.allows(org, Role::Viewer, Permission::AgentEdit));
    assert!(!policy.allows(OrgId(8), Role::Viewer, Permission::AgentEdit));
    assert_eq!((policy.status().organizations, policy.status().problems.len()), (1, 0));
    fs::remove_file(dir.path().join("orgs/7.csv")).unwrap();
    assert_eq!(policy.reload(), Ok(()));
    assert_eq!(policy.status().version, before.version);
}

#[test]
fn a_bad_expectation_is_named() {
    for (line, reason) in [
        ("VIEWER, *, agent.delete", "3 fields instead of 4: <who>, <where>, <permission>, <effect>"),
        ("VEIWER, *, agent.delete, deny", r#"unknown role "VEIWER" (did you mean "VIEWER"?)"#),
        (
            "VIEWER, all, agent.delete, deny",
            r#"unknown place "all": must be *, default or an organization's id"#,
        ),
        (
            "VIEWER, *, agent.delte, deny",
            r#"unknown permission "agent.delte" (did you mean "agent.delete"?)"#,
        ),
        ("VIEWER, *, agent.delete, dney", r#"unknown effect "dney" (did you mean "deny"?)"#),
        ("service_token, 7, agent.view, allow", "the cap of service_token applies everywhere: write *"),
        (
            "VIEWER, *, agent.view, allow # so",
            r##"a comment must be on a line of its own, not at the end of one: "# so""##,
        ),
    ] {
        let found = problems(&[("expectations.csv", &format!("# first\n{line}\n"))]);
        assert_eq!(found, [format!("expectations.csv:2: {reason}")], "{line}");
    }
    let twice =
        problems(&[("expectations.csv", "VIEWER, *, agent.view, allow\nVIEWER, *, agent.view, deny\n")]);
    assert_eq!(twice, ["expectations.csv:2: contradicts line 1, which expects allow"]);
}

#[test]
fn an_unmet_expectation_names_the_deciding_line() {
    let own = "p, VIEWER, 7, agent.edit, allow\n";
    let expect = |text: &str| problems(&[("orgs/7.csv", own), ("expectations.csv", text)]);
    assert!(expect("VIEWER, default, agent.edit, deny\nVIEWER, 7, agent.edit, allow\n").is_empty());
    assert_eq!(
        expect("VIEWER, *, agent.edit, deny\n"),
        [
            "expectations.csv:1: expected deny of agent.edit to VIEWER, who may in organization 7: orgs/7.csv:1 decides: \
          p, VIEWER, 7, agent.edit, allow"
        ]
    );
    let found = expect("VIEWER, 8, token.view, allow\n");
    assert_eq!(
        found,
        [
            "expectations.csv:1: expected allow of token.view to VIEWER, who may not in organization 8: no line in \
             policy.csv allows it"
        ]
    );
    // Saved while the service runs: the last valid policy stays.
    let dir = folder(&[("orgs/7.csv", own)]);
    let policy = Policy::load(dir.path()).unwrap();
    fs::write(dir.path().join("orgs/7.csv"), "p, VIEWER, 7, agent.delete, allow\n").unwrap();
    assert_eq!(policy.reload().unwrap_err().len(), 1);
    assert!(policy.allows(OrgId(7), Role::Viewer, Permission::AgentEdit));
    assert!(!policy.allows(OrgId(7), Role::Viewer, Permission::AgentDelete));
}

#[test]
fn a_diff_names_every_cell_that_changes_and_no_other() {
    let before = folder(&[("orgs/7.csv", "p, VIEWER, 7, agent.edit, allow\n")]);
    let read = |dir: &Path| Compiled::read(dir, &Given::new()).unwrap();
    let before = read(before.path());
    let own = "p, OPERATOR, 7, conversation.view, allow\np, OPERATOR, 7, agent.create, deny\n";
    let dir = folder(&[("orgs/7.csv", own)]);
    let after = read(dir.path());
    let changes: Vec<String> = after.changes(&before).iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "- OPERATOR agent.create in organization 7   (orgs/7.csv:2: p, OPERATOR, 7, agent.create, deny)",
            "+ OPERATOR conversation.view in organization 7   (orgs/7.csv:1: p, OPERATOR, 7, conversation.view, allow)",
            "- VIEWER agent.edit in organization 7   (no line allows it)",
        ]
    );
    assert!(read(dir.path()).changes(&after).is_empty());
}

/// Rules that are given.
fn given(org: i64, text: &str) -> Given {
    Given::from([(OrgId(org), text.into())])
}

#[test]
fn rules_that_are_given_decide_where_there_is_no_file() {
    let dir = folder(&[]);
    let (policy, file) = (Policy::load(dir.path()).unwrap(), dir.path().join("orgs/7.csv"));
    let may = |permission| policy.allows(OrgId(7), Role::Viewer, permission);
    let text = "# why\np, VIEWER, 7, contact.view, allow\n";
    assert!(policy.set_given([(OrgId(7), Some(text.to_owned()))]) && may(Permission::ContactView));
    assert!(!policy.set_given([(OrgId(7), Some(text.to_owned()))]), "nothing new");
    assert_eq!(policy.now().org_text(OrgId(7)).as_deref(), Some(text));
    assert!(!policy.has_file(OrgId(7)));
    // A file takes over, whichever rules are given meanwhile; when it goes, the newest given rules apply again.
    fs::write(&file, "p, VIEWER, 7, skill.edit, allow\n").unwrap();
    policy.reload().unwrap();
    assert!(policy.has_file(OrgId(7)) && may(Permission::SkillEdit) && !may(Permission::ContactView));
    let newer = "p, VIEWER, 7, mcp.edit, allow\n";
    assert!(!policy.set_given([(OrgId(7), Some(newer.to_owned()))]) && !may(Permission::McpEdit));
    fs::remove_file(&file).unwrap();
    policy.reload().unwrap();
    assert!(!policy.has_file(OrgId(7)) && may(Permission::McpEdit) && !may(Permission::SkillEdit));
    // Even with the same text, a file overrides the given rules.
    fs::write(&file, newer).unwrap();
    policy.reload().unwrap();
    assert!(policy.has_file(OrgId(7)));
    fs::remove_file(&file).unwrap();
    policy.reload().unwrap();
    assert!(!policy.has_file(OrgId(7)));
    assert!(policy.set_given([(OrgId(7), None)]) && !may(Permission::McpEdit));
    assert_eq!(policy.now().org_text(OrgId(7)), None);
}

#[test]
fn a_broken_file_keeps_its_last_good_rules_and_no_others() {
    let dir = folder(&[("orgs/7.csv", "p, VIEWER, 7, contact.view, allow\n")]);
    let policy = Policy::load(dir.path()).unwrap();
    fs::write(dir.path().join("orgs/7.csv"), "p, VIEWER, 7, skill.edti, allow\n").unwrap();
    fs::write(dir.path().join("orgs/8.csv"), "p, VIEWER, 8, skill.edit, allow\n").unwrap();
    fs::write(dir.path().join("orgs/9.csv"), "nonsense\n").unwrap();
    let problems = policy.reload().unwrap_err();
    let wrong: Vec<_> = problems.iter().map(|problem| problem.org).collect();
    assert_eq!(wrong, [Some(OrgId(7)), Some(OrgId(9))], "{problems:?}");
    assert!(policy.allows(OrgId(8), Role::Viewer, Permission::SkillEdit));
    assert!(policy.allows(OrgId(7), Role::Viewer, Permission::ContactView));
    assert_eq!(policy.role_permissions(OrgId(9), Role::Viewer), policy.role_permissions(ANY, Role::Viewer));
    // A new file for every organization applies to all, including the one with the invalid file.
    let (text, _) = policy_and("p, VIEWER, *, contact.view, deny\n");
    fs::write(dir.path().join("policy.csv"), text).unwrap();
    assert!(policy.reload().is_err());
    assert!(!policy.allows(OrgId(7), Role::Viewer, Permission::ContactView));
    // If that file is invalid, nothing from the folder applies, but given rules still do.
    fs::write(dir.path().join("policy.csv"), "nonsense\n").unwrap();
    fs::remove_file(dir.path().join("orgs/8.csv")).unwrap();
    assert!(policy.reload().unwrap_err().iter().any(|problem| problem.org.is_none()));
    assert!(policy.allows(OrgId(8), Role::Viewer, Permission::SkillEdit));
    assert!(policy.has_file(OrgId(8)), "given rules don't override its file");
    let given = Some("p, VIEWER, 10, skill.edit, allow\n".to_owned());
    assert!(policy.set_given([(OrgId(10), given)]));
    assert!(policy.allows(OrgId(10), Role::Viewer, Permission::SkillEdit));
}

/// An organization without rules of its own.
const ANY: OrgId = OrgId(1);

#[test]
fn a_start_with_a_wrong_file_locks_only_its_organization() {
    let unread = "p, VIEWER, 7, skill.edit, allow\np, OPERATOR, 7, agent.create, dney\n";
    let policy = Policy::load(folder(&[("orgs/7.csv", unread)]).path()).unwrap();
    assert_eq!(policy.status().problems.len(), 1);
    // The line's intended denial is unknown.
    let owner: PermissionSet = OWNER_KEEPS.into_iter().collect();
    assert_eq!(policy.role_permissions(OrgId(7), Role::Owner), owner);
    for role in [Role::Admin, Role::Operator, Role::Viewer] {
        assert!(policy.role_permissions(OrgId(7), role).is_empty(), "{role}");
    }
    let why = policy.explain(Some(OrgId(7)), Subject::Role(Role::Admin), Permission::AgentView);
    assert_eq!(why.decided_by.unwrap().to_string(), "orgs/7.csv:2: p, OPERATOR, 7, agent.create, dney");
    assert!(policy.allows(OrgId(8), Role::Viewer, Permission::AgentView));
    assert!(Policy::load(folder(&[("policy.csv", unread)]).path()).is_err());
}

#[test]
fn of_given_rules_that_are_no_longer_good_only_the_denials_hold() {
    let text = "p, VIEWER, 7, contact.view, allow\np, OPERATOR, 7, agent.create, deny\n";
    let (ceiling, _) = policy_and("p, VIEWER, *, contact.view, deny\n");
    let expected = "VIEWER, *, contact.view, deny\n";
    for (file, changed) in [("policy.csv", ceiling.as_str()), ("expectations.csv", expected)] {
        let dir = folder(&[]);
        let policy = Policy::load(dir.path()).unwrap();
        policy.set_given([(OrgId(7), Some(text.to_owned()))]);
        assert!(policy.allows(OrgId(7), Role::Viewer, Permission::ContactView));
        fs::write(dir.path().join(file), changed).unwrap();
        let problems = policy.reload().unwrap_err();
        assert!(problems.iter().all(|problem| problem.org == Some(OrgId(7))), "{problems:?}");
        assert!(!policy.allows(OrgId(7), Role::Viewer, Permission::ContactView), "{file}");
        assert!(!policy.allows(OrgId(7), Role::Operator, Permission::AgentCreate), "{file}");
        assert!(policy.allows(OrgId(7), Role::Operator, Permission::AgentEdit), "{file}");
        assert_eq!(policy.now().org_text(OrgId(7)).as_deref(), Some(text), "it can still be edited");
        let read = Compiled::read(dir.path(), &given(7, text)).unwrap();
        assert_eq!((shown(read.problems()), read.problems_of_files().len()), (shown(&problems), 0));
        assert_eq!(read.version(), policy.status().version);
    }
}

#[test]
fn a_candidate_is_judged_for_its_own_organization_alone() {
    let policy = Policy::load(folder(&[("orgs/8.csv", "nonsense\n")]).path()).unwrap().now();
    let text = "p, VIEWER, 7, agent.edit, allow\n";
    let candidate = policy.with_org(OrgId(7), Some(text)).unwrap();
    assert_eq!(candidate.changes(&policy).len(), 1);
    let wrong = policy.with_org(OrgId(7), Some("p, VIEWER, 7, member.edit, allow")).err().unwrap();
    assert!(
        wrong[0].to_string().starts_with("orgs/7.csv:1: VIEWER can't be given member.edit: policy.csv:"),
        "{wrong:?}"
    );
    assert_eq!(wrong.len(), 1);
    assert!(policy.with_org(OrgId(8), Some("p, VIEWER, 8, agent.edit, allow\n")).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_judged_without_a_panic(policy in ".{0,200}", org in any::<Vec<u8>>(), model in "(?s).{0,80}") {
        let dir = folder(&[]);
        fs::write(dir.path().join("orgs/7.csv"), &org).unwrap();
        let _ = check(dir.path());
        fs::write(dir.path().join("policy.csv"), &policy).unwrap();
        fs::write(dir.path().join("model.conf"), &model).unwrap();
        prop_assert!(!check(dir.path()).ok);
    }

    #[test]
    fn nearly_right_text_is_judged_without_a_panic(
        lines in prop::collection::vec(
            ("[pgqe]?", "(OWNER|ADMIN|VIEWER|service_token|x)", "(\\*|7|8)", "(agent.view|policy.edit|y)", "(allow|deny|#)"),
            0..12,
        ),
    ) {
        let text: String = lines.iter().map(|(a, b, c, d, e)| format!("{a}, {b}, {c}, {d}, {e}\n")).collect();
        let dir = folder(&[("orgs/7.csv", &text)]);
        let _ = check(dir.path());
        fs::write(dir.path().join("policy.csv"), &text).unwrap();
        prop_assert!(!check(dir.path()).ok);
    }
}
