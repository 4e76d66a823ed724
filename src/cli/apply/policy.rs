//! The organization's own rules: their text names the organization by its id, a file by [`HERE`].

use serde_json::{Map, Value, json};

use crate::{
    base::plain::without_controls,
    cli::remote::{Refusal, Remote, taken},
};

/// What stands for the organization's id.
pub const HERE: &str = "ORG";

/// The organization's own rules, with [`HERE`] for its id.
pub struct Policy {
    pub text: String,
    /// Whether the organization may edit them: not while the operator has them in a file.
    pub is_editable: bool,
}

/// The rules of an organization.
pub async fn read(remote: &Remote, org: i64) -> Result<Policy, Refusal> {
    let mut answer = remote.call("Policy", Map::new()).await?;
    let policy = taken(&mut answer, "policy");
    let own = &policy["files"][0];
    Ok(Policy {
        text: renamed(policy["text"].as_str().unwrap_or_default(), &org.to_string(), HERE),
        is_editable: own["editable"] == true,
    })
}

/// What a new text would change.
pub struct Proposal {
    /// The text with the organization's id.
    pub text: String,
    pub version: String,
    /// Who gains and loses what, in words.
    pub effects: Vec<String>,
    /// What is wrong with it, in words.
    pub problems: Vec<String>,
}

/// Asks the service about a file's text. Nothing is changed.
pub async fn propose(remote: &Remote, org: i64, text: &str) -> Result<Proposal, Refusal> {
    let text = renamed(text, HERE, &org.to_string());
    let mut answer = remote.call("ProposePolicy", Map::from_iter([("text".to_owned(), json!(text))])).await?;
    let proposal = taken(&mut answer, "proposePolicy");
    let said = |value: &Value| without_controls(value.as_str().unwrap_or_default());
    let each = |key: &str| proposal[key].as_array().cloned().unwrap_or_default();
    let effect = |change: &Value| {
        let verb = if change["allowed"] == true { "gains" } else { "loses" };
        format!("{} {verb} {}", said(&change["subject"]), said(&change["permission"]))
    };
    let problem = |problem: &Value| match problem["line"].as_i64() {
        Some(line) => format!("line {line} of the rules: {}", said(&problem["reason"])),
        None => said(&problem["reason"]),
    };
    Ok(Proposal {
        effects: each("changes").iter().map(effect).collect(),
        problems: each("problems").iter().map(problem).collect(),
        version: proposal["version"].as_str().unwrap_or_default().to_owned(),
        text,
    })
}

/// The text with another name of the organization, in the third column of each rule.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let line = |line: &str| {
        let mut columns: Vec<&str> = line.split(',').collect();
        let renamed = match columns.get_mut(2) {
            Some(column) if !line.trim_start().starts_with('#') && column.trim() == from => {
                column.replace(from, to)
            }
            _ => return line.to_owned(),
        };
        columns[2] = &renamed;
        columns.join(",")
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_their_organization_in_one_column() {
        let text =
            "# of 7, 7, 7\np, VIEWER, 7, contact.view, allow\n\np,OPERATOR ,7,agent.create,deny\ng, ADMIN, X";
        let here = renamed(text, "7", HERE);
        let expected = "# of 7, 7, 7\np, VIEWER, ORG, contact.view, allow\n\np,OPERATOR ,ORG,agent.create,deny\ng, ADMIN, X";
        assert_eq!(here, expected);
        assert_eq!(renamed(&here, HERE, "7"), text);
        assert_eq!(renamed("p, X, 77, a, allow", "7", HERE), "p, X, 77, a, allow");
    }
}
