//! Edits one line of a text without changing the others, including comments.

use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// Sets the line about this role and permission: replaces an existing one, or appends it. `allow` is `None`: removes
/// it.
pub(super) fn set_line(
    text: &str,
    org: OrgId,
    role: Role,
    permission: Permission,
    allow: Option<bool>,
) -> String {
    let line = allow.map(|allow| {
        let effect = if allow { "allow" } else { "deny" };
        format!("p, {role}, {org}, {permission}, {effect}")
    });
    let is_about = |line: &&str| {
        let mut fields = line.split(',').map(str::trim);
        (fields.next(), fields.next(), fields.nth(1))
            == (Some("p"), Some(role.as_str()), Some(permission.as_str()))
    };
    let found = text.lines().position(|line| is_about(&line));
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len() + 80);
    for (at, kept) in text.split_inclusive('\n').enumerate() {
        match &line {
            _ if found != Some(at) => out.push_str(kept),
            Some(line) => out.extend([line, end]),
            None => {}
        }
        if !out.is_empty() && !out.ends_with('\n') {
            out.push_str(end);
        }
    }
    if let (None, Some(line)) = (found, line) {
        out.extend([&line, end]);
    }
    // If only comments are left, the text contains no rules.
    let has_rules = out.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
    if has_rules { out } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# top\np, VIEWER, 7, agent.edit, allow\n\n# end\np,OPERATOR ,7, agent.create,deny\n";

    fn edited(role: Role, permission: Permission, allow: Option<bool>) -> String {
        set_line(TEXT, OrgId(7), role, permission, allow)
    }

    #[test]
    fn one_line_changes_and_comments_stay() {
        let replaced = edited(Role::Operator, Permission::AgentCreate, Some(true));
        assert_eq!(
            replaced,
            TEXT.replace("p,OPERATOR ,7, agent.create,deny", "p, OPERATOR, 7, agent.create, allow")
        );
        let added = edited(Role::Viewer, Permission::AgentCreate, Some(false));
        assert_eq!(added, format!("{TEXT}p, VIEWER, 7, agent.create, deny\n"));
        let removed = edited(Role::Viewer, Permission::AgentEdit, None);
        assert_eq!(removed, TEXT.replace("p, VIEWER, 7, agent.edit, allow\n", ""));
        assert_eq!(edited(Role::Owner, Permission::AgentEdit, None), TEXT);
        let windows = TEXT.replace('\n', "\r\n");
        for (role, allow) in
            [(Role::Operator, Some(true)), (Role::Viewer, Some(false)), (Role::Operator, None)]
        {
            let edited = |text: &str| set_line(text, OrgId(7), role, Permission::AgentCreate, allow);
            assert_eq!(edited(&windows), edited(TEXT).replace('\n', "\r\n"), "line ends stay");
        }
        let none = set_line(
            "# why\np, VIEWER, 7, agent.edit, allow",
            OrgId(7),
            Role::Viewer,
            Permission::AgentEdit,
            None,
        );
        assert_eq!(none, "");
    }
}
