//! Renders the base policy as the table committed as `policies/matrix.txt`, whose diff a reviewer of a policy change
//! reads first.

use std::fmt::Write;

use super::live::Policy;
use crate::base::permission::{Permission, Role};

const HEADER: &str = "\
# Who may do what in an organization without rules of its own, and the most that a service token can have.
# Generated from policy.csv by a test; UPDATE=1 writes it.

";

/// The base policy of `policy`, permissions by role.
#[must_use]
pub fn matrix(policy: &Policy) -> String {
    let table = &policy.now().table;
    let width = Permission::ALL.iter().map(|permission| permission.as_str().len()).max().unwrap_or(0);
    let mark = |present: bool| if present { "✓" } else { "·" };
    let mut out = format!("{HEADER}{:width$}", "");
    for role in Role::ALL {
        let _ = write!(out, "  {:<8}", role.as_str());
    }
    out.push_str("  service token\n");
    for permission in Permission::ALL {
        let _ = write!(out, "{:width$}", permission.as_str());
        for role in Role::ALL {
            let _ = write!(out, "  {:<8}", mark(table.base_permissions(role).contains(permission)));
        }
        let _ = writeln!(out, "  {}", mark(table.token_cap().contains(permission)));
    }
    out
}
