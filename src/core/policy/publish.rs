//! Putting an edit in force: written where there is a folder that takes it, and in force in any case.
//!
//! A version that was committed stands, whatever becomes of its file. So a file that can't be written after all is held
//! in memory over the one in the folder, until the folder takes it, or until somebody writes another text there.

use std::{collections::BTreeMap, io, sync::Arc};

use super::{LastRead, LintProblem, Policy, Prepared, build, org_file, source::Sources, write};
use crate::{
    base::{ids::OrgId, time::Timestamp},
    core::telemetry::metrics,
};

/// What became of a text that was put in force.
#[derive(Debug)]
pub enum Placed {
    /// It is the file's text, or there is no folder.
    Written,
    /// It is in force, and its file could not be written.
    Held(io::Error),
    /// The file is no longer what it was going to replace: somebody has edited it by hand. It was left alone, and is in
    /// force as far as the policy is good with it.
    Overtaken,
}

/// A text that is in force in place of the file's.
pub(super) struct Held {
    /// The file's text when it could not be written.
    over: Option<Result<String, String>>,
    text: Option<String>,
}

/// The texts in force in place of files that could not be written.
pub(super) type HeldTexts = BTreeMap<OrgId, Held>;

impl Policy {
    /// Writes an organization's next text beside its own file, so that nothing but a rename is left. Touches the disk.
    ///
    /// # Errors
    /// The folder can't be written. Nothing is left in it.
    pub fn prepare(&self, org: OrgId, text: Option<String>) -> io::Result<Prepared> {
        let prepared = Prepared::new(self.dir(), org, text);
        if prepared.is_err() {
            count_failure();
        }
        prepared
    }

    /// Puts what was prepared in force, in the place of the text `over`. Touches the disk.
    ///
    /// # Errors
    /// The policy is not good with it, as the folder is now; then what was in force is in force.
    pub fn put(&self, prepared: Prepared, over: Option<&str>) -> Result<Placed, Vec<LintProblem>> {
        let Prepared { org, text, on_disk } = prepared;
        self.place(org, text, over, |text| match on_disk {
            Some((path, beside)) => write::finish(&path, beside, text),
            None => Ok(()),
        })
    }

    /// [`Self::prepare`] and [`Self::put`]; a text for which the folder has no room is held.
    ///
    /// # Errors
    /// Those of [`Self::put`].
    pub fn put_org(
        &self,
        org: OrgId,
        text: Option<String>,
        over: Option<&str>,
    ) -> Result<Placed, Vec<LintProblem>> {
        match Prepared::new(self.dir(), org, text.clone()) {
            Ok(prepared) => self.put(prepared, over),
            Err(error) => self.place(org, text, over, |_| Err(error)),
        }
    }

    /// The text that an organization's own file has at this moment; none where there is no file, or none that can be read.
    /// Touches the disk.
    #[must_use]
    pub fn file_text(&self, org: OrgId) -> Option<String> {
        std::fs::read_to_string(self.dir()?.join(org_file(org))).ok()
    }

    /// The text that it had when the folder was last read, whatever is in force over it.
    #[must_use]
    pub fn read_text(&self, org: OrgId) -> Option<String> {
        match self.last_read().held.get(&org) {
            Some(held) => held.over.clone().and_then(Result::ok),
            None => self.org_text(org),
        }
    }

    fn place(
        &self,
        org: OrgId,
        text: Option<String>,
        over: Option<&str>,
        write: impl FnOnce(Option<&str>) -> io::Result<()>,
    ) -> Result<Placed, Vec<LintProblem>> {
        let mut last = self.last_read();
        let Some(dir) = &self.0.dir else {
            self.put_in_memory(org, text)?;
            return Ok(Placed::Written);
        };
        // Looked at here once more, where nothing is left to wait for.
        let there = self.file_text(org);
        if there.as_deref() != over && there != text {
            let _ = self.take(&mut last, Sources::read(dir));
            return Ok(Placed::Overtaken);
        }
        let written = write(text.as_deref());
        let sources = Sources::read(dir);
        match &written {
            Ok(()) => drop(last.held.remove(&org)),
            Err(_) => {
                count_failure();
                let over = sources.org(org).map(|file| file.text.clone());
                last.held.insert(org, Held { over, text: text.clone() });
            }
        }
        if self.take(&mut last, sources).is_err() {
            // Something else in the folder keeps it from being taken. What is in force goes on, with this text.
            self.put_in_memory(org, text)?;
        }
        Ok(written.map_or_else(Placed::Held, |()| Placed::Written))
    }

    fn put_in_memory(&self, org: OrgId, text: Option<String>) -> Result<(), Vec<LintProblem>> {
        let live = self.0.live.load();
        let compiled = build(live.book.sources.clone().with_org(org, text), Some(&live))?;
        self.0.live.store(Arc::new(compiled));
        Ok(())
    }

    /// Removes what was prepared before that instant and never put in place: how many files. Touches the disk.
    ///
    /// # Errors
    /// The folder can't be read or written.
    pub fn sweep(&self, before: Timestamp) -> io::Result<u64> {
        let Some(dir) = self.dir() else { return Ok(0) };
        Ok(write::sweep(dir, before)? + write::sweep(&dir.join("orgs"), before)?)
    }

    /// The organizations whose file could not be written with the text that is in force.
    #[must_use]
    pub fn unwritten(&self) -> Vec<OrgId> {
        self.last_read().held.keys().copied().collect()
    }
}

fn count_failure() {
    if let Some(meters) = metrics::on() {
        meters.policy_write_failed.increment(1);
    }
}

impl LastRead {
    /// The folder's files with what is held over them. What was written since, by another replica or by hand, is no
    /// longer overruled.
    pub(super) fn with_held(&mut self, mut sources: Sources) -> Sources {
        self.held.retain(|org, held| sources.org(*org).map(|file| &file.text) == held.over.as_ref());
        for (org, held) in &self.held {
            sources = sources.with_org(*org, held.text.clone());
        }
        sources
    }
}
