//! Listings of WebDAV folders: answers to PROPFIND, <https://www.rfc-editor.org/rfc/rfc4918#section-9.1>.

use std::mem;

use quick_xml::{
    escape::resolve_xml_entity,
    events::{BytesRef, Event},
    reader::Reader,
};

use crate::{bounds, contract::Cause};

/// Asks for the properties of [`Item`].
pub const PROPFIND: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<d:propfind xmlns:d="DAV:"><d:prop><d:resourcetype/><d:getetag/><d:getcontentlength/><d:getcontenttype/><d:getlastmodified/></d:prop></d:propfind>"#;

/// A file, or a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// A URL, or its path.
    pub href: String,
    pub is_folder: bool,
    pub etag: Option<String>,
    pub length: Option<u64>,
    pub media_type: Option<String>,
    /// As in HTTP's dates.
    pub modified: Option<String>,
}

/// Reads a listing. Entities are not expanded beyond XML's own.
pub fn read_listing(xml: &[u8]) -> Result<Vec<Item>, Cause> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().expand_empty_elements = true;
    let (mut items, mut item, mut text, mut depth) = (Vec::new(), Item::default(), String::new(), 0_usize);
    loop {
        match reader.read_event().map_err(|_| malformed())? {
            Event::Start(tag) => {
                depth += 1;
                // The reader remembers the names of open elements. A listing nests six deep.
                if depth > bounds::LIST {
                    return Err(malformed());
                }
                text.clear();
                match tag.local_name().as_ref() {
                    b"response" => item = Item::default(),
                    b"collection" => item.is_folder = true,
                    _ => {}
                }
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                let said = Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
                match tag.local_name().as_ref() {
                    // Properties may hold others.
                    b"href" if depth == 2 => item.href = said.unwrap_or_default(),
                    b"getetag" => item.etag = said.or_else(|| item.etag.take()),
                    b"getcontentlength" => item.length = said.and_then(|text| text.parse().ok()),
                    b"getcontenttype" => item.media_type = said,
                    b"getlastmodified" => item.modified = said,
                    b"response" if !item.href.is_empty() => items.push(mem::take(&mut item)),
                    _ => {}
                }
                text.clear();
            }
            Event::Text(part) => text.push_str(&part.decode().map_err(|_| malformed())?),
            Event::CData(part) => text.push_str(&part.decode().map_err(|_| malformed())?),
            Event::GeneralRef(entity) => text.push_str(&resolve(&entity)?),
            Event::Eof if depth == 0 && !items.is_empty() => return Ok(items),
            Event::Eof => return Err(malformed()),
            _ => {}
        }
    }
}

fn resolve(entity: &BytesRef<'_>) -> Result<String, Cause> {
    if let Some(character) = entity.resolve_char_ref().map_err(|_| malformed())? {
        return Ok(character.into());
    }
    let name = entity.decode().map_err(|_| malformed())?;
    resolve_xml_entity(&name).map(str::to_owned).ok_or_else(malformed)
}

fn malformed() -> Cause {
    "The server's answer is not a listing of WebDAV.".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_prefixes_and_entities() {
        let xml = br#"<?xml version="1.0"?>
            <D:multistatus xmlns:D="DAV:" xmlns:lp1="DAV:">
              <D:response><D:href>/dav/a/</D:href><D:propstat><D:prop>
                <lp1:resourcetype><D:collection/></lp1:resourcetype></D:prop>
                <D:status>HTTP/1.1 200 OK</D:status></D:propstat>
                <D:propstat><D:prop><D:getetag/></D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>
              <D:response><D:href>/dav/a/R&amp;D%20&#x31;.txt</D:href><D:propstat><D:prop>
                <lp1:resourcetype/><lp1:getetag><![CDATA["1-2"]]></lp1:getetag><lp1:getcontentlength>12</lp1:getcontentlength>
                <D:lockdiscovery><D:activelock><D:lockroot><D:href>/elsewhere</D:href></D:lockroot></D:activelock></D:lockdiscovery>
                </D:prop></D:propstat></D:response>
            </D:multistatus>"#;
        let items = read_listing(xml).unwrap();
        let folder = Item { href: "/dav/a/".to_owned(), is_folder: true, ..Item::default() };
        let file = Item {
            href: "/dav/a/R&D%201.txt".to_owned(),
            etag: Some("\"1-2\"".to_owned()),
            length: Some(12),
            ..Item::default()
        };
        assert_eq!(items, [folder, file]);
        // A listing that breaks off is none, or missing files would be taken for deleted ones.
        assert!(read_listing(&xml[..xml.len() - 40]).is_err());
        assert!(read_listing(b"").is_err());
        assert!(read_listing(b"<a>&lol;</a>").is_err());
        assert!(read_listing("<a>".repeat(bounds::LIST + 1).as_bytes()).is_err());
    }
}
