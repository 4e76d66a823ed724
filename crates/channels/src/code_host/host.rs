//! The differences between code hosts, as data.

use url::Url;

use crate::contract::Software;

/// What differs between hosts in calls.
pub struct Host {
    pub name: &'static str,
    pub software: Software,
    /// The path of its API below the host's address.
    pub api: &'static str,
    /// Precedes a repository in paths.
    pub root: &'static str,
    /// Names the event of a request.
    pub event_header: &'static str,
    /// What issues are called in paths, and what pull requests are called.
    pub issues: [&'static str; 2],
    /// What comments are called in paths.
    pub comments: &'static str,
    /// What reactions are called in paths, and their field.
    pub reactions: [&'static str; 2],
    /// The field of a reaction in [`EMOJI`].
    pub emoji: usize,
    /// The query for comments since a time, which follows.
    pub since: &'static str,
}

pub static GITHUB: Host = Host {
    name: "GitHub",
    software: Software::Github,
    api: "",
    root: "repos",
    event_header: "x-github-event",
    issues: ["issues", "issues"],
    comments: "comments",
    reactions: ["reactions", "content"],
    emoji: 1,
    since: "per_page=100&since=",
};

static GITEA: Host = Host {
    name: "Gitea",
    software: Software::Gitea,
    api: "api/v1/",
    event_header: "x-gitea-event",
    since: "since=",
    ..GITHUB
};

static GITLAB: Host = Host {
    name: "GitLab",
    software: Software::Gitlab,
    api: "api/v4/",
    root: "projects",
    event_header: "x-gitlab-event",
    issues: ["issues", "merge_requests"],
    comments: "notes",
    reactions: ["award_emoji", "name"],
    emoji: 2,
    // It takes no time, but lists the latest first.
    since: "per_page=100&order_by=created_at&sort=desc&from=",
};

/// Emoji with their names at GitHub and Gitea, and at GitLab. GitHub has no others.
pub static EMOJI: [[&str; 3]; 8] = [
    ["👍", "+1", "thumbsup"],
    ["👎", "-1", "thumbsdown"],
    ["😄", "laugh", "smile"],
    ["🎉", "hooray", "tada"],
    ["😕", "confused", "confused"],
    ["❤", "heart", "heart"],
    ["🚀", "rocket", "rocket"],
    ["👀", "eyes", "eyes"],
];

impl Host {
    pub fn of(software: Software) -> &'static Self {
        match software {
            Software::Gitea => &GITEA,
            Software::Github => &GITHUB,
            Software::Gitlab => &GITLAB,
        }
    }

    /// The address of its API.
    pub fn api_url(&self, host: &Url) -> Url {
        host.join(self.api).unwrap_or_else(|_| host.clone())
    }

    /// A repository in paths: GitLab takes it as one segment.
    pub fn repository(&self, repo: &str) -> String {
        let repo = if self.software == Software::Gitlab { repo.replace('/', "%2F") } else { repo.to_owned() };
        format!("{}/{repo}", self.root)
    }

    /// The host's name of an emoji.
    pub fn emoji(&self, emoji: &str) -> Option<&'static str> {
        let emoji = emoji.trim_matches(':').trim_end_matches('\u{fe0f}');
        EMOJI.iter().find(|names| names.contains(&emoji)).map(|names| names[self.emoji])
    }
}

/// A place for answers: `owner/name#12`, with `!` for GitLab's merge requests and `~` for discussions, and after `/` the
/// thread in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    pub repo: &'a str,
    pub mark: char,
    pub number: u64,
    pub thread: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub fn parse(target: &'a str) -> Option<Self> {
        let at = target.find(['#', '!', '~'])?;
        let (repo, rest) = target.split_at(at);
        let mark = rest.chars().next()?;
        let (number, thread) = match rest[1..].split_once('/') {
            Some((number, thread)) => (number, Some(thread)),
            None => (&rest[1..], None),
        };
        let is_safe = is_repository(repo) && thread.is_none_or(is_word);
        Some(Self { repo, mark, number: number.parse().ok()?, thread }).filter(|_| is_safe)
    }

    /// The path of its comments.
    pub fn comments(&self, host: &Host) -> String {
        let [issues, pulls] = host.issues;
        let kind = if self.mark == '!' { pulls } else { issues };
        let (repo, number) = (host.repository(self.repo), self.number);
        match (self.thread, host.software) {
            (Some(thread), Software::Github) => format!("{repo}/pulls/{number}/comments/{thread}/replies"),
            (Some(thread), Software::Gitlab) => format!("{repo}/{kind}/{number}/discussions/{thread}/notes"),
            _ => format!("{repo}/{kind}/{number}/{}", host.comments),
        }
    }

    /// The path of all comments, among them those of its thread.
    pub fn all_comments(&self, host: &Host) -> String {
        match (self.thread, host.software) {
            (Some(_), Software::Github) => {
                format!("{}/pulls/{}/comments", host.repository(self.repo), self.number)
            }
            _ => Target { thread: None, ..*self }.comments(host),
        }
    }

    /// The vendor id of a comment: its path below the host's root.
    pub fn comment_id(&self, host: &Host, id: u64) -> String {
        let path = match (self.thread, host.software) {
            (_, Software::Gitlab) => format!("{}/{id}", Target { thread: None, ..*self }.comments(host)),
            (Some(_), Software::Github) => format!("{}/pulls/comments/{id}", host.repository(self.repo)),
            _ => format!("{}/issues/comments/{id}", host.repository(self.repo)),
        };
        path[host.root.len() + 1..].to_owned()
    }
}

/// Whether this is `owner/name`, also with groups before it.
pub fn is_repository(repo: &str) -> bool {
    repo.contains('/') && repo.split('/').all(|word| is_word(word) && !matches!(word, "." | ".."))
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte))
}

/// Whether this is a path to a comment or an issue.
pub fn is_path(path: &str) -> bool {
    path.split('/').all(|word| is_word(&word.replace("%2F", "-")) && !matches!(word, "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_paths_at_each_host() {
        let path = |software, target| Target::parse(target).map(|place| place.comments(Host::of(software)));
        let (gitea, github, gitlab) = (Software::Gitea, Software::Github, Software::Gitlab);
        for (software, target, expected) in [
            (github, "a/b#1", "repos/a/b/issues/1/comments"),
            (github, "a/b#1/7", "repos/a/b/pulls/1/comments/7/replies"),
            (gitea, "a/b#1", "repos/a/b/issues/1/comments"),
            (gitlab, "a/g/b#1", "projects/a%2Fg%2Fb/issues/1/notes"),
            (gitlab, "a/b!1/0f", "projects/a%2Fb/merge_requests/1/discussions/0f/notes"),
        ] {
            assert_eq!(path(software, target).as_deref(), Some(expected));
        }
        for wrong in ["a/b", "a/..#1", "a/b#x", "a#1", "a/b#1/../2", "a/b?c#1", "a/b#1/"] {
            assert_eq!(Target::parse(wrong), None, "{wrong}");
        }
        let place = Target::parse("a/b!1/0f").unwrap();
        assert_eq!(place.comment_id(Host::of(gitlab), 5), "a%2Fb/merge_requests/1/notes/5");
        let place = Target::parse("a/b#1/7").unwrap();
        assert_eq!(place.comment_id(Host::of(github), 5), "a/b/pulls/comments/5");
    }

    #[test]
    fn emoji_have_each_hosts_names() {
        let of = |software, emoji| Host::of(software).emoji(emoji);
        assert_eq!(of(Software::Github, "🎉"), Some("hooray"));
        assert_eq!(of(Software::Gitlab, "🎉"), Some("tada"));
        assert_eq!(of(Software::Gitea, ":thumbsup:"), Some("+1"));
        assert_eq!(of(Software::Github, "❤\u{fe0f}"), Some("heart"));
        assert_eq!(of(Software::Github, "../x"), None);
    }
}
