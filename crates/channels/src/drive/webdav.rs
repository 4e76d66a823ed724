//! Folders at a WebDAV server: Nextcloud, ownCloud, Apache and others.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{
    StatusCode,
    header::{IF_MATCH, IF_NONE_MATCH},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use secrecy::SecretString;
use url::Url;

use super::{
    files::{File, check_count, is_temporary},
    own::{is_own, own_name},
};
use crate::{
    bounds,
    contract::{Choice, Failure, Receipt, Spool},
    dav::{DavClient, Resource},
    network::parse_date,
};

/// The properties of files and folders.
const PROPERTIES: &str =
    "<d:resourcetype/><d:getetag/><d:getcontentlength/><d:getcontenttype/><d:getlastmodified/>";

/// Escaped characters of a path segment.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A folder at a WebDAV server.
pub struct WebDav {
    client: DavClient,
    /// The path of the folder below the server's address.
    folder: String,
    /// Makes the names of our files.
    key: SecretString,
}

impl WebDav {
    pub fn new(client: DavClient, folder: String, key: SecretString) -> Self {
        Self { client, folder, key }
    }

    pub fn url(&self) -> &str {
        &self.client.url
    }

    /// Checks the login, and that the folder exists.
    pub async fn check(&self) -> Result<(), Failure> {
        let listed = self.list(&self.folder_url(&self.folder)?, 0).await?;
        let has_folder = listed.iter().any(is_folder);
        if has_folder { Ok(()) } else { Err(Failure::Refused("The path is that of a file.".into())) }
    }

    /// All files of the folder and of those below it. Folders are listed one by one: few servers allow to list all at
    /// once, and none says how many there are.
    pub async fn files(&self) -> Result<Vec<File>, Failure> {
        let mut folders = VecDeque::from([(String::new(), self.folder_url(&self.folder)?)]);
        let (mut files, mut entries) = (Vec::new(), 0);
        while let Some((path, url)) = folders.pop_front() {
            let listed = match self.list(&url, 1).await {
                // Removed meanwhile, or closed to this account.
                Err(Failure::TargetGone(_) | Failure::Refused(_)) if !path.is_empty() => continue,
                listed => listed?,
            };
            for (name, resource) in children(&url, listed)? {
                if is_temporary(&name) {
                    continue;
                }
                let file = self.file(&path, name, &resource);
                entries += file.weight();
                check_count(entries)?;
                if is_folder(&resource) {
                    let url = as_folder(with_segments(url.clone(), [file.name.as_str()]))?;
                    folders.push_back((file.id, url));
                } else {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }

    /// The folders in a folder.
    pub async fn folders(&self, parent: &str) -> Result<Vec<Choice>, Failure> {
        let url = self.folder_url(parent)?;
        let listed = self.list(&url, 1).await?;
        let folders = children(&url, listed)?.into_iter().filter(|(_, resource)| is_folder(resource));
        let choice = |(name, _): (String, Resource)| Choice {
            id: if parent.is_empty() {
                name.clone()
            } else {
                format!("{}/{name}", parent.trim_end_matches('/'))
            },
            name,
        };
        Ok(folders.map(choice).take(bounds::LIST).collect())
    }

    /// Downloads a file.
    pub async fn download(&self, path: &str, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        let url = with_segments(self.folder_url(&self.folder)?, path.split('/'));
        self.client.download(url.as_str(), to, most).await
    }

    /// Writes a file of ours, once for each delivery. Never replaces another one.
    pub async fn put(
        &self,
        id: &str,
        name: &str,
        media_type: &str,
        content: Bytes,
    ) -> Result<Receipt, Failure> {
        let (name, client) = (own_name(&self.key, id, name), &self.client);
        let url = with_segments(self.folder_url(&self.folder)?, [name.as_str()]);
        let mut answer = client.put(url.as_str(), (IF_NONE_MATCH, "*"), media_type, content.clone()).await?;
        if answer.status == StatusCode::PRECONDITION_FAILED {
            // An earlier attempt wrote it, or a part of it.
            let listed = self.list(&url, 0).await?;
            let property = |path: &str| listed.first().and_then(|written| written.property(path));
            if property("d:getcontentlength") == Some(&*content.len().to_string()) {
                return Ok(Receipt { vendor_id: Some(name), target: None });
            }
            let etag = property("d:getetag").unwrap_or("*");
            answer = client.put(url.as_str(), (IF_MATCH, etag), media_type, content).await?;
        }
        client.done(&answer)?;
        Ok(Receipt { vendor_id: Some(name), target: None })
    }

    /// A file or a folder in the folder `path`.
    fn file(&self, path: &str, name: String, resource: &Resource) -> File {
        let id = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        let length = resource.property("d:getcontentlength");
        let modified = resource.property("d:getlastmodified");
        // Apache calls the ETag of a file weak for a second.
        let etag = resource.property("d:getetag").map(|etag| etag.trim_start_matches("W/").to_owned());
        File {
            version: etag.unwrap_or_else(|| format!("{length:?} {modified:?}")),
            media_type: resource
                .property("d:getcontenttype")
                .unwrap_or("application/octet-stream")
                .to_owned(),
            size: length.and_then(|length| length.parse().ok()),
            modified: modified.and_then(parse_date),
            author: None,
            is_ours: is_own(&self.key, &name),
            handle: Some(id.clone()),
            link: None,
            target: name.clone(),
            id,
            name,
        }
    }

    async fn list(&self, url: &Url, depth: u8) -> Result<Vec<Resource>, Failure> {
        Ok(self.client.propfind(url.as_str(), depth, PROPERTIES).await?.resources)
    }

    fn folder_url(&self, path: &str) -> Result<Url, Failure> {
        as_folder(with_segments(self.client.resolve("")?, path.split('/')))
    }
}

fn is_folder(resource: &Resource) -> bool {
    resource.has("d:resourcetype/d:collection")
}

/// The resources directly in a folder, with their names. A listing names the folder itself, too: one of another folder must
/// not pass for an empty one.
fn children(folder: &Url, listed: Vec<Resource>) -> Result<Vec<(String, Resource)>, Failure> {
    let above = segments(folder).ok_or_else(unusable)?;
    let (mut children, mut is_of_folder) = (Vec::new(), false);
    for resource in listed {
        let Some(mut path) = folder.join(&resource.href).ok().and_then(|url| segments(&url)) else {
            continue;
        };
        is_of_folder |= path == above;
        let Some(name) = path.pop() else { continue };
        if path == above && !name.contains('/') {
            children.push((name, resource));
        }
    }
    if is_of_folder { Ok(children) } else { Err(Failure::Refused("The server lists another folder.".into())) }
}

/// The decoded path.
fn segments(url: &Url) -> Option<Vec<String>> {
    let segments = url.path_segments()?.filter(|segment| !segment.is_empty());
    segments.map(|segment| Some(percent_decode_str(segment).decode_utf8().ok()?.into_owned())).collect()
}

/// Goes down. `.` and `..` lead nowhere. All else is escaped here: `Url` drops tabs and line breaks, so that the name of a
/// folder, a tab and `..`, would lead up.
fn with_segments<'a>(mut url: Url, path: impl IntoIterator<Item = &'a str>) -> Url {
    let base = url.path();
    let mut whole = base.strip_suffix('/').unwrap_or(base).to_owned();
    for segment in path.into_iter().filter(|segment| !matches!(*segment, "" | "." | "..")) {
        whole.push('/');
        whole.extend(utf8_percent_encode(segment, ESCAPED));
    }
    url.set_path(&whole);
    url
}

/// Some servers redirect the address of a folder without a slash.
fn as_folder(mut url: Url) -> Result<Url, Failure> {
    url.path_segments_mut().map_err(|()| unusable())?.pop_if_empty().push("");
    Ok(url)
}

fn unusable() -> Failure {
    Failure::Refused("The WebDAV server's address can't be used.".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dav::Multistatus;

    #[test]
    fn only_what_is_in_the_folder_is_listed() {
        let folder: Url = "https://cloud.test/dav/Shared%20files/".parse().unwrap();
        let hrefs = [
            "/dav/Shared%20files/",
            "/dav/Shared%20files/a%20b.txt",
            "https://cloud.test/dav/Shared files/c/",
            "d.txt",
            "/dav/elsewhere.txt",
            "/dav/Shared%20files/../up.txt",
            "/dav/Shared%20files/e%2Ff.txt",
            "/dav/Shared%20files/g/deep.txt",
            "/dav/Shared%20files/%FF",
        ];
        let listed = |hrefs: &[&str]| {
            let responses = hrefs.iter().map(|href| format!("<response><href>{href}</href></response>"));
            let xml = format!("<multistatus xmlns=\"DAV:\">{}</multistatus>", responses.collect::<String>());
            Multistatus::read(xml.as_bytes()).unwrap().resources
        };
        let names = children(&folder, listed(&hrefs)).unwrap().into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["a b.txt", "c", "d.txt"]);
        assert!(children(&folder, listed(&hrefs[1..])).is_err());
        assert!(children(&folder, Vec::new()).is_err());
    }

    #[test]
    fn paths_stay_below_the_address() {
        let base = || "https://cloud.test/dav".parse::<Url>().unwrap();
        let below = |path: &str| with_segments(base(), path.split('/')).to_string();
        assert_eq!(below("/Shared files//2026/"), "https://cloud.test/dav/Shared%20files/2026");
        assert_eq!(below("../../etc?x#y"), "https://cloud.test/dav/etc%3Fx%23y");
        assert_eq!(below("a\tb/\t../.\n./%2e."), "https://cloud.test/dav/a%09b/%09../.%0A./%252e.");
        assert_eq!(as_folder(base()).unwrap().as_str(), "https://cloud.test/dav/");
    }
}
