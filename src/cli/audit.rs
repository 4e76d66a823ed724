//! `muster audit …`.

use std::{
    collections::BTreeSet,
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

use super::{Cli, Failure, Output, output};
use crate::{
    base::{problem::Problem, time::Timestamp},
    core::audit::{self, AuditKey, INSTANCE, KnownLine, PublicKey, Report, Verifier},
    domain::orgs,
};

/// Verify, export and manage the audit log
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Verify that the log is unchanged since it was sealed, and report the first line that is not
    Verify(Verify),
    /// Write a log and its checkpoints as JSON Lines
    Export(Export),
    /// Sign the end of a broken log, so that later lines are signed again; the broken lines stay broken
    Resume(Resume),
    /// Print the public key that verifies an export without the service
    Key,
}

#[derive(Debug, clap::Args)]
pub struct Verify {
    /// An organization's id or name [default: every log]
    #[arg(long, conflicts_with = "file")]
    org: Option<String>,
    /// The installation's own log: sign-ins, unknown callers, bad credentials
    #[arg(long, conflicts_with_all = ["org", "file"])]
    instance: bool,
    /// An export to verify; needs no database
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A checkpoint known from elsewhere that the log must reach; may be repeated. The organization is 0 for the
    /// installation's own log, and may be left out with --org, --instance or --file
    #[arg(long, value_name = "ORG:SEQ:HASH", value_parser = checkpoint)]
    at_least: Vec<Checkpoint>,
    /// A trusted public key; may be repeated [default: the keys in the key file]
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["org", "instance"])))]
pub struct Export {
    /// The organization's id or name
    #[arg(long)]
    org: Option<String>,
    /// The installation's own log
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

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["org", "instance"])))]
pub struct Resume {
    /// The organization's id or name
    #[arg(long)]
    org: Option<String>,
    /// The installation's own log
    #[arg(long)]
    instance: bool,
}

impl Audit {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Verify(command) => command.run(cli).await,
            Self::Export(command) => command.run(cli).await,
            Self::Resume(command) => command.run(cli).await,
            Self::Key => {
                let keys = cli.settings()?.existing_keys()?;
                let key =
                    AuditKey::derive(&keys).ok_or_else(|| Failure::new("the key file has no signing key"))?;
                Ok(Output::from_json(json!({ "id": key.public().id(), "key": key.public().to_string() })))
            }
        }
    }
}

impl Verify {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let reports = match &self.file {
            Some(path) => vec![verify_file(path, &self.keys(cli)?, &self.at_least)?],
            None => self.verify_database(cli).await?,
        };
        let bad = reports.iter().any(|report| !report.ok);
        let text: Vec<String> = reports.iter().map(ToString::to_string).collect();
        Ok(Output::with_text(json!({ "ok": !bad, "logs": reports }), text.join("\n")).failed_if(bad))
    }

    async fn verify_database(&self, cli: &Cli) -> Result<Vec<Report>, Failure> {
        let is_single = self.org.is_some() || self.instance;
        if !is_single && self.at_least.iter().any(|known| known.chain.is_none()) {
            return Err(Failure::invalid(
                "SEQ:HASH applies to a single log: choose it with --org, --instance or --file, or name it: ORG:SEQ:HASH",
            ));
        }
        let core = cli.open_as_is().await?;
        let keys = self.keys(cli)?;
        let chains = match &self.org {
            Some(org) => BTreeSet::from([orgs::find(&core, org).await?.0]),
            None if self.instance => BTreeSet::from([INSTANCE]),
            None => {
                let named = self.at_least.iter().filter_map(|known| known.chain);
                audit::chains(&core).await?.into_iter().chain(named).collect()
            }
        };
        for known in &self.at_least {
            known.require_among(&chains)?;
        }
        let mut reports = Vec::new();
        for chain in chains {
            let known = self.at_least.iter().filter(|known| known.is_of(chain)).map(|known| known.line);
            reports.push(audit::verify(&core, chain, &keys, known).await?);
        }
        core.shut_down().await;
        Ok(reports)
    }

    fn keys(&self, cli: &Cli) -> Result<Vec<PublicKey>, Failure> {
        if self.key.is_empty() {
            return Ok(AuditKey::known(&cli.settings()?.existing_keys()?));
        }
        let parse = |text: &String| {
            PublicKey::parse(text).ok_or_else(|| {
                Failure::invalid(format!("{text:?} is not a key printed by `muster audit key`"))
            })
        };
        self.key.iter().map(parse).collect()
    }
}

fn verify_file(path: &Path, keys: &[PublicKey], known: &[Checkpoint]) -> Result<Report, Failure> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| Failure::of_file(path, &error))?;
    let mut verifier: Option<Verifier<'_>> = None;
    for (n, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(|error| Failure::of_file(path, &error))?;
        let line: Result<Value, _> = muster_json::from_slice(&line);
        match (&mut verifier, line) {
            (None, Ok(header)) if header["type"] == "export" => {
                let organization = header["organization_id"].as_i64();
                let chain = BTreeSet::from([organization.unwrap_or(INSTANCE)]);
                let mut begun = Verifier::new(organization, keys);
                begun.take_line(header);
                for known in known {
                    known.require_among(&chain)?;
                    begun.expect(known.line);
                }
                verifier = Some(begun);
            }
            (None, _) => {
                return Err(Failure::invalid(format!("{shown}: the first line is not an export header")));
            }
            (Some(verifier), Ok(line)) => verifier.take_line(line),
            (Some(verifier), Err(error)) => {
                verifier.unreadable(&format!("line {}: {error}", n + 1));
            }
        }
    }
    let verifier = verifier.ok_or_else(|| Failure::invalid(format!("{shown}: the file is empty")))?;
    Ok(verifier.finish(None, 0))
}

/// A checkpoint known from elsewhere.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// Its chain; `None` if only one chain is verified.
    chain: Option<i64>,
    line: KnownLine,
}

impl Checkpoint {
    fn is_of(self, chain: i64) -> bool {
        self.chain.is_none_or(|own| own == chain)
    }

    fn require_among(self, chains: &BTreeSet<i64>) -> Result<(), Failure> {
        match self.chain.filter(|chain| !chains.contains(chain)) {
            None => Ok(()),
            Some(chain) => {
                Err(Failure::invalid(format!("--at-least names the log of {chain}, which is not verified")))
            }
        }
    }
}

/// Reads `ORG:SEQ`, `ORG:SEQ:HASH` or `SEQ:HASH`.
fn checkpoint(text: &str) -> Result<Checkpoint, String> {
    let chain = |text: &str| text.parse().ok().filter(|chain: &i64| *chain >= 0);
    let seq = |text: &str| text.parse().ok().filter(|seq: &i64| *seq > 0);
    let hash = |text: &str| <[u8; 32] as hex::FromHex>::from_hex(text).ok();
    let parsed = match text.split(':').collect::<Vec<_>>()[..] {
        [own, place, known] => chain(own).zip(seq(place)).zip(hash(known)).map(|((own, seq), hash)| {
            Checkpoint { chain: Some(own), line: KnownLine { seq, hash: Some(hash) } }
        }),
        [first, second] => match hash(second) {
            Some(hash) => {
                seq(first).map(|seq| Checkpoint { chain: None, line: KnownLine { seq, hash: Some(hash) } })
            }
            None => chain(first)
                .zip(seq(second))
                .map(|(own, seq)| Checkpoint { chain: Some(own), line: KnownLine { seq, hash: None } }),
        },
        _ => None,
    };
    parsed.ok_or_else(|| {
        "a checkpoint has the form 101:5702:9f3c… or 101:5702, or 5702:9f3c… for a single log; the hash has 64 hexadecimal digits".to_owned()
    })
}

impl Resume {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let chain = match &self.org {
            Some(org) => orgs::find(&core, org).await?.0,
            None => INSTANCE,
        };
        let seq = audit::resume(&core, chain).await?;
        core.shut_down().await;
        let text = format!("Line {seq} is signed. A running service signs later ones within ten minutes.");
        Ok(Output::with_text(json!({ "seq": seq }), text))
    }
}

impl Export {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(Failure::invalid("--from must be before --to"));
        }
        let core = cli.open_as_is().await?;
        let chain = match &self.org {
            Some(org) => orgs::find(&core, org).await?.0,
            None => INSTANCE,
        };
        let lines = audit::export(Arc::clone(&core), chain, (self.from, self.to)).await?;
        let output = match self.out {
            Some(path) => {
                // Readable by its owner only: it contains names and addresses.
                let file = output::create(&path)?;
                let written = write(lines, file).await;
                if written.is_err() {
                    // Part of a log could be mistaken for all of it.
                    let _ = std::fs::remove_file(&path);
                }
                Output::from_json(json!({ "file": path, "lines": written? }))
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

/// Writes the pages of an export and returns the number of the log's own lines, which excludes the header and
/// checkpoints.
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
    muster_json::from_slice::<Kind<'_>>(line).is_ok_and(|line| line.r#type == "entry")
}
