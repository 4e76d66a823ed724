//! What organizations tell the features above them, and ask of them.

use crate::{
    base::ids::{ImageId, UserId},
    core::handlers::{DomainEvent, Question},
};

/// An organization was created. It has no member and no image yet.
#[derive(Debug)]
pub struct Created {
    /// Its first OWNER.
    pub owner: UserId,
}

impl DomainEvent for Created {}

/// What the organization's agents may spend was changed: the budget, the cost guard, the currency or the time zone.
#[derive(Debug)]
pub struct TermsChanged {
    /// The time zone before.
    pub old_timezone: String,
    /// The time zone.
    pub timezone: String,
}

impl DomainEvent for TermsChanged {}

impl TermsChanged {
    /// Whether months begin at other moments than before.
    #[must_use]
    pub fn has_other_timezone(&self) -> bool {
        self.old_timezone != self.timezone
    }
}

/// Whether the organization has this image and it isn't archived.
#[derive(Debug)]
pub struct HasImage(pub ImageId);

impl Question for HasImage {
    type Answer = bool;
}

/// Whether a person has a second factor.
#[derive(Debug)]
pub struct HasSecondFactor(pub UserId);

impl Question for HasSecondFactor {
    type Answer = bool;
}
