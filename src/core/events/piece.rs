//! A kind of content that viewers see while it arises (`live.rs`).

use std::hash::Hash;

use serde::{Serialize, de::DeserializeOwned};

use crate::base::ids::OrgId;

/// A piece of content.
pub trait Piece: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Identifies what is watched within its organization.
    type Of: Copy + Eq + Hash + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The channel's name in the database.
    const CHANNEL: &'static str;

    /// What the piece belongs to.
    fn key(&self) -> Key<Self>;

    /// The two halves of a piece that is too long for a message between replicas. `None` if it can't be split.
    fn halves(self) -> Option<(Self, Self)>;
}

/// What is watched.
pub type Key<P> = (OrgId, <P as Piece>::Of);
