//! `muster audit …`.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
};

use bytes::Bytes;
use clap::Subcommand;
use futures::{Stream, StreamExt};
use serde_json::{Value, json};

use super::{Cli, Failure, Output};
use crate::{
    base::{files::create_private, problem::Problem, time::Timestamp},
    core::audit::{self, AuditKey, INSTANCE, PublicKey, Report, Verifier},
    slices::orgs,
};

/// Verify, export and manage the audit log
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Verify that the log is unchanged since it was sealed, and report the first line that is not
    Verify(Verify),
    /// Write a log and its checkpoints as JSON Lines
    Export(Export),
    /// Print the public key that verifies an export without the service
    Key,
}

/// Arguments of `muster audit verify`.
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// An organization's id or name [default: every log]
    #[arg(long, conflicts_with = "file")]
    org: Option<String>,
    /// The instance's own log: sign-ins, unknown callers, bad credentials
    #[arg(long, conflicts_with_all = ["org", "file"])]
    instance: bool,
    /// An export to verify; needs no database
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A checkpoint known from elsewhere that the log must reach
    #[arg(long, value_name = "SEQ:HASH", value_parser = checkpoint)]
    at_least: Option<(i64, Hash)>,
    /// A trusted public key; may be repeated [default: the keys in the key file]
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
}

/// Arguments of `muster audit export`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["org", "instance"])))]
pub struct Export {
    /// The organization's id or name
    #[arg(long)]
    org: Option<String>,
    /// The instance's own log
    #[arg(long)]
    instance: bool,
    /// Start of the range, inclusive: 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = super::instant)]
    from: Option<Timestamp>,
    /// End of the range, exclusive
    #[arg(long, value_name = "TIME", value_parser = super::instant)]
    to: Option<Timestamp>,
    /// The file to write, which must not exist yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Audit {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Verify(command) => command.run(cli).await,
            Self::Export(command) => command.run(cli).await,
            Self::Key => {
                let keys = cli.settings()?.existing_keys()?;
                let key =
                    AuditKey::of(&keys).ok_or_else(|| Failure::new("the key file has no signing key"))?;
                Ok(Output::of(json!({ "id": key.public().id(), "key": key.public().to_string() })))
            }
        }
    }
}

impl Verify {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let reports = match &self.file {
            Some(path) => vec![verify_file(path, &self.keys(cli)?, self.at_least)?],
            None => self.verify_database(cli).await?,
        };
        let bad = reports.iter().any(|report| !report.ok);
        let mut text: Vec<String> = reports.iter().map(ToString::to_string).collect();
        if text.is_empty() {
            text.push("No line has been sealed yet; a running service seals new lines.".to_owned());
        }
        Ok(Output::with_text(json!({ "ok": !bad, "logs": reports }), text.join("\n")).failed_if(bad))
    }

    async fn verify_database(&self, cli: &Cli) -> Result<Vec<Report>, Failure> {
        if self.at_least.is_some() && self.org.is_none() && !self.instance {
            return Err(Failure::new(
                "--at-least applies to a single log: choose it with --org, --instance or --file",
            ));
        }
        let core = cli.open_as_is().await?;
        let keys = self.keys(cli)?;
        let chains = match &self.org {
            Some(org) => vec![orgs::find(&core, org).await?.0],
            None if self.instance => vec![INSTANCE],
            None => audit::chains(&core).await?,
        };
        let mut reports = Vec::new();
        for chain in chains {
            reports.push(audit::verify(&core, chain, &keys, self.known()).await?);
        }
        core.shut_down().await;
        Ok(reports)
    }

    fn known(&self) -> Option<(i64, &[u8])> {
        self.at_least.as_ref().map(|(seq, hash)| (*seq, hash.as_slice()))
    }

    fn keys(&self, cli: &Cli) -> Result<Vec<PublicKey>, Failure> {
        if self.key.is_empty() {
            return Ok(AuditKey::known(&cli.settings()?.existing_keys()?));
        }
        let parse = |text: &String| {
            PublicKey::parse(text)
                .ok_or_else(|| Failure::new(format!("{text:?} is not a key printed by `muster audit key`")))
        };
        self.key.iter().map(parse).collect()
    }
}

fn verify_file(path: &Path, keys: &[PublicKey], known: Option<(i64, Hash)>) -> Result<Report, Failure> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| Failure::new(format!("{shown}: {error}")))?;
    let mut verifier: Option<Verifier<'_>> = None;
    for (n, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(|error| Failure::new(format!("{shown}: {error}")))?;
        let line: Result<Value, _> = serde_json::from_slice(&line);
        match (&mut verifier, line) {
            (None, Ok(header)) if header["type"] == "export" => {
                let mut begun = Verifier::new(header["organization_id"].as_i64(), keys);
                begun.see(header);
                if let Some((seq, hash)) = known {
                    begun.expect(seq, &hash);
                }
                verifier = Some(begun);
            }
            (None, _) => {
                return Err(Failure::new(format!("{shown}: the first line is not an export header")));
            }
            (Some(verifier), Ok(line)) => verifier.see(line),
            (Some(verifier), Err(error)) => {
                verifier.unreadable(&format!("line {}: {error}", n + 1));
            }
        }
    }
    let verifier = verifier.ok_or_else(|| Failure::new(format!("{shown}: the file is empty")))?;
    Ok(verifier.finish(None, 0))
}

/// A line's hash.
type Hash = [u8; 32];

fn checkpoint(text: &str) -> Result<(i64, Hash), String> {
    let parsed = text.split_once(':').and_then(|(seq, hash)| {
        Some((seq.parse().ok().filter(|seq| *seq > 0)?, <Hash as hex::FromHex>::from_hex(hash).ok()?))
    });
    parsed.ok_or_else(|| "a checkpoint has the form 5702:9f3c…, with 64 hexadecimal digits".to_owned())
}

impl Export {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(Failure::new("--from must be before --to"));
        }
        let core = cli.open_as_is().await?;
        let chain = match &self.org {
            Some(org) => orgs::find(&core, org).await?.0,
            None => INSTANCE,
        };
        let lines = audit::export(Arc::clone(&core), chain, (self.from, self.to)).await?;
        let output = match self.out {
            Some(path) => {
                let failed = |error: io::Error| match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        Failure::new(format!("{} already exists and will not be overwritten", path.display()))
                    }
                    _ => Failure::new(format!("{}: {error}", path.display())),
                };
                // Readable by its owner only: it contains names and addresses.
                let file = create_private(&path).map_err(failed)?;
                let written = write(lines, file).await;
                if written.is_err() {
                    // Part of a log could be mistaken for all of it.
                    let _ = std::fs::remove_file(&path);
                }
                Output::of(json!({ "file": path, "lines": written? }))
            }
            None => {
                write(lines, io::stdout()).await?;
                Output::none()
            }
        };
        core.shut_down().await;
        Ok(output)
    }
}

/// Writes the pages of an export and returns the number of the log's own lines, which excludes the header and checkpoints.
async fn write(
    pages: impl Stream<Item = Result<Bytes, Problem>> + Send,
    mut out: impl Write + Send,
) -> Result<usize, Failure> {
    let (mut pages, mut written) = (pin!(pages), 0);
    while let Some(page) = pages.next().await {
        let page = page?;
        written += page.split(|byte| *byte == b'\n').filter(|line| is_entry(line)).count();
        out.write_all(&page)?;
    }
    out.flush()?;
    Ok(written)
}

fn is_entry(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Kind<'a> {
        r#type: &'a str,
    }
    serde_json::from_slice::<Kind<'_>>(line).is_ok_and(|line| line.r#type == "entry")
}
