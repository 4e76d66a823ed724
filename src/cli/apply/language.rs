//! The languages of files, and which of them a file is in.

use super::{
    toml,
    tree::{Mistake, Node},
    yaml,
};

/// A language of files.
#[derive(Clone, Copy, Debug)]
pub enum Language {
    /// Also JSON, which is a part of it.
    Yaml,
    Toml,
}

impl Language {
    /// The language that a file's name ends with.
    pub fn of(extension: &str) -> Option<Self> {
        match extension {
            "yaml" | "yml" | "json" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }

    /// The documents of a text.
    pub fn read(self, text: &str) -> Result<Vec<Node>, Mistake> {
        match self {
            Self::Yaml => yaml::read(text),
            Self::Toml => toml::read(text).map(|document| vec![document]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "\
agents:
  - name: a
    cpu_override: 0.5
    skills: [x, y]

settings:
  trace_content: true
";
    const TOML: &str = "\
[[agents]]
name = 'a'
cpu_override = 0.5
skills = [
  'x', 'y']

[settings]
trace_content = true
";

    #[test]
    fn both_languages_have_the_same_values_and_their_lines() {
        let yaml = Language::Yaml.read(YAML).unwrap().remove(0);
        let toml = Language::Toml.read(TOML).unwrap().remove(0);
        assert_eq!(yaml.value(), toml.value());
        for (pointer, in_yaml, in_toml) in [
            ("/agents/0/name", 2, 2),
            ("/agents/0/cpu_override", 3, 3),
            ("/agents/0/skills/1", 4, 5),
            ("/settings/trace_content", 7, 8),
            ("/settings/absent/deep", 6, 7),
        ] {
            assert_eq!((yaml.line_of(pointer), toml.line_of(pointer)), (in_yaml, in_toml), "{pointer}");
        }
        assert_eq!(Language::Yaml.read(&yaml.value().to_string()).unwrap()[0].value(), yaml.value());
    }

    #[test]
    fn a_mistake_of_either_language_has_its_line() {
        let lines = |language: Language, text: &str| language.read(text).map(|_| ()).unwrap_err().line;
        assert_eq!(lines(Language::Toml, "a = 1\nb = \n"), 2);
        assert_eq!(lines(Language::Toml, "a = 1\nb = 2\na = 3\n"), 3);
        assert_eq!(lines(Language::Toml, "a = nan"), 1);
        assert!(lines(Language::Yaml, "a: 1\nb: [1, 2\nc: 3\n") > 1);
        assert_eq!(lines(Language::Yaml, "a: 1\nb: 2\na: 3\n"), 3);
    }
}
