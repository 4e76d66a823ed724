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

/// Memory without an end.
#[cfg(test)]
pub struct Endless;

#[cfg(test)]
impl Room for Endless {
    fn open(&self) -> Box<dyn Hold> {
        Box::new(Self)
    }
}

#[cfg(test)]
impl Hold for Endless {
    fn grow(&mut self, _: usize) -> bool {
        true
    }

    fn shrink(&mut self, _: usize) {}
}
