//! Ids in paths.

use crate::base::{
    ids::{MAX_ID, OrgId},
    problem::{Code, Problem, Result},
};

/// An id in the path: 400 for what is no number, 404 for a number that can't be an id.
pub fn id_in_path(name: &str, text: &str) -> Result<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::new(Code::MalformedRequest, format!("The path's `{name}` is not a number."))
            .with("parameter", name));
    }
    match text.parse() {
        Ok(id @ 1..=MAX_ID) => Ok(id),
        _ => Err(Problem::new(Code::NotFound, format!("There is nothing with the {name} {text}."))),
    }
}

/// An id that can't be one names no organization, of which nobody is a member.
pub fn org_in_path(text: &str) -> Result<OrgId> {
    match id_in_path("org_id", text) {
        Ok(id) => Ok(OrgId(id)),
        Err(problem) if problem.code == Code::NotFound => Ok(OrgId(0)),
        Err(problem) => Err(problem),
    }
}
