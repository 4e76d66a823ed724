//! No answer carries the model's key back to the agent: it is starred out of heads and bodies, in as many bytes, so that lengths
//! stay the same.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::ext::ReasonPhrase;

use crate::{
    answers::{Answer, Body, BodyError, Polled},
    secrets,
};

/// The ways in which a key may be written.
#[derive(Clone, Debug)]
pub struct Veil(Arc<[Vec<u8>]>);

impl Veil {
    /// For answers. Short ones are placeholders for servers that need no key (`ollama`, `EMPTY`): answers may well speak of them.
    pub fn of(key: &str) -> Self {
        if key.len() < 12 { Self(Arc::default()) } else { Self::of_any(key) }
    }

    /// For refusals, which speak of little but the request: also of a short key.
    pub fn of_any(key: &str) -> Self {
        Self(secrets::forms(key).into_iter().map(String::into_bytes).collect())
    }

    /// Stars the key out.
    pub fn cover(&self, bytes: &mut [u8]) {
        for form in &*self.0 {
            let mut from = 0;
            while let Some(at) = find(&bytes[from..], form) {
                bytes[from + at..][..form.len()].fill(b'*');
                from += at + form.len();
            }
        }
    }

    /// The same in a head.
    pub fn cover_head(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            self.cover(&mut bytes);
            if bytes != value.as_bytes() {
                *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("*"));
            }
        }
    }

    /// An answer without the key.
    pub fn over(&self, mut answer: Answer) -> Answer {
        self.cover_head(answer.headers_mut());
        answer.extensions_mut().remove::<ReasonPhrase>();
        if self.0.is_empty() {
            return answer;
        }
        answer.map(|body| Veiled { body, veil: self.clone(), held: Vec::new() }.boxed_unsync())
    }

    /// How many bytes at the end may be the beginning of the key.
    fn begun(&self, bytes: &[u8]) -> usize {
        let longest = |form: &Vec<u8>| (1..form.len()).rev().find(|length| bytes.ends_with(&form[..*length]));
        self.0.iter().filter_map(longest).max().unwrap_or(0)
    }
}

fn find(bytes: &[u8], form: &[u8]) -> Option<usize> {
    let (first, mut from) = (*form.first()?, 0);
    loop {
        from += bytes[from..].iter().position(|byte| *byte == first)?;
        if bytes[from..].starts_with(form) {
            return Some(from);
        }
        from += 1;
    }
}

/// A body without the key. What may be its beginning waits for the next piece.
struct Veiled {
    body: Body,
    veil: Veil,
    held: Vec<u8>,
}

impl HttpBody for Veiled {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        loop {
            let piece = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                // Trailers are not passed on.
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if this.held.is_empty() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.held).into())))),
            };
            let mut bytes = std::mem::take(&mut this.held);
            bytes.extend_from_slice(&piece);
            this.veil.cover(&mut bytes);
            this.held = bytes.split_off(bytes.len() - this.veil.begun(&bytes));
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, held) = (self.body.size_hint(), self.held.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(held));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use http_body_util::StreamBody;
    use serde_json::Value;

    use super::*;

    const KEY: &str = "sk-live/one+two\"three";

    async fn passed(veil: &Veil, text: &str, size: usize) -> String {
        let pieces: Vec<_> = text.as_bytes().chunks(size).map(|piece| Bytes::from(piece.to_vec())).collect();
        let frames = pieces.into_iter().map(|piece| Ok::<_, BodyError>(Frame::data(piece)));
        let body = StreamBody::new(futures::stream::iter(frames)).boxed_unsync();
        let bytes = veil.over(Response::new(body)).into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_key_is_starred_out_however_it_is_cut_and_written() {
        let veil = Veil::of(KEY);
        let json = Value::from(KEY).to_string();
        let slashed = json.replace('/', "\\/");
        let address = "sk%2Dlive%2Fone%2Btwo%22three";
        for text in [
            format!("bad key Bearer {KEY}"),
            format!("{KEY}{KEY} sk-live/one sk-live/{KEY}"),
            format!("{{\"error\":{json}}}"),
            format!("{{\"error\":{slashed}}}"),
            format!("?key={address}&x=1"),
            "nothing of it: sk-live/one+tw".to_owned(),
        ] {
            let whole = passed(&veil, &text, usize::MAX).await;
            assert_eq!(whole.len(), text.len(), "{text}");
            for part in ["two\"three", "two\\\"three", "two%22three"] {
                assert!(!whole.contains(part), "{text}: {whole}");
            }
            for size in [1, 2, 7] {
                assert_eq!(passed(&veil, &text, size).await, whole, "{text} in pieces of {size}");
            }
        }
        assert!(passed(&veil, "x sk-live/one+tw", 3).await.ends_with("sk-live/one+tw"), "the end isn't lost");
    }

    #[test]
    fn a_placeholder_is_a_word_like_others() {
        let covered = |veil: &Veil| {
            let mut bytes = b"ollama".to_vec();
            veil.cover(&mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            (covered(&Veil::of("ollama")).as_str(), covered(&Veil::of("")).as_str()),
            ("ollama", "ollama")
        );
        assert_eq!(covered(&Veil::of_any("ollama")), "******", "in a refusal");
        for short in ["", "a", "oll"] {
            assert_eq!(covered(&Veil::of_any(short)), "ollama", "nothing would be left of some: {short}");
        }
    }

    #[test]
    fn a_head_has_no_key_either() {
        let mut headers = HeaderMap::new();
        let key = "sk-0123456789";
        headers.insert("x-debug", HeaderValue::from_str(&format!("Bearer {key}")).unwrap());
        Veil::of(key).cover_head(&mut headers);
        assert_eq!(headers["x-debug"], "Bearer *************");
    }
}
