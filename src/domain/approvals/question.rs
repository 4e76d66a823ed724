//! Questions and answers. This module is pure, so that every rule can be tested without a database.

use serde::{Deserialize, Serialize};

use crate::base::{
    enums::ApprovalOutcome,
    problem::{Problem, Result, Violation},
};

/// A question from an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub text: String,
    /// The options to choose from. May be empty.
    pub options: Vec<Choice>,
    /// Whether more than one option can be chosen.
    pub multiple: bool,
    /// Whether the answer can contain free text.
    pub allow_text: bool,
}

/// One option of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Identifies the option within the question.
    pub id: String,
    pub label: String,
    pub description: Option<String>,
}

/// A person's answer: options by id or label, text, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub options: Vec<String>,
    pub text: Option<String>,
}

/// A valid answer: option ids without duplicates, in the question's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AcceptedAnswer {
    pub options: Vec<String>,
    pub text: Option<String>,
}

/// The id of the option that approves an action.
const APPROVE: &str = "approve";
/// The id of the option that denies it.
const DENY: &str = "deny";

impl Question {
    /// The question about an action: approve or deny, with room for a comment.
    #[must_use]
    pub fn approve_or_deny(text: &str) -> Self {
        let choice =
            |id: &str, label: &str| Choice { id: id.to_owned(), label: label.to_owned(), description: None };
        let options = vec![choice(APPROVE, "Approve"), choice(DENY, "Deny")];
        Self { text: text.to_owned(), options, multiple: false, allow_text: true }
    }

    /// Refuses a question without a possible answer, or with options that can't be told apart.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, with pointers under `/question`.
    pub fn check(&self) -> Result<()> {
        let mut wrong = Vec::new();
        if self.options.is_empty() && !self.allow_text {
            let detail = "A question must have options or allow text.";
            wrong.push(Violation::at("/question/options", "REQUIRED", detail));
        }
        for (n, option) in self.options.iter().enumerate() {
            let clash = |name: &String| self.options[..n].iter().any(|o| o.id == *name || o.label == *name);
            if clash(&option.id) || clash(&option.label) {
                let detail = format!("Two options have the label `{}`.", option.label);
                wrong.push(Violation::at(format!("/question/options/{n}"), "NOT_ALLOWED", detail));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(Problem::invalid(wrong)) }
    }

    /// Checks an answer against this question.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, naming every unknown option, several options where only one is allowed, and text where none
    /// is allowed.
    pub fn accept(&self, answer: &Answer) -> Result<AcceptedAnswer> {
        answer.require_any()?;
        let mut wrong = Vec::new();
        let mut chosen = vec![false; self.options.len()];
        for (n, name) in answer.options.iter().enumerate() {
            match self.find_option(name) {
                Some(at) => chosen[at] = true,
                None => wrong.push(Violation::at(
                    format!("/options/{n}"),
                    "NOT_ALLOWED",
                    format!("`{}` is not an option of this question; {}.", name.trim(), self.list_options()),
                )),
            }
        }
        if !self.multiple && chosen.iter().filter(|chosen| **chosen).count() > 1 {
            let detail = "Only one option of this question can be chosen.";
            wrong.push(Violation::at("/options", "NOT_ALLOWED", detail));
        }
        let text = answer.text();
        if text.is_some() && !self.allow_text {
            wrong.push(Violation::at(
                "/text",
                "NOT_ALLOWED",
                "This question does not accept text, only options.",
            ));
        }
        if !wrong.is_empty() {
            return Err(Problem::invalid(wrong));
        }
        let options = self.options.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        let options = options.map(|(option, _)| option.id.clone()).collect();
        Ok(AcceptedAnswer { options, text: text.map(str::to_owned) })
    }

    /// Ids win over labels: ids are for the agent, labels for people.
    fn find_option(&self, name: &str) -> Option<usize> {
        let name = name.trim();
        let by_id = self.options.iter().position(|option| option.id == name);
        by_id.or_else(|| self.options.iter().position(|option| option.label.trim() == name))
    }

    fn list_options(&self) -> String {
        if self.options.is_empty() {
            return "it has no options".to_owned();
        }
        let known: Vec<_> = self.options.iter().map(|option| format!("`{}`", option.id)).collect();
        format!("its options are {}", known.join(", "))
    }
}

impl Answer {
    /// Refuses an empty answer.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn require_any(&self) -> Result<()> {
        if self.options.is_empty() && self.text().is_none() {
            let detail = "An answer must have `options`, `text`, or both.";
            return Err(Problem::invalid_at("/options", "REQUIRED", detail));
        }
        Ok(())
    }

    fn text(&self) -> Option<&str> {
        self.text.as_deref().map(str::trim).filter(|text| !text.is_empty())
    }
}

impl AcceptedAnswer {
    /// APPROVED or DENIED, for an action.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` without a chosen option: a comment decides nothing.
    pub fn outcome(&self) -> Result<ApprovalOutcome> {
        match self.options.first().map(String::as_str) {
            Some(APPROVE) => Ok(ApprovalOutcome::Approved),
            Some(_) => Ok(ApprovalOutcome::Denied),
            None => Err(Problem::invalid_at(
                "/options",
                "REQUIRED",
                format!("Choose `{APPROVE}` or `{DENY}`. Text without an option decides nothing."),
            )),
        }
    }
}
