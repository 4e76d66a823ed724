//! `host.toml` in the host's folder: the owner's permissions, independent of the control plane. The host never
//! writes it.
//!
//! ```toml
//! allow_net = ["10.20.0.0/16"]   # networks that agents may reach in addition to the public internet, if the organization lists a host there
//! ```

use std::{fmt, io, path::PathBuf};

use ipnet::IpNet;
use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

use crate::folder::Folder;

const FILE: &str = "host.toml";

/// The owner's permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Networks in addition to the public internet.
    #[serde(deserialize_with = "networks")]
    pub allow_net: Vec<IpNet>,
}

/// Parses a network.
pub fn network(text: &str) -> Result<IpNet, String> {
    text.parse().map_err(|_| {
        format!(
            "{text:?} is not a network. One is an address, `/`, and the length of its prefix: 10.20.0.0/16 (0 to 32), or \
             fd00::/8 (0 to 128)"
        )
    })
}

fn networks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IpNet>, D::Error> {
    let all = Vec::<Network>::deserialize(from)?;
    Ok(all.into_iter().map(|Network(network)| network).collect())
}

/// A network, parsed by a visitor, so that errors name the position in the file.
struct Network(IpNet);

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Network;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a network in quotes, such as \"10.20.0.0/16\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Network, E> {
        network(text).map(Network).map_err(|why| E::custom(format!("allow_net: {why}.")))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{path} can't be used: {reason}")]
pub struct ConfigError {
    path: PathBuf,
    reason: String,
}

impl Config {
    /// Reads the folder's file, which is optional.
    pub fn read(folder: &Folder) -> Result<Self, ConfigError> {
        let path = folder.root().join(FILE);
        let failed = |reason: String| ConfigError { path: path.clone(), reason };
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                toml::from_str(&text).map_err(|error| failed(error.to_string().trim_end().to_owned()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_says_what_is_wrong_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("h")).unwrap();
        assert_eq!(Config::read(&folder).unwrap(), Config::default());
        folder.create().unwrap();
        let write = |text: &str| std::fs::write(folder.root().join(FILE), text).unwrap();
        write("allow_net = [\"10.20.0.0/16\", \"fd00::/8\"]");
        assert_eq!(Config::read(&folder).unwrap().allow_net.len(), 2);
        write("allow_net = [\n  \"10.20.0.0/16\",\n  \"127.0.0.1/33\",\n]");
        let said = Config::read(&folder).unwrap_err().to_string();
        assert!(
            said.contains("line 3, column 3") && said.contains("allow_net: \"127.0.0.1/33\" is not"),
            "{said}"
        );
        assert!(said.ends_with("(0 to 128)."), "{said}");
        for wrong in ["allow_net = [\"ten\"]", "allow_nets = []"] {
            write(wrong);
            assert!(Config::read(&folder).unwrap_err().to_string().contains("host.toml"), "{wrong}");
        }
    }
}
