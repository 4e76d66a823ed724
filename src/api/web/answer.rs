//! Answers with a file of the panel: compressed, as long as browsers may keep it, and with what protects the page.

use std::{io::Write, sync::Arc};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::site::Asset;
use crate::{api::middleware::etag::is_known, core::resource_limits::AlreadyCounted};

/// How long a browser may keep a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// For a year: the address changes with the content.
    Forever,
    /// It asks each time whether there is another one.
    Checked,
}

/// What the page may do: run and show its own files, and talk to this service. No markup becomes a script, and nothing
/// is fetched from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Nothing of a machine that the panel does not need.
const PERMISSIONS: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
     magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=()";

/// Beside what protects every answer (`edge/observe.rs`).
const PROTECTION: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS)),
];

/// Answers with `asset`, or that the client has it already.
pub(super) async fn answer(asset: &Arc<Asset>, asked: &HeaderMap, kept: Kept) -> Response {
    let (bytes, coding) = coded(asset, asked).await;
    let suffix = coding.map(|coding| format!("-{coding}")).unwrap_or_default();
    let tag = format!("\"{}{suffix}\"", asset.digest);
    let mut response = if is_known(asked, &tag) {
        let mut unchanged = Response::new(Body::empty());
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        Response::new(Body::from(bytes))
    };
    // Every answer shares the same bytes.
    response.extensions_mut().insert(AlreadyCounted);
    let headers = response.headers_mut();
    headers.extend(PROTECTION);
    headers.insert(header::CONTENT_TYPE, asset.media_type.clone());
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static(match kept {
            Kept::Forever => "public, max-age=31536000, immutable",
            Kept::Checked => "no-cache",
        }),
    );
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    if let Some(coding) = coding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

/// The file's bytes in the best coding that the client takes; small files are not worth it. Each is made once, when it is first asked
/// for: a process that serves no browser, such as a command, does not pay for it.
async fn coded(asset: &Arc<Asset>, asked: &HeaderMap) -> (Bytes, Option<&'static str>) {
    if asset.bytes.len() >= 512 && is_text(&asset.media_type) {
        if takes(asked, "br")
            && let Some(bytes) = asset.brotli.get_or_init(|| made(asset, brotli)).await
        {
            return (bytes.clone(), Some("br"));
        }
        if takes(asked, "gzip")
            && let Some(bytes) = asset.gzip.get_or_init(|| made(asset, gzip)).await
        {
            return (bytes.clone(), Some("gzip"));
        }
    }
    (asset.bytes.clone(), None)
}

/// Compresses a file on a thread of its own. `None` if that saves nothing.
async fn made(asset: &Arc<Asset>, compress: fn(&[u8]) -> std::io::Result<Vec<u8>>) -> Option<Bytes> {
    let bytes = asset.bytes.clone();
    let compressed = tokio::task::spawn_blocking(move || compress(&bytes)).await.ok()?.ok()?;
    (compressed.len() < asset.bytes.len()).then(|| compressed.into())
}

fn brotli(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let (mut input, mut packed) = (bytes, Vec::new());
    // 11 saves a few percent more and takes twenty times as long. A debug build compresses again in each of the many services that
    // tests start, where 4 costs a fraction: the encoder is generic, so that most of it is built with this crate, without
    // optimisations.
    let quality = if cfg!(debug_assertions) { 4 } else { 9 };
    let settings = brotli::enc::BrotliEncoderParams { quality, size_hint: bytes.len(), ..Default::default() };
    brotli::BrotliCompress(&mut input, &mut packed, &settings)?;
    Ok(packed)
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    packed.finish()
}

/// Whether a type's files become smaller. Pictures and fonts are compressed already.
fn is_text(media_type: &HeaderValue) -> bool {
    let media_type = media_type.to_str().unwrap_or_default();
    let text =
        ["text/", "application/javascript", "application/json", "application/manifest+json", "image/svg+xml"];
    text.iter().any(|start| media_type.starts_with(start))
}

/// Whether the client takes this coding (RFC 9110, section 12.5.3).
fn takes(asked: &HeaderMap, coding: &str) -> bool {
    let values = asked.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|offer| {
        let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case(coding) && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_is_taken_unless_its_weight_is_zero() {
        let takes = |offers: &[&str], coding| {
            let mut headers = HeaderMap::new();
            for offer in offers {
                headers.append(header::ACCEPT_ENCODING, offer.parse().unwrap());
            }
            super::takes(&headers, coding)
        };
        assert!(takes(&["gzip, deflate, br"], "br") && takes(&["gzip", "BR;q=0.5"], "br"));
        assert!(!takes(&[], "br") && !takes(&["gzip"], "br") && !takes(&["br;q=0, gzip"], "br"));
        assert!(!takes(&["brotli, xbr"], "br") && !takes(&["br;q=nonsense"], "br"));
    }
}
