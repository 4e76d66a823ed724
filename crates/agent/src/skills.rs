//! Skills: instructions that the host puts into `<home>/skills/<name>/SKILL.md`.
//!
//! A file begins with a header between two lines of `---`, in which `name` and `description` are single lines; a value
//! in double quotes is a JSON string. Skills are read at the beginning of each turn, because a host can change them at
//! any time.

use std::path::Path;

use tokio::{fs, io::AsyncReadExt};

use crate::bounds::{HEAD, LIST};

#[derive(Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// When to use the skill.
    pub description: String,
    /// Relative to the home.
    pub path: String,
}

/// The skills in a home by name, without those whose file can't be read.
pub async fn read_skills(home: &Path) -> Vec<Skill> {
    let mut skills = Vec::new();
    let Ok(mut folders) = fs::read_dir(home.join("skills")).await else { return skills };
    while let Ok(Some(folder)) = folders.next_entry().await {
        let mut text = Vec::new();
        let Ok(file) = fs::File::open(folder.path().join("SKILL.md")).await else { continue };
        if file.take(HEAD as u64).read_to_end(&mut text).await.is_ok() {
            skills.push(parse_skill(&folder.file_name().to_string_lossy(), &String::from_utf8_lossy(&text)));
        }
        if skills.len() == LIST {
            break;
        }
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

fn parse_skill(folder: &str, text: &str) -> Skill {
    let header = text.strip_prefix("---\n").and_then(|rest| rest.split("\n---").next()).unwrap_or_default();
    let value = |key: &str| {
        let line = header.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?.trim();
        Some(serde_json::from_str(line).unwrap_or_else(|_| line.to_owned()))
    };
    Skill {
        name: value("name").unwrap_or_else(|| folder.to_owned()),
        description: value("description").unwrap_or_default(),
        path: format!("skills/{folder}/SKILL.md"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_named_by_its_header_or_folder() {
        let skill =
            parse_skill("f", "---\nname: refunds\ndescription: \"Say \\\"no\\\"\"\n---\n\nname: other\n");
        assert_eq!((skill.name.as_str(), skill.path.as_str()), ("refunds", "skills/f/SKILL.md"));
        assert_eq!(skill.description, "Say \"no\"");
        let bare = parse_skill("f", "Just text");
        assert_eq!((bare.name.as_str(), bare.description.as_str()), ("f", ""));
    }
}
