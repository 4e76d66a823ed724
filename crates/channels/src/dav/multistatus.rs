//! The answers that WebDAV servers write in XML.

use jiff::Timestamp;
use quick_xml::{
    events::Event,
    name::{Namespace, ResolveResult},
    reader::NsReader,
};

use crate::contract::Failure;

/// The paths of the elements of the properties that are read.
const PROPERTIES: [&str; 14] = [
    "c:calendar-data",
    "c:calendar-home-set/d:href",
    "c:calendar-timezone",
    "c:calendar-user-address-set/d:href",
    "c:supported-calendar-component-set/c:comp",
    "d:current-user-principal/d:href",
    "d:displayname",
    "d:getcontentlength",
    "d:getcontenttype",
    "d:getetag",
    "d:getlastmodified",
    "d:resourcetype/c:calendar",
    "d:resourcetype/d:collection",
    "d:sync-token",
];

/// What a server says about several resources.
#[derive(Debug, Default)]
pub struct Multistatus {
    pub resources: Vec<Resource>,
    /// The position after these changes (RFC 6578).
    pub sync_token: Option<String>,
    /// The server's time. Other times of its are compared with it.
    pub time: Timestamp,
}

/// One resource.
#[derive(Debug, Default)]
pub struct Resource {
    /// Its address, relative to the server.
    pub href: String,
    /// The status, if there is one for the whole resource: 404 for a removed one.
    pub status: Option<u16>,
    /// Each of [`PROPERTIES`] with its text.
    properties: Vec<(&'static str, String)>,
}

impl Resource {
    /// The text of a property, unless it is empty.
    pub fn property(&self, path: &str) -> Option<&str> {
        self.all(path).find(|text| !text.is_empty())
    }

    /// The texts of a property that is there several times.
    pub fn all(&self, path: &str) -> impl Iterator<Item = &str> {
        let same = self.properties.iter().filter(move |(known, _)| *known == path);
        same.map(|(_, text)| text.trim())
    }

    pub fn has(&self, path: &str) -> bool {
        self.all(path).next().is_some()
    }
}

impl Multistatus {
    /// # Errors
    /// The answer is not XML in UTF-8, is cut off, or is nested too deeply.
    pub fn read(xml: &[u8]) -> Result<Self, Failure> {
        let mut reader = NsReader::from_str(std::str::from_utf8(xml).map_err(|_| unreadable())?);
        let mut builder = Builder::default();
        loop {
            let (namespace, event) = reader.read_resolved_event().map_err(|_| unreadable())?;
            match event {
                Event::Start(tag) => builder.open(&namespace, tag.local_name().as_ref())?,
                Event::Empty(tag) => {
                    builder.open(&namespace, tag.local_name().as_ref())?;
                    builder.close();
                }
                Event::End(_) => builder.close(),
                Event::Text(text) => builder.text.push_str(&text.decode().map_err(|_| unreadable())?),
                Event::CData(text) => builder.text.push_str(&text.decode().map_err(|_| unreadable())?),
                Event::GeneralRef(reference) => {
                    let number = reference.resolve_char_ref().map_err(|_| unreadable())?;
                    let name = reference.decode().map_err(|_| unreadable())?;
                    builder.text.push(number.or_else(|| named(&name)).ok_or_else(unreadable)?);
                }
                // Entities of its own could expand without end.
                Event::DocType(_) => return Err(unreadable()),
                Event::Eof if builder.within.is_empty() => {
                    builder.read.resources.retain(|resource| !resource.href.is_empty());
                    return Ok(builder.read);
                }
                Event::Eof => return Err(unreadable()),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }
}

fn unreadable() -> Failure {
    Failure::NotSent("The server's answer can't be read.".into())
}

fn named(entity: &str) -> Option<char> {
    match entity {
        "amp" => Some('&'),
        "apos" => Some('\''),
        "gt" => Some('>'),
        "lt" => Some('<'),
        "quot" => Some('"'),
        _ => None,
    }
}

#[derive(Default)]
struct Builder {
    read: Multistatus,
    /// The open elements.
    within: Vec<String>,
    /// The text since the last tag.
    text: String,
    /// The properties of the open `propstat`, and whether they are there.
    properties: Vec<(&'static str, String)>,
    is_found: bool,
}

impl Builder {
    fn open(&mut self, namespace: &ResolveResult<'_>, local: &[u8]) -> Result<(), Failure> {
        let prefix = match namespace {
            ResolveResult::Bound(Namespace(b"DAV:")) => "d:",
            ResolveResult::Bound(Namespace(b"urn:ietf:params:xml:ns:caldav")) => "c:",
            _ => "",
        };
        // An attacker's answer could nest without end.
        if self.within.len() > 16 {
            return Err(unreadable());
        }
        self.within.push(format!("{prefix}{}", String::from_utf8_lossy(local)));
        self.text.clear();
        match self.within.last().map_or("", String::as_str) {
            "d:response" => self.read.resources.push(Resource::default()),
            "d:propstat" => {
                self.properties.clear();
                self.is_found = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self) {
        let text = std::mem::take(&mut self.text);
        let mut within = std::mem::take(&mut self.within);
        let path: Vec<&str> = within.iter().map(String::as_str).collect();
        match &path[..] {
            ["d:multistatus", "d:sync-token"] => self.read.sync_token = Some(text.trim().to_owned()),
            [_, "d:response", "d:href"] => self.update(|resource| text.trim().clone_into(&mut resource.href)),
            [_, "d:response", "d:status"] => {
                let status = parse_status(&text);
                self.update(|resource| resource.status = status);
            }
            [_, "d:response", "d:propstat", "d:status"] => self.is_found = parse_status(&text) == Some(200),
            [_, "d:response", "d:propstat"] if self.is_found => {
                let found = std::mem::take(&mut self.properties);
                self.update(|resource| resource.properties.extend(found));
            }
            [_, "d:response", "d:propstat", "d:prop", property @ ..] => {
                let is_it = |known: &&&str| known.split('/').eq(property.iter().copied());
                self.properties.extend(PROPERTIES.iter().find(is_it).map(|known| (*known, text)));
            }
            _ => {}
        }
        within.pop();
        self.within = within;
    }

    fn update(&mut self, update: impl FnOnce(&mut Resource)) {
        if let Some(resource) = self.read.resources.last_mut() {
            update(resource);
        }
    }
}

/// `HTTP/1.1 200 OK`
fn parse_status(line: &str) -> Option<u16> {
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_resolved_and_missing_properties_are_not_there() {
        let xml = r#"<?xml version="1.0"?><multistatus xmlns="DAV:" xmlns:x="urn:ietf:params:xml:ns:caldav">
            <response><href>/a/1%20b.ics</href><propstat><prop><getetag>"1&amp;&#50;"</getetag>
            <lockdiscovery><activelock><lockroot><href>/elsewhere</href></lockroot></activelock></lockdiscovery>
            <resourcetype><collection/><x:calendar/></resourcetype><x:calendar-data><![CDATA[BEGIN:<A>]]></x:calendar-data>
            </prop><status>HTTP/1.1 200 OK</status></propstat><propstat><prop><displayname/></prop>
            <status>HTTP/1.1 404 Not Found</status></propstat></response>
            <response><href>/a/2.ics</href><status>HTTP/1.1 404 Not Found</status></response>
            <response><status>HTTP/1.1 404 Not Found</status></response>
            <sync-token>urn:7</sync-token></multistatus>"#;
        let read = Multistatus::read(xml.as_bytes()).unwrap();
        assert_eq!(read.sync_token.as_deref(), Some("urn:7"));
        let [event, removed] = &read.resources[..] else { panic!() };
        assert_eq!((event.href.as_str(), event.property("d:getetag")), ("/a/1%20b.ics", Some("\"1&2\"")));
        assert_eq!(event.property("c:calendar-data"), Some("BEGIN:<A>"));
        assert!(event.has("d:resourcetype/c:calendar") && !event.has("d:displayname"));
        assert_eq!((removed.href.as_str(), removed.status), ("/a/2.ics", Some(404)));
    }

    #[test]
    fn unreadable_answers_are_errors() {
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        let bomb = "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>";
        for wrong in ["<a>", "<a></b>", "<a>&b;</a>", "a<", bomb, deep.as_str(), "\u{0}<"] {
            assert!(Multistatus::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Multistatus::read(b"<a>\xff</a>").is_err());
    }
}
