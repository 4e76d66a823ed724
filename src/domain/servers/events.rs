//! What servers and images tell the features above them, and ask of them.

use crate::{
    base::ids::{ImageId, ServerId},
    core::handlers::{DomainEvent, Question},
};

/// A server was deleted.
#[derive(Debug)]
pub struct Deleted {
    pub server: ServerId,
}

impl DomainEvent for Deleted {}

/// What agents with this image are launched with was changed.
#[derive(Debug)]
pub struct ImageChanged {
    pub image: ImageId,
}

impl DomainEvent for ImageChanged {}

/// How many agents a server has.
#[derive(Debug)]
pub struct CountAgents(pub ServerId);

impl Question for CountAgents {
    type Answer = u64;
}
