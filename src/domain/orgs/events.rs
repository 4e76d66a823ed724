//! Events for, and questions to, the features above organizations.

use crate::{
    base::ids::{ImageId, UserId},
    core::handlers::{DomainEvent, Question},
};

/// An organization was created. It has no members and images yet.
#[derive(Debug)]
pub struct Created {
    /// Its first OWNER.
    pub owner: UserId,
}

impl DomainEvent for Created {}

/// The terms of the agents' spending were changed: the budget, the cost guard, the currency or the time zone.
#[derive(Debug)]
pub struct TermsChanged {
    pub old_timezone: String,
    pub timezone: String,
}

impl DomainEvent for TermsChanged {}

impl TermsChanged {
    /// Whether the boundaries of months have changed.
    #[must_use]
    pub fn has_other_timezone(&self) -> bool {
        self.old_timezone != self.timezone
    }
}

/// Asks whether the organization has this image and it isn't archived.
#[derive(Debug)]
pub struct HasImage(pub ImageId);

impl Question for HasImage {
    type Answer = bool;
}

/// Asks whether a person has a second factor.
#[derive(Debug)]
pub struct HasSecondFactor(pub UserId);

impl Question for HasSecondFactor {
    type Answer = bool;
}
