//! Ids in paths.

use crate::base::{
    ids::{MAX_ID, OrgId},
    problem::{Code, Problem, Result},
};

/// Parses an id in the path: 400 if it isn't a number, 404 if the number can't be an id.
pub fn id_in_path(name: &str, text: &str) -> Result<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::new(Code::MalformedRequest, format!("`{name}` in the path is not a number."))
            .with("parameter", name));
    }
    match text.parse() {
        Ok(id @ 1..=MAX_ID) => Ok(id),
        _ => Err(Problem::new(Code::NotFound, format!("There is no record with {name} {text}."))),
    }
}

/// Parses an organization's id in the path. A number that can't be an id becomes an organization without members.
pub fn org_in_path(text: &str) -> Result<OrgId> {
    match id_in_path("org_id", text) {
        Ok(id) => Ok(OrgId(id)),
        Err(problem) if problem.code == Code::NotFound => Ok(OrgId(0)),
        Err(problem) => Err(problem),
    }
}
