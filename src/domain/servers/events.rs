//! Events and questions of servers and images for the features above them.

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

/// An image's default model or profile was changed, which its agents are launched with.
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
