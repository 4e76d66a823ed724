//! The result of a job over all organizations. A failure for one of them does not hold up the others.

use crate::base::{
    ids::OrgId,
    problem::{Problem, Result},
};

/// Counts the work done for all organizations, and keeps the first failure.
#[derive(Default)]
pub struct Tally {
    done: u64,
    failed: Option<Problem>,
}

impl Tally {
    /// Adds the work done for one organization, or logs why it failed: the next run tries it again.
    pub fn add(&mut self, org: OrgId, done: Result<impl Into<u64>>) {
        match done {
            Ok(count) => self.done += count.into(),
            Err(problem) => {
                let cause = problem.cause().map(|cause| format!("{cause:#}"));
                tracing::error!(org = org.0, %problem, cause, "job.failed_for_one");
                self.failed.get_or_insert(problem);
            }
        }
    }

    /// How much was done.
    ///
    /// # Errors
    /// The first failure that was added. The other organizations were handled nevertheless.
    pub fn close(self) -> Result<u64> {
        self.failed.map_or(Ok(self.done), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_for_one_is_told_at_the_end() {
        let mut tally = Tally::default();
        tally.add(OrgId(1), Ok(true));
        tally.add(OrgId(2), Err::<u64, _>(Problem::not_found("agent", OrgId(7))));
        tally.add(OrgId(3), Ok(4_u64));
        assert_eq!(tally.done, 5);
        assert!(tally.close().is_err());
        let mut tally = Tally::default();
        tally.add(OrgId(1), Ok(2_u64));
        assert_eq!(tally.close().ok(), Some(2));
    }
}
