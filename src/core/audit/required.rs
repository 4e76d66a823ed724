//! Checks a caller's identity and permissions for an operation. Refusals go to the audit log.

use super::refusals::refused;
use crate::{
    base::{
        permission::Permission,
        problem::{Code, Problem, Result},
    },
    core::{
        access::{Person, Scope},
        policy::NO_LINE,
    },
};

impl Scope {
    /// Records in the audit log that the caller was refused the operation, and returns the problem. The service's own
    /// work has no operation, and is not recorded.
    #[must_use]
    pub fn refused(&self, problem: Problem) -> Problem {
        if let Some(operation) = &self.operation {
            refused(&self.request, operation, Some((self.org, Some(&self.membership))), &problem);
        }
        problem
    }

    /// The person who calls; refuses service tokens.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`, also in the audit log.
    pub fn person(&self) -> Result<&Person> {
        self.request.caller.person().map_err(|problem| self.refused(problem))
    }

    /// Fails if the caller does not hold `permission` here.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`, naming the permission; also in the audit log.
    pub fn require(&self, permission: Permission) -> Result<()> {
        if self.may(permission) {
            return Ok(());
        }
        let detail = format!("You do not have the permission {permission} in this organization.");
        let problem = Problem::new(Code::PermissionDenied, detail).with("permission", permission.as_str());
        // Callers who may read the policy also learn which line decided.
        let why = self.may(Permission::PolicyView).then(|| self.explain(permission));
        let Some(why) = why.flatten() else {
            return Err(self.refused(problem));
        };
        let decided_by = why.decided_by.map_or_else(|| NO_LINE.to_owned(), |line| line.to_string());
        let problem = problem.with("decided_by", decided_by);
        Err(self.refused(match why.remedy {
            Some(remedy) => problem.with("would_allow", remedy.to_string()),
            None => problem,
        }))
    }
}
