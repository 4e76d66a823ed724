//! Memory for input, shared out by the core.

/// The memory of one organization for mails being read.
pub trait MemoryBudget: Send + Sync {
    /// Opens an account for one reader.
    fn open(&self) -> Box<dyn MemoryGrant>;
}

/// Memory of one reader, released on drop.
pub trait MemoryGrant: Send + Sync {
    /// Takes more bytes. `false`: none are free at the moment.
    fn grow(&mut self, bytes: usize) -> bool;

    /// Returns bytes.
    fn shrink(&mut self, bytes: usize);
}

#[cfg(test)]
pub struct Unlimited;

#[cfg(test)]
impl MemoryBudget for Unlimited {
    fn open(&self) -> Box<dyn MemoryGrant> {
        Box::new(Self)
    }
}

#[cfg(test)]
impl MemoryGrant for Unlimited {
    fn grow(&mut self, _: usize) -> bool {
        true
    }

    fn shrink(&mut self, _: usize) {}
}
