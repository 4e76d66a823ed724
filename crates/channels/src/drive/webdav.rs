//! WebDAV (RFC 4918): Nextcloud, ownCloud, Apache and others. The server's address is a tenant's, so each call is guarded.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH},
};
use jiff::{Timestamp, fmt::rfc2822};
use percent_encoding::percent_decode_str;
use reqwest::RequestBuilder;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{
    files::{File, check_count, is_temporary},
    own::{is_own, own_name},
};
use crate::{
    bounds,
    contract::{Cause, Failure, Folder, Receipt, Scope, Spool},
    dav::listing::{Item, PROPFIND, read_listing},
    network::{Guard, HttpResponse, Network},
};

/// A folder at a WebDAV server.
pub struct WebDav {
    guard: Guard,
    clock: fn() -> Timestamp,
    url: String,
    user: String,
    pass: SecretString,
    /// The path of the folder below the URL.
    folder: String,
    /// Makes the names of our files.
    key: SecretString,
}

impl WebDav {
    pub fn new(
        network: &Network,
        login: (String, String, SecretString),
        folder: String,
        key: SecretString,
    ) -> Self {
        let (url, user, pass) = login;
        Self { guard: network.guard.clone(), clock: network.clock, url, user, pass, folder, key }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Checks the login, and that the folder exists.
    pub async fn check(&self) -> Result<(), Failure> {
        let listed = self.list(&self.folder_url(&self.folder)?, "0").await?;
        let is_folder = listed.iter().any(|item| item.is_folder);
        if is_folder { Ok(()) } else { Err(Failure::Refused("The path is that of a file.".into())) }
    }

    /// All files of the folder and of those below it. Folders are listed one by one: few servers allow to list all at
    /// once, and none says how many there are.
    pub async fn files(&self) -> Result<Vec<File>, Failure> {
        let mut folders = VecDeque::from([(Vec::<String>::new(), self.folder_url(&self.folder)?)]);
        let (mut files, mut entries) = (Vec::new(), 0);
        while let Some((path, url)) = folders.pop_front() {
            let listed = match self.list(&url, "1").await {
                // Removed meanwhile.
                Err(Failure::TargetGone(_)) if !path.is_empty() => continue,
                listed => listed?,
            };
            for (name, item) in children(&url, listed)? {
                if is_temporary(&name) {
                    continue;
                }
                entries += 1;
                check_count(entries)?;
                let child = [&path[..], &[name]].concat();
                if item.is_folder {
                    let url = with_segments(url.clone(), child.last().into_iter().map(String::as_str))?;
                    folders.push_back((child, as_folder(url)?));
                } else {
                    files.push(self.file(&child, item));
                }
            }
        }
        Ok(files)
    }

    /// The folders in a folder.
    pub async fn folders(&self, parent: &str) -> Result<Vec<Folder>, Failure> {
        let url = self.folder_url(parent)?;
        let listed = self.list(&url, "1").await?;
        let folders = children(&url, listed)?.into_iter().filter(|(_, item)| item.is_folder);
        let folder = |(name, _): (String, Item)| Folder {
            id: if parent.is_empty() {
                name.clone()
            } else {
                format!("{}/{name}", parent.trim_end_matches('/'))
            },
            name,
        };
        Ok(folders.map(folder).take(bounds::LIST).collect())
    }

    /// Downloads a file.
    pub async fn download(&self, path: &str, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        let url = with_segments(self.folder_url(&self.folder)?, path.split('/'))?;
        let request = self.request(Method::GET, url).timeout(bounds::TRANSFER);
        let request = request.build().map_err(|_| unusable())?;
        self.guard.check_encrypted(request.url()).await?;
        self.guard.download(request, to, most).await
    }

    /// Writes a file of ours, once for each delivery. Never replaces another one.
    pub async fn put(
        &self,
        id: &str,
        name: &str,
        media_type: &str,
        content: Bytes,
    ) -> Result<Receipt, Failure> {
        let name = own_name(&self.key, id, name);
        let url = with_segments(self.folder_url(&self.folder)?, [name.as_str()])?;
        let put = |condition: HeaderName, value: &str| {
            let request = self.request(Method::PUT, url.clone()).header(condition, value);
            request.header(CONTENT_TYPE, media_type).timeout(bounds::TRANSFER).body(content.clone())
        };
        let answer = self.call(put(IF_NONE_MATCH, "*")).await?;
        if answer.status == StatusCode::PRECONDITION_FAILED {
            // An earlier attempt wrote it, or a part of it.
            let written = self.list(&url, "0").await?.into_iter().next().unwrap_or_default();
            if written.length != Some(content.len() as u64) {
                let etag = written.etag.unwrap_or_else(|| "*".to_owned());
                self.read(&self.call(put(IF_MATCH, &etag)).await?)?;
            }
        } else {
            self.read(&answer)?;
        }
        Ok(Receipt { vendor_id: Some(name), target: None })
    }

    fn file(&self, path: &[String], item: Item) -> File {
        let (id, name) = (path.join("/"), path.last().cloned().unwrap_or_default());
        let modified = item.modified.as_deref().and_then(|date| rfc2822::parse(date).ok());
        // Apache calls the ETag of a file weak for a second.
        let etag = item.etag.map(|etag| etag.trim_start_matches("W/").to_owned());
        let version = etag.unwrap_or_else(|| format!("{:?} {:?}", item.length, item.modified));
        File {
            version,
            media_type: item.media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            size: item.length,
            modified: modified.map(|date| date.timestamp()),
            author: None,
            is_ours: is_own(&self.key, &name),
            handle: Some(id.clone()),
            link: None,
            target: name.clone(),
            id,
            name,
        }
    }

    async fn list(&self, url: &Url, depth: &'static str) -> Result<Vec<Item>, Failure> {
        let propfind = Method::from_bytes(b"PROPFIND").map_err(|_| unusable())?;
        let request = self.request(propfind, url.clone()).header("depth", depth);
        let answer = self.call(request.header(CONTENT_TYPE, "application/xml").body(PROPFIND)).await?;
        self.read(&answer)?;
        read_listing(&answer.body).map_err(Failure::Refused)
    }

    fn folder_url(&self, path: &str) -> Result<Url, Failure> {
        as_folder(with_segments(self.guard.check(&self.url)?, path.split('/'))?)
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.guard.http().request(method, url).basic_auth(&self.user, Some(self.pass.expose_secret()))
    }

    async fn call(&self, request: RequestBuilder) -> Result<HttpResponse, Failure> {
        let request = request.build().map_err(|_| unusable())?;
        self.guard.check_encrypted(request.url()).await?;
        self.guard.call_up_to(request, 8 << 20).await
    }

    fn read(&self, answer: &HttpResponse) -> Result<(), Failure> {
        let status = answer.status.as_u16();
        let cause = |why: &str| Cause::from(format!("The WebDAV server {why} (status {status})."));
        Err(match status {
            200..300 => return Ok(()),
            300..400 => Failure::Refused(cause("is at another address")),
            401 => Failure::Credentials(cause("does not accept the user and password")),
            404 | 409 | 410 => Failure::TargetGone(cause("does not have this file or folder")),
            // Locked; no space is left.
            423 | 507 => Failure::NotSent(cause("takes no file at the moment")),
            429 | 503 => Failure::RateLimited {
                wait: answer.retry_after((self.clock)()).unwrap_or(bounds::RETRY),
                scope: Scope::Channel,
                cause: cause("asks to wait"),
            },
            400..500 => Failure::Refused(cause("refuses this")),
            _ => Failure::Unknown(cause("failed")),
        })
    }
}

/// The items directly in a folder, with their names. A listing names the folder itself, too: one of another folder must
/// not pass for an empty one.
fn children(folder: &Url, listed: Vec<Item>) -> Result<Vec<(String, Item)>, Failure> {
    let above = segments(folder).ok_or_else(unusable)?;
    let (mut children, mut is_of_folder) = (Vec::new(), false);
    for item in listed {
        let Some(mut path) = folder.join(&item.href).ok().and_then(|url| segments(&url)) else { continue };
        is_of_folder |= path == above;
        let Some(name) = path.pop() else { continue };
        if path == above && !name.contains('/') {
            children.push((name, item));
        }
    }
    if is_of_folder { Ok(children) } else { Err(Failure::Refused("The server lists another folder.".into())) }
}

/// The decoded path.
fn segments(url: &Url) -> Option<Vec<String>> {
    let segments = url.path_segments()?.filter(|segment| !segment.is_empty());
    segments.map(|segment| Some(percent_decode_str(segment).decode_utf8().ok()?.into_owned())).collect()
}

/// Goes down. `.` and `..` lead nowhere.
fn with_segments<'a>(mut url: Url, path: impl IntoIterator<Item = &'a str>) -> Result<Url, Failure> {
    let path = path.into_iter().filter(|segment| !segment.is_empty());
    url.path_segments_mut().map_err(|()| unusable())?.pop_if_empty().extend(path);
    Ok(url)
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
        let items = hrefs.map(|href| Item { href: href.to_owned(), ..Item::default() });
        let listed = children(&folder, items.clone().into()).unwrap();
        let names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a b.txt", "c", "d.txt"]);
        assert!(children(&folder, items[1..].to_vec()).is_err());
    }

    #[test]
    fn paths_stay_below_the_address() {
        let base = || "https://cloud.test/dav".parse::<Url>().unwrap();
        let below = |path: &str| with_segments(base(), path.split('/')).unwrap().to_string();
        assert_eq!(below("/Shared files//2026/"), "https://cloud.test/dav/Shared%20files/2026");
        assert_eq!(below("../../etc?x#y"), "https://cloud.test/dav/etc%3Fx%23y");
        assert_eq!(as_folder(base()).unwrap().as_str(), "https://cloud.test/dav/");
    }
}
