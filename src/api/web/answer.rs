//! Answers with a file of the panel: compression, caching, and the headers that protect the page.

use std::{io::Write, sync::Arc};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::site::Asset;
use crate::{api::middleware::etag::is_known, core::resource_limits::AlreadyCounted};

/// How long a browser may cache a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePolicy {
    /// For a year: the address changes with the content.
    Forever,
    /// Revalidated on each use.
    Checked,
}

/// The page may only run and show its own files, and talk to this service. Markup never becomes a script, and nothing
/// is fetched from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Denies the features of browsers that the panel does not need.
const PERMISSIONS: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
     magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=()";

/// Headers in addition to those of every answer (`middleware/observe.rs`).
const PROTECTION: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS)),
];

/// Answers with `asset`, or with 304 if the client has it already.
pub(super) async fn answer(asset: &Arc<Asset>, asked: &HeaderMap, policy: CachePolicy) -> Response {
    let (bytes, coding) = best_coding(asset, asked).await;
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
        HeaderValue::from_static(match policy {
            CachePolicy::Forever => "public, max-age=31536000, immutable",
            CachePolicy::Checked => "no-cache",
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

/// The file's bytes in the best coding that the client accepts; small files are never compressed. Each coding is
/// computed on first use, so that a process without browsers, such as a command, does not pay for it.
async fn best_coding(asset: &Arc<Asset>, asked: &HeaderMap) -> (Bytes, Option<&'static str>) {
    if asset.bytes.len() >= 512 && is_text(&asset.media_type) {
        if accepts(asked, "br")
            && let Some(bytes) = asset.brotli.get_or_init(|| compressed(asset, brotli)).await
        {
            return (bytes.clone(), Some("br"));
        }
        if accepts(asked, "gzip")
            && let Some(bytes) = asset.gzip.get_or_init(|| compressed(asset, gzip)).await
        {
            return (bytes.clone(), Some("gzip"));
        }
    }
    (asset.bytes.clone(), None)
}

/// Compresses a file on a thread of its own. `None` if that saves nothing.
async fn compressed(asset: &Arc<Asset>, compress: fn(&[u8]) -> std::io::Result<Vec<u8>>) -> Option<Bytes> {
    let bytes = asset.bytes.clone();
    let compressed = tokio::task::spawn_blocking(move || compress(&bytes)).await.ok()?.ok()?;
    (compressed.len() < asset.bytes.len()).then(|| compressed.into())
}

fn brotli(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let (mut input, mut packed) = (bytes, Vec::new());
    // 11 would save a few percent more and take twenty times as long. In debug builds the encoder is slow, because it
    // is generic and so mostly compiled with this crate, and each of the many services that tests start compresses
    // again: 4 costs a fraction.
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

/// Whether the client accepts this coding (RFC 9110, section 12.5.3).
fn accepts(asked: &HeaderMap, coding: &str) -> bool {
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
        let accepts = |offers: &[&str], coding| {
            let mut headers = HeaderMap::new();
            for offer in offers {
                headers.append(header::ACCEPT_ENCODING, offer.parse().unwrap());
            }
            super::accepts(&headers, coding)
        };
        assert!(accepts(&["gzip, deflate, br"], "br") && accepts(&["gzip", "BR;q=0.5"], "br"));
        assert!(!accepts(&[], "br") && !accepts(&["gzip"], "br") && !accepts(&["br;q=0, gzip"], "br"));
        assert!(!accepts(&["brotli, xbr"], "br") && !accepts(&["br;q=nonsense"], "br"));
    }
}
