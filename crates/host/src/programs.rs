//! Startable programs: the owner's list of agents' programs, the shim, and the reference agent.
//!
//! A plain process has the rights of the host's user, so only programs listed by the host's owner are started; the
//! reference agent needs no entry. `--allow` lists the program of a built-in profile. The list is a TOML file:
//!
//! ```toml
//! ["example/opencode:1"]
//! command = "/opt/opencode/bin/opencode"
//! args = ["acp"]
//! pass = ["HTTPS_PROXY"]              # variables of the host's own environment
//! set = { OPENCODE_DISABLE_LSP = "1" }
//! readable = ["/opt/opencode"]        # readable in a sandbox, in addition to the system
//!
//! ["fast-agent"]
//! profile = "fast-agent"              # program, arguments and files from this profile
//!
//! [mcp."/opt/tools/bin/tools"]        # an MCP server, by its command's path: tenants choose names
//! readable = ["/opt/tools"]
//! ```

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use clap::Args;
use muster_profiles::Profiles;
use muster_protocol::profile::Profile;
use serde::Deserialize;

/// The reference agent's image, optionally with a tag.
const REFERENCE: &str = "muster/agent";

#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The list can't be read.
    #[error("The list of programs {path} can't be read: {reason}")]
    List { path: PathBuf, reason: String },
    /// The image is not listed.
    #[error("This host doesn't know the image {image:?}. Its owner can add it to {list}.")]
    NotListed {
        image: String,
        /// The file to edit.
        list: String,
    },
    /// The program of an MCP server with secrets is neither listed nor visible in a sandbox.
    #[error(
        "The sandbox of an MCP server shows no {command}. The host's owner can list it, as [mcp.{command:?}], in {list}."
    )]
    McpNotListed {
        command: PathBuf,
        /// The file to edit.
        list: String,
    },
    /// A variable could make the owner's program run other code.
    #[error(
        "A credential may not set {variable} of {command}, a program that the host's owner lists: it can load code. Rename the credential or its field."
    )]
    McpVariable { variable: String, command: PathBuf },
    /// The list names an unknown profile.
    #[error("The list of programs {list} names the profile {profile:?} for {image:?}. There are: {known}.")]
    NoProfile {
        /// The file to edit.
        list: String,
        profile: String,
        image: String,
        /// Known profiles.
        known: String,
    },
    /// `--allow` names an unknown profile.
    #[error("--allow names the profile {profile:?}. There are: {known}.")]
    NotBuiltIn {
        profile: String,
        /// Known profiles.
        known: String,
    },
    /// Neither the list nor its profile names a program.
    #[error("The list of programs {list} says neither a command nor a profile for {image:?}.")]
    NoCommand {
        /// The file to edit.
        list: String,
        image: String,
    },
    /// A program of Muster's own is missing.
    #[error(
        "{name} is not next to {beside}, where this host expects it. Install it there, or set {setting}."
    )]
    Missing {
        name: &'static str,
        /// The host's own program.
        beside: PathBuf,
        /// The setting for another location.
        setting: &'static str,
    },
    /// A program of Muster's own can't be used in containers.
    #[error(
        "Containers need a static {name}: {beside} is not static, and there is none next to it or in {setting}. A released `muster` is static. From Muster's source, this builds one: RUSTFLAGS=\"-C target-feature=+crt-static\" cargo build --locked --target {arch}-unknown-linux-gnu --target-dir target/static -p muster-shim -p muster-agent",
        arch = std::env::consts::ARCH
    )]
    NotStatic {
        name: &'static str,
        /// The host's own program.
        beside: PathBuf,
        /// The setting for another location.
        setting: &'static str,
    },
    /// The built-in profiles are invalid.
    #[error(transparent)]
    Profiles(muster_profiles::Mistakes),
    /// The host's own program can't be found.
    #[error("This host can't find its own program: {0}.")]
    Own(std::io::Error),
}

/// A program and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// A path, or a name on the PATH. Empty: from the profile.
    #[serde(default)]
    pub command: PathBuf,
    /// Empty: from the profile.
    #[serde(default)]
    pub args: Vec<String>,
    /// The profile to use instead of the image's.
    #[serde(default)]
    pub profile: Option<String>,
    /// Variables passed from the host's environment.
    #[serde(default)]
    pub pass: Vec<String>,
    /// Additional variables.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Readable paths in a sandbox, in addition to the system.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
}

/// The owner's list.
#[derive(Debug, Default, Deserialize)]
struct List {
    /// MCP servers by their commands' paths.
    #[serde(default)]
    mcp: BTreeMap<PathBuf, McpProgram>,
    #[serde(flatten)]
    images: BTreeMap<String, Program>,
}

/// The entry of an MCP server's program.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpProgram {
    /// Readable paths in a sandbox, in addition to the system.
    #[serde(default)]
    readable: Vec<PathBuf>,
}

/// The programs that the owner allows.
#[derive(Debug, Default, Args)]
pub struct ProgramArgs {
    /// The list of allowed programs, in TOML.
    #[arg(long, env = "MUSTER_HOST_PROGRAMS")]
    pub programs: Option<PathBuf>,
    /// Allow the program of a built-in profile, such as `opencode`, without a list: for the image whose reference is the
    /// profile's name. May be repeated.
    #[arg(long, value_name = "PROFILE")]
    pub allow: Vec<String>,
}

/// Locations of programs.
#[derive(Clone, Debug)]
pub struct Programs {
    list: Option<PathBuf>,
    /// Allowed profiles.
    allowed: Vec<String>,
    profiles: Profiles,
    shim: Program,
    agent: Result<Program, PathBuf>,
}

impl Programs {
    /// Finds the host's companions: subcommands in the program `muster`, otherwise programs next to the host.
    pub fn find(args: ProgramArgs) -> Result<Self, ProgramError> {
        let own = std::env::current_exe().map_err(ProgramError::Own)?;
        let shim = companion(&own, "shim", "muster-shim", "MUSTER_SHIM");
        let shim = shim.map_err(|beside| ProgramError::Missing {
            name: "muster-shim",
            beside,
            setting: "MUSTER_SHIM",
        })?;
        let agent = companion(&own, "agent", "muster-agent", "MUSTER_AGENT");
        let profiles = Profiles::read(None).map_err(ProgramError::Profiles)?;
        let found = Self { list: args.programs, allowed: args.allow, profiles, shim, agent };
        found.listed()?;
        found.check_allowed()?;
        Ok(found)
    }

    fn check_allowed(&self) -> Result<(), ProgramError> {
        let unknown = self.allowed.iter().find(|name| self.profiles.get(name).is_none());
        let Some(profile) = unknown.cloned() else { return Ok(()) };
        Err(ProgramError::NotBuiltIn { profile, known: self.known_profiles() })
    }

    /// The owner's entry for an image. The list is read each time, so an edit needs no restart.
    pub fn instead_of(&self, image: &str) -> Result<Option<Program>, ProgramError> {
        let listed = self.listed()?.images.remove(image);
        let says_nothing =
            |program: &Program| program.command.as_os_str().is_empty() && program.profile.is_none();
        if listed.as_ref().is_some_and(says_nothing) {
            return Err(ProgramError::NoCommand { list: self.list_location(), image: image.to_owned() });
        }
        Ok(listed)
    }

    /// The program of an image, which must be listed.
    pub fn of_image(&self, image: &str) -> Result<Program, ProgramError> {
        if let Some(program) = self.instead_of(image)? {
            return Ok(program);
        }
        if image == REFERENCE
            || image.strip_prefix(REFERENCE).is_some_and(|rest| rest.starts_with([':', '@']))
        {
            return self.agent.clone().map_err(|beside| ProgramError::Missing {
                name: "muster-agent",
                beside,
                setting: "MUSTER_AGENT",
            });
        }
        Err(ProgramError::NotListed { image: super::acp::short(image, 200), list: self.list_location() })
    }

    /// The program's profile: from the owner's list, or else the image's.
    pub fn profile_of<'a>(
        &'a self,
        program: &Program,
        image: &str,
        of_image: Option<&'a Profile>,
    ) -> Result<Option<&'a Profile>, ProgramError> {
        let Some(name) = &program.profile else { return Ok(of_image) };
        let found = self.profiles.get(name).map(|entry| &entry.wiring);
        let missing = || ProgramError::NoProfile {
            list: self.list_location(),
            profile: name.clone(),
            image: image.to_owned(),
            known: self.known_profiles(),
        };
        found.map(Some).ok_or_else(missing)
    }

    fn known_profiles(&self) -> String {
        let names: Vec<&str> = self.profiles.iter().map(|entry| entry.wiring.name.as_str()).collect();
        names.join(", ")
    }

    /// The file that the owner edits.
    fn list_location(&self) -> String {
        match &self.list {
            Some(list) => list.display().to_string(),
            None => "a list of programs, and give the list to the host with --programs".to_owned(),
        }
    }

    pub fn shim(&self) -> &Program {
        &self.shim
    }

    /// Readable paths of an MCP server's program in a sandbox: the owner's entry for its path, with its own file.
    /// Nothing for an unlisted one: naming a command must not open a file of this machine.
    pub fn readable_by_mcp(&self, command: &Path) -> Result<Vec<PathBuf>, ProgramError> {
        let listed = self.listed()?.mcp.remove(command);
        Ok(listed
            .into_iter()
            .flat_map(|listed| [vec![command.to_owned()], listed.readable].concat())
            .collect())
    }

    /// The error for an unlisted MCP server.
    pub fn not_listed_for_mcp(&self, command: PathBuf) -> ProgramError {
        ProgramError::McpNotListed { command, list: self.list_location() }
    }

    /// The list, and what is allowed beside it.
    fn listed(&self) -> Result<List, ProgramError> {
        let mut listed = self.list.as_deref().map_or_else(|| Ok(List::default()), read_list)?;
        for name in &self.allowed {
            let of_profile = Program { profile: Some(name.clone()), ..Program::default() };
            listed.images.entry(name.clone()).or_insert(of_profile);
        }
        Ok(listed)
    }
}

fn read_list(path: &Path) -> Result<List, ProgramError> {
    let at = |reason: String| ProgramError::List { path: path.to_owned(), reason };
    let text = fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
    toml::from_str(&text).map_err(|error| at(error.to_string()))
}

/// A companion, or its expected location.
fn companion(own: &Path, word: &str, name: &str, setting: &str) -> Result<Program, PathBuf> {
    if let Some(path) = std::env::var_os(setting) {
        return Ok(Program { command: path.into(), ..Program::default() });
    }
    if is_muster(own) {
        return Ok(Program { command: own.to_owned(), args: vec![word.to_owned()], ..Program::default() });
    }
    let beside = own.with_file_name(name);
    if beside.is_file() { Ok(Program { command: beside, ..Program::default() }) } else { Err(own.to_owned()) }
}

/// Whether this is `muster`, which has all programs built in.
fn is_muster(own: &Path) -> bool {
    own.file_stem().is_some_and(|stem| stem == "muster")
}

/// The static shim for containers, which runs in every image regardless of its libraries.
pub fn static_shim() -> Result<PathBuf, ProgramError> {
    static_companion("muster-shim", "MUSTER_SHIM")
}

/// The static reference agent, for an image with nothing else.
pub fn static_agent() -> Result<PathBuf, ProgramError> {
    static_companion("muster-agent", "MUSTER_AGENT")
}

fn static_companion(name: &'static str, setting: &'static str) -> Result<PathBuf, ProgramError> {
    let own = std::env::current_exe().map_err(ProgramError::Own)?;
    let given = std::env::var_os(setting).map(PathBuf::from);
    let found = find_static(&own, name, given);
    found.ok_or(ProgramError::NotStatic { name, beside: own, setting })
}

/// The given program, the host's own if that is `muster`, one next to it, or the one that the command in
/// [`ProgramError::NotStatic`] leaves: the first that is static. Under the companion's name `muster` is the companion.
fn find_static(own: &Path, name: &str, given: Option<PathBuf>) -> Option<PathBuf> {
    let itself = is_muster(own).then(|| own.to_owned());
    let built = format!("../static/{}-unknown-linux-gnu/debug/{name}", std::env::consts::ARCH);
    let beside = [own.with_file_name(name), own.with_file_name(built)];
    let mut all = given.into_iter().chain(itself).chain(beside);
    all.find(|path| is_static(path)).and_then(|path| path.canonicalize().ok())
}

/// Whether a file is a program without a loader, by its headers.
fn is_static(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    if read.is_err() || !head.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let number = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?) as usize);
    let table = || {
        let first = u64::from_le_bytes(head.get(32..40)?.try_into().ok()?) as usize;
        let (size, count) = (number(54)?, number(56)?);
        let kind = |index: usize| {
            let at = first + index * size;
            Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?))
        };
        (0..count).map(kind).collect::<Option<Vec<u32>>>()
    };
    // PT_INTERP, which names a loader.
    table().is_some_and(|kinds| !kinds.contains(&3))
}

/// A program's complete path, for agents.
pub fn absolute(command: &str) -> PathBuf {
    if command.contains('/') {
        return PathBuf::from(command);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(SYSTEM_PATH));
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(command));
    candidates.find(|candidate| candidate.is_file()).unwrap_or_else(|| command.into())
}

/// The default PATH.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(list: Option<PathBuf>) -> Programs {
        let agent = Ok(Program { command: "/muster-agent".into(), ..Program::default() });
        let profiles = Profiles::read(None).unwrap();
        Programs { list, allowed: Vec::new(), profiles, shim: Program::default(), agent }
    }

    #[test]
    fn a_builtin_profile_can_be_allowed_without_a_list() {
        let mut found = programs(None);
        assert!(found.of_image("opencode").is_err());
        found.allowed.push("opencode".to_owned());
        let program = found.of_image("opencode").unwrap();
        let profile = found.profile_of(&program, "opencode", None).unwrap();
        assert_eq!(profile.map(|profile| profile.name.as_str()), Some("opencode"));
        assert!(found.of_image("opencode:1").is_err() && found.check_allowed().is_ok());
        // The list knows better.
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("programs.toml");
        fs::write(&list, "[opencode]\ncommand = \"/opt/opencode\"\n").unwrap();
        found.list = Some(list);
        assert_eq!(found.of_image("opencode").unwrap().command, Path::new("/opt/opencode"));
        found.allowed.push("opencod".to_owned());
        let error = found.check_allowed().unwrap_err().to_string();
        assert!(error.contains("\"opencod\"") && error.contains(", opencode"), "{error}");
    }

    #[test]
    fn the_reference_agent_needs_no_list_and_others_do() {
        let found = programs(None);
        for image in ["muster/agent", "muster/agent:1", "muster/agent@sha256:0"] {
            assert_eq!(found.of_image(image).unwrap().command, Path::new("/muster-agent"));
        }
        for image in ["muster/agents", "other", ""] {
            let error = found.of_image(image).unwrap_err().to_string();
            assert!(error.contains("--programs"), "{error}");
        }
    }

    #[test]
    fn a_program_that_needs_a_loader_is_not_static() {
        assert!(!is_static(&std::env::current_exe().unwrap()) || cfg!(target_feature = "crt-static"));
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(!is_static(&script) && !is_static(dir.path()) && !is_static(Path::new("/no/such")));
    }

    #[test]
    fn a_static_muster_is_its_own_companion() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let path = |name: &str| dir.join(name);
        // The smallest file that passes: a header without a table.
        let program = [b"\x7fELF\x02\x01".as_slice(), &[0; 58]].concat();
        fs::write(path("muster-shim"), &program).unwrap();
        fs::write(path("muster"), "#!/bin/sh\n").unwrap();
        let of = |own: &str, given| find_static(&path(own), "muster-shim", given);
        assert_eq!(of("muster", None), Some(path("muster-shim")), "this muster is not static");
        fs::write(path("muster"), &program).unwrap();
        assert_eq!(of("muster", None), Some(path("muster")));
        assert_eq!(of("muster-host", None), Some(path("muster-shim")), "that has no shim built in");
        fs::write(path("given"), &program).unwrap();
        assert_eq!(of("muster", Some(path("given"))), Some(path("given")));
        assert_eq!(of("muster", Some(path("missing"))), Some(path("muster")));
    }

    #[test]
    fn the_list_is_read_each_time_and_says_what_is_wrong_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("programs.toml");
        let found = programs(Some(list.clone()));
        fs::write(&list, "[\"a/b:1\"]\ncommand = \"/bin/b\"\nargs = [\"acp\"]\n").unwrap();
        let program = found.of_image("a/b:1").unwrap();
        assert_eq!(
            (program.command.as_path(), program.args.as_slice()),
            (Path::new("/bin/b"), &["acp".to_owned()][..])
        );
        let error = found.of_image("a/b:2").unwrap_err();
        assert!(error.to_string().contains(list.to_str().unwrap()), "{error}");
        fs::write(&list, "[\"a/b:1\"]\ncomand = \"/bin/b\"\n").unwrap();
        let error = found.of_image("a/b:1").unwrap_err().to_string();
        assert!(error.contains("comand"), "{error}");
    }

    #[test]
    fn an_mcp_server_reads_what_is_listed_for_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("programs.toml");
        let found = programs(Some(list.clone()));
        let text = "[a]\ncommand = \"/a\"\n[mcp.\"/opt/tools/bin/tools\"]\nreadable = [\"/opt/tools\"]\n";
        fs::write(&list, text).unwrap();
        let readable = |command: &str| found.readable_by_mcp(Path::new(command)).unwrap();
        assert_eq!(
            readable("/opt/tools/bin/tools"),
            ["/opt/tools/bin/tools", "/opt/tools"].map(PathBuf::from)
        );
        for other in ["/opt/tools/bin/../bin/tools", "/opt/tools/bin", "/a", "/etc/shadow", "tools"] {
            assert!(readable(other).is_empty(), "{other}");
        }
        assert!(found.of_image("mcp").is_err(), "not an image");
        fs::write(&list, "[mcp.\"/opt/x\"]\nwritable = [\"/\"]\n").unwrap();
        assert!(found.readable_by_mcp(Path::new("/opt/x")).unwrap_err().to_string().contains("writable"));
    }

    #[test]
    fn an_entry_may_name_a_profile_instead_of_a_command() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("programs.toml");
        let found = programs(Some(list.clone()));
        fs::write(
            &list,
            "[a]\nprofile = \"opencode\"\n[b]\nprofile = \"nope\"\n[c]\n[d]\ncommand = \"/d\"\n",
        )
        .unwrap();
        let of = |image: &str, profile| found.profile_of(&found.of_image(image)?, image, profile);
        let images = Profile { name: "images".to_owned(), ..Profile::default() };
        assert_eq!(of("a", Some(&images)).unwrap().unwrap().name, "opencode", "the owner's wins");
        assert_eq!(of("d", Some(&images)).unwrap().unwrap().name, "images");
        assert_eq!(of("d", None).unwrap(), None);
        let error = of("b", None).unwrap_err().to_string();
        assert!(error.contains("\"nope\"") && error.contains("opencode"), "{error}");
        assert!(matches!(of("c", None), Err(ProgramError::NoCommand { .. })));
    }
}
