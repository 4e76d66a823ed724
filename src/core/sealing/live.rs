//! The key ring of a running service: replaced as a whole while others seal and open.

use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::{SecretSlice, SecretString};

use super::{KeyRing, SealContext, SealError};

/// The current key ring. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct LiveRing(Arc<ArcSwap<KeyRing>>);

impl LiveRing {
    #[must_use]
    pub fn new(ring: KeyRing) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(ring)))
    }

    #[must_use]
    pub fn current(&self) -> Arc<KeyRing> {
        self.0.load_full()
    }

    pub fn replace(&self, ring: KeyRing) {
        self.0.store(Arc::new(ring));
    }

    /// The id of the key that seals.
    #[must_use]
    pub fn active_id(&self) -> u32 {
        self.0.load().active_id()
    }

    /// See [`KeyRing::seal`].
    #[must_use]
    pub fn seal(&self, plain: &SecretString, context: &SealContext<'_>) -> Vec<u8> {
        self.0.load().seal(plain, context)
    }

    /// See [`KeyRing::seal_bytes`].
    #[must_use]
    pub fn seal_bytes(&self, plain: &[u8], context: &SealContext<'_>) -> Vec<u8> {
        self.0.load().seal_bytes(plain, context)
    }

    /// See [`KeyRing::open`].
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn open(&self, sealed: &[u8], context: &SealContext<'_>) -> Result<SecretString, SealError> {
        self.0.load().open(sealed, context)
    }

    /// See [`KeyRing::open_bytes`].
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn open_bytes(&self, sealed: &[u8], context: &SealContext<'_>) -> Result<SecretSlice<u8>, SealError> {
        self.0.load().open_bytes(sealed, context)
    }
}
