//! Memory for what comes in, as the core shares it out.

/// The memory that one organization has for mails while they are read.
pub trait Room: Send + Sync {
    /// Begins to count for one reader.
    fn open(&self) -> Box<dyn Hold>;
}

/// What one reader holds. Dropping it gives all of it back.
pub trait Hold: Send + Sync {
    /// Counts so many bytes more. `false`: there is no room for them at the moment.
    fn grow(&mut self, bytes: usize) -> bool;

    /// Gives so many bytes back.
    fn shrink(&mut self, bytes: usize);
}
