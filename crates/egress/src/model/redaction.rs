//! Removes the model's key from answers: it is masked in headers and bodies, in the same length, so that lengths stay
//! valid.

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

/// Encoded forms of a key.
#[derive(Clone, Debug)]
pub struct KeyRedactor(Arc<[Vec<u8>]>);

impl KeyRedactor {
    /// For answers. Short keys are placeholders for servers without keys (`ollama`, `EMPTY`), and answers may mention
    /// them.
    pub fn new(key: &str) -> Self {
        if key.len() < 12 { Self(Arc::default()) } else { Self::of_any(key) }
    }

    /// For refusals, which quote little but the request: masks short keys too.
    pub fn of_any(key: &str) -> Self {
        Self(secrets::encoded_forms(key).into_iter().map(String::into_bytes).collect())
    }

    /// Masks the key.
    pub fn redact(&self, bytes: &mut [u8]) {
        for form in &*self.0 {
            let mut from = 0;
            while let Some(at) = find(&bytes[from..], form) {
                bytes[from + at..][..form.len()].fill(b'*');
                from += at + form.len();
            }
        }
    }

    pub fn redact_headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            self.redact(&mut bytes);
            if bytes != value.as_bytes() {
                *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("*"));
            }
        }
    }

    pub fn redact_answer(&self, mut answer: Answer) -> Answer {
        self.redact_headers(answer.headers_mut());
        answer.extensions_mut().remove::<ReasonPhrase>();
        if self.0.is_empty() {
            return answer;
        }
        answer.map(|body| RedactedBody { body, redactor: self.clone(), held: Vec::new() }.boxed_unsync())
    }

    /// Length of a possible beginning of the key at the end.
    fn partial_key_length(&self, bytes: &[u8]) -> usize {
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

/// A masked body. A possible beginning of the key waits for the next piece.
struct RedactedBody {
    body: Body,
    redactor: KeyRedactor,
    held: Vec<u8>,
}

impl HttpBody for RedactedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        loop {
            let piece = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                // Trailers are dropped.
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if this.held.is_empty() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.held).into())))),
            };
            let mut bytes = std::mem::take(&mut this.held);
            bytes.extend_from_slice(&piece);
            this.redactor.redact(&mut bytes);
            this.held = bytes.split_off(bytes.len() - this.redactor.partial_key_length(&bytes));
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

    async fn passed(redactor: &KeyRedactor, text: &str, size: usize) -> String {
        let pieces: Vec<_> = text.as_bytes().chunks(size).map(|piece| Bytes::from(piece.to_vec())).collect();
        let frames = pieces.into_iter().map(|piece| Ok::<_, BodyError>(Frame::data(piece)));
        let body = StreamBody::new(futures::stream::iter(frames)).boxed_unsync();
        let bytes =
            redactor.redact_answer(Response::new(body)).into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_key_is_starred_out_however_it_is_cut_and_written() {
        let redactor = KeyRedactor::new(KEY);
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
            let whole = passed(&redactor, &text, usize::MAX).await;
            assert_eq!(whole.len(), text.len(), "{text}");
            for part in ["two\"three", "two\\\"three", "two%22three"] {
                assert!(!whole.contains(part), "{text}: {whole}");
            }
            for size in [1, 2, 7] {
                assert_eq!(passed(&redactor, &text, size).await, whole, "{text} in pieces of {size}");
            }
        }
        assert!(
            passed(&redactor, "x sk-live/one+tw", 3).await.ends_with("sk-live/one+tw"),
            "the end isn't lost"
        );
    }

    #[test]
    fn a_placeholder_is_a_word_like_others() {
        let covered = |redactor: &KeyRedactor| {
            let mut bytes = b"ollama".to_vec();
            redactor.redact(&mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            (covered(&KeyRedactor::new("ollama")).as_str(), covered(&KeyRedactor::new("")).as_str()),
            ("ollama", "ollama")
        );
        assert_eq!(covered(&KeyRedactor::of_any("ollama")), "******", "in a refusal");
        for short in ["", "a", "oll"] {
            assert_eq!(
                covered(&KeyRedactor::of_any(short)),
                "ollama",
                "nothing would be left of some: {short}"
            );
        }
    }

    #[test]
    fn a_head_has_no_key_either() {
        let mut headers = HeaderMap::new();
        let key = "sk-0123456789";
        headers.insert("x-debug", HeaderValue::from_str(&format!("Bearer {key}")).unwrap());
        KeyRedactor::new(key).redact_headers(&mut headers);
        assert_eq!(headers["x-debug"], "Bearer *************");
    }
}
